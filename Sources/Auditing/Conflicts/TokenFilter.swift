import Reconciliation

/// The account tokens of orders whose receipts contain no purchase, which a token alone can link to a purchase.
///
/// A Bloom filter with one hash takes 512 kB for any number of tokens. A false positive costs a look-up, no result.
struct TokenFilter {
  private static let bitCount = 1 << 22
  /// nil: any token may be in it.
  private var words: [UInt64]?
  private(set) var isEmpty = true

  /// Contains every token.
  static let all: TokenFilter = {
    var filter = TokenFilter()
    (filter.words, filter.isEmpty) = (nil, false)
    return filter
  }()

  init() { words = [] }

  /// - Parameter token: by ``AccountToken/spelling(_:)``.
  mutating func insert(_ token: String) {
    guard var words else { return }
    self.words = nil
    if isEmpty { words = Array(repeating: 0, count: Self.bitCount / 64) }
    let bit = Self.bit(of: token)
    words[bit / 64] |= 1 << UInt64(bit % 64)
    (self.words, isEmpty) = (words, false)
  }

  func mayContain(_ token: String) -> Bool {
    if isEmpty { return false }
    guard let words else { return true }
    let bit = Self.bit(of: token)
    return words[bit / 64] & 1 << UInt64(bit % 64) != 0
  }

  mutating func formUnion(_ other: TokenFilter) {
    if other.isEmpty { return }
    if isEmpty {
      self = other
    } else if let own = words, let others = other.words {
      words = zip(own, others).map { $0 | $1 }
    } else {
      words = nil
    }
  }

  private static func bit(of token: String) -> Int { Int(UInt(bitPattern: token.hashValue) % UInt(bitCount)) }
}
