/// A set of fingerprints of account tokens or links. It may report a member that was never inserted.
///
/// A Bloom filter with one hash takes 512 kB for any number of members. A false positive costs a look-up, no result.
struct BloomFilter {
  private static let bitCount: UInt64 = 1 << 22
  private var words: [UInt64] = []

  /// Contains every value.
  static let all = BloomFilter(words: Array(repeating: .max, count: wordCount))

  private static let wordCount = Int(bitCount / 64)

  var isEmpty: Bool { words.isEmpty }

  mutating func insert(_ fingerprint: UInt64) {
    if words.isEmpty { words = Array(repeating: 0, count: Self.wordCount) }
    let bit = Self.bit(of: fingerprint)
    words[Int(bit / 64)] |= 1 << (bit % 64)
  }

  func mayContain(_ fingerprint: UInt64) -> Bool {
    if words.isEmpty { return false }
    let bit = Self.bit(of: fingerprint)
    return words[Int(bit / 64)] & 1 << (bit % 64) != 0
  }

  mutating func formUnion(_ other: BloomFilter) {
    if other.isEmpty { return }
    words = words.isEmpty ? other.words : zip(words, other.words).map { $0 | $1 }
  }

  private static func bit(of fingerprint: UInt64) -> UInt64 { (fingerprint ^ fingerprint >> 32) % bitCount }
}
