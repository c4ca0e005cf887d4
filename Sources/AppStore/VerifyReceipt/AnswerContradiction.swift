import Reconciliation

/// What cannot be true of an answer to a receipt: it contradicts itself, or what stands in that very receipt.
///
/// A cache or a proxy that gives one receipt the answer of another one is found out so. Such an answer is none.
package enum AnswerContradiction: Hashable, Sendable {
  /// The receipt names another environment, or the side that was asked is the other one's, which sends its receipts away.
  case environment(answered: AppleEnvironment)
  /// The receipt is of another app.
  case bundle
  /// The receipt was made at another time, which never changes.
  case creationDate(answered: Instant)
  /// A purchase that receipts show for ever is in the receipt and not in the answer.
  case missing(transactionId: String)
  /// The receipt has another product under the same transaction id.
  case product(transactionId: String)
  /// A date of the answer is in no form that is known: what it says may be the opposite of what the rest says.
  case unreadableDate(transactionId: String, field: String)
}

extension AnswerContradiction: CustomStringConvertible {
  /// For the operator; words of Apple's only.
  package var description: String {
    switch self {
    case .environment(let answered): "the answer is about a receipt from \(answered.rawValue)"
    case .bundle: "the answer is about another app's receipt"
    case .creationDate(let answered):
      "the answer is about a receipt that was made at another time (\(answered.seconds) seconds since 1970)"
    case .missing(let id): "the answer lacks the transaction \(id.prefix(40)), which is in the receipt"
    case .product(let id): "the answer has another product for the transaction \(id.prefix(40)) than the receipt"
    case .unreadableDate(let id, let field): "\(field) of the transaction \(id.prefix(40)) cannot be read"
    }
  }
}

extension VerifiedReceipt {
  /// What speaks against this being the answer to the receipt that was asked about; empty when nothing does.
  ///
  /// - Parameter content: what the receipt itself says, or what else is known of it.
  package func contradictions(with content: WrittenContent) -> [AnswerContradiction] {
    var found = contradictions
    if let written = content.environment, written != environment {
      found.append(.environment(answered: environment))
    }
    if let written = content.bundleId, let bundleId, written != bundleId { found.append(.bundle) }
    // The receipt's own date has whole seconds.
    if let written = content.creationDate, let creationDate, written.seconds != creationDate.seconds {
      found.append(.creationDate(answered: creationDate))
    }
    if let written = content.ownTransactionId, let ownTransactionId, written != ownTransactionId {
      found.append(.missing(transactionId: written))
    }
    let answered = Dictionary(facts.map { ($0.transactionId, $0) }) { first, _ in first }
    let undated = Set(
      contradictions.compactMap { contradiction -> String? in
        guard case .unreadableDate(let id, _) = contradiction else { return nil }
        return id
      })
    for (id, purchase) in content.purchases.sorted(by: { $0.key < $1.key }) where !undated.contains(id) {
      guard let answer = answered[id] else {
        if purchase.isLasting { found.append(.missing(transactionId: id)) }
        continue
      }
      if answer.productId != purchase.productId { found.append(.product(transactionId: id)) }
    }
    return found
  }
}
