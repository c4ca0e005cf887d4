import Reconciliation

/// What cannot be true of an answer to a receipt: it contradicts itself, or what Apple signed in that very receipt.
///
/// A cache or a proxy that gives one receipt the answer of another one is found out so. Such an answer is none.
package enum AnswerContradiction: Hashable, Sendable {
  /// The receipt names another environment.
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
  /// - Parameter content: what the receipt itself says, as far as its signature holds.
  package func contradictions(with content: GenuineProof) -> [AnswerContradiction] {
    var found = contradictions
    if let signed = content.environment, signed != environment { found.append(.environment(answered: environment)) }
    if let signed = content.bundleId, let bundleId, signed != bundleId { found.append(.bundle) }
    // The receipt's own date has whole seconds.
    if let signed = content.creationDate, let creationDate, signed.seconds != creationDate.seconds {
      found.append(.creationDate(answered: creationDate))
    }
    if let signed = content.signedTransactionId, let ownTransactionId, signed != ownTransactionId {
      found.append(.missing(transactionId: signed))
    }
    let answered = Dictionary(facts.map { ($0.transactionId, $0) }) { first, _ in first }
    let undated = Set(
      contradictions.compactMap { contradiction -> String? in
        guard case .unreadableDate(let id, _) = contradiction else { return nil }
        return id
      })
    for fact in content.facts where !undated.contains(fact.transactionId) {
      guard let answer = answered[fact.transactionId] else {
        // Only these stay in every receipt: consumables disappear, and what a renewal replaced may be left out.
        if fact.productType == .nonConsumable { found.append(.missing(transactionId: fact.transactionId)) }
        continue
      }
      if answer.productId != fact.productId { found.append(.product(transactionId: fact.transactionId)) }
    }
    return found
  }
}
