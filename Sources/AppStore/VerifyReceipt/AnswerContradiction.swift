import Reconciliation

/// A reason why an answer belongs to another receipt or is damaged, as when a cache mixes up answers. It counts as no
/// answer.
package enum AnswerContradiction: Hashable, Sendable {
  /// The receipt or the host asked is of another environment.
  case environment(answered: AppleEnvironment)
  case bundle
  /// The receipt has another creation date, which never changes.
  case creationDate(answered: Instant)
  /// A purchase that stays in every receipt is missing in the answer.
  case missing(transactionId: String)
  case product(transactionId: String)
  /// A date in an unknown format, which may contradict the rest.
  case unreadableDate(transactionId: String, field: String)
}

extension AnswerContradiction: CustomStringConvertible {
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
        if purchase.staysInLaterReceipts { found.append(.missing(transactionId: id)) }
        continue
      }
      if answer.productId != purchase.productId { found.append(.product(transactionId: id)) }
    }
    return found
  }
}
