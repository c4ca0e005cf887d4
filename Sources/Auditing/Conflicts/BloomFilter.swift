import Reconciliation

/// A set of account tokens or links. It may report a member that was never inserted.
///
/// A Bloom filter with one hash takes 512 kB for any number of members. A false positive costs a look-up, no result.
struct BloomFilter {
  private static let bitCount = 1 << 22
  /// nil: any value may be in it.
  private var words: [UInt64]?
  private(set) var isEmpty = true

  /// Contains every value.
  static let all: BloomFilter = {
    var filter = BloomFilter()
    (filter.words, filter.isEmpty) = (nil, false)
    return filter
  }()

  init() { words = [] }

  mutating func insert(_ value: some Hashable) {
    guard var words else { return }
    self.words = nil
    if isEmpty { words = Array(repeating: 0, count: Self.bitCount / 64) }
    let bit = Self.bit(of: value)
    words[bit / 64] |= 1 << UInt64(bit % 64)
    (self.words, isEmpty) = (words, false)
  }

  func mayContain(_ value: some Hashable) -> Bool {
    if isEmpty { return false }
    guard let words else { return true }
    let bit = Self.bit(of: value)
    return words[bit / 64] & 1 << UInt64(bit % 64) != 0
  }

  mutating func formUnion(_ other: BloomFilter) {
    if other.isEmpty { return }
    if isEmpty {
      self = other
    } else if let own = words, let others = other.words {
      words = zip(own, others).map { $0 | $1 }
    } else {
      words = nil
    }
  }

  private static func bit(of value: some Hashable) -> Int { Int(UInt(bitPattern: value.hashValue) % UInt(bitCount)) }
}
