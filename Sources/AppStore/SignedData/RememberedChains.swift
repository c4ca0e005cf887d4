import Crypto

/// A verified chain and its leaf's key, ready for the next signature.
struct RememberedChain: Sendable {
  let path: AppleCertificatePath
  let key: P256.Signing.PublicKey
}

/// The chains of the last JWS headers that proved authentic, by the whole text of the header.
///
/// A header holds the complete chain, so another certificate anywhere is another entry. Dates are not part of a match:
/// they are judged for every signature. A night meets a handful of chains, which makes a short list faster than hashing
/// five kilobytes.
struct RememberedChains: Sendable {
  private var entries: [(header: [UInt8], chain: RememberedChain)] = []

  /// How many are remembered.
  var count: Int { entries.count }

  /// The chain of exactly this header.
  func chain(for header: ArraySlice<UInt8>) -> RememberedChain? {
    entries.first { $0.header.count == header.count && $0.header.elementsEqual(header) }?.chain
  }

  /// Remembers a chain, at the cost of the oldest one when there are too many.
  mutating func remember(_ chain: RememberedChain, for header: ArraySlice<UInt8>) {
    guard self.chain(for: header) == nil else { return }
    if entries.count == DecodingLimits.rememberedChains { entries.removeFirst() }
    entries.append((Array(header), chain))
  }
}
