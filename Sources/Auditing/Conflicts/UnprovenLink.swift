import Reconciliation
import Streams

/// A link of an order to a transaction that it does not refer to.
enum UnprovenLink: Hashable {
  /// The account token, as `AccountToken.spelling` has it.
  case token(String)
  /// The original transaction ID of a subscription, or the `bundleTransactionID` of a period.
  case subscription(Identifier)

  static let subscriptionMark = UInt8(ascii: "s")
  private static let tokenMark = UInt8(ascii: "t")

  /// The sort key of questions and of linkable orders.
  var key: [UInt8] {
    switch self {
    case .token(let token): [Self.tokenMark] + token.utf8
    case .subscription(let original): [Self.subscriptionMark] + original.bytes
    }
  }

  /// The member of a Bloom filter.
  var fingerprint: UInt64 {
    switch self {
    case .token(let token): AccountToken.fingerprint(token)
    case .subscription(let original): original.withUTF8 { BorrowedText($0).fingerprint }
    }
  }

  init(key: [UInt8]) throws(RecordReader.Mismatch) {
    let text = String(decoding: key.dropFirst(), as: UTF8.self)
    switch key.first {
    case Self.tokenMark: self = .token(text)
    case Self.subscriptionMark: self = .subscription(Identifier(text))
    default: throw RecordReader.Mismatch()
    }
  }
}
