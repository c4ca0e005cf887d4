import Crypto

struct RememberedChain: Sendable {
  let path: AppleCertificatePath
  let key: P256.Signing.PublicKey
}

/// A cache of verified certificate chains, keyed by the whole JWS header, which contains the chain. A night has a
/// handful of chains, and a short list is faster than hashing five kilobytes.
struct RememberedChains: Sendable {
  private var entries: [(header: [UInt8], chain: RememberedChain)] = []

  var count: Int { entries.count }

  func chain(for header: ArraySlice<UInt8>) -> RememberedChain? {
    entries.first { $0.header.count == header.count && $0.header.elementsEqual(header) }?.chain
  }

  mutating func remember(_ chain: RememberedChain, for header: ArraySlice<UInt8>) {
    guard self.chain(for: header) == nil else { return }
    if entries.count == DecodingLimits.rememberedChains { entries.removeFirst() }
    entries.append((Array(header), chain))
  }
}
