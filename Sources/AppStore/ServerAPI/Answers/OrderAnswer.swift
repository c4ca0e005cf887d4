import Reconciliation

/// The answer to Look Up Order ID: the transactions of an invoice that Apple mailed to a customer. Not found: Apple knows
/// no such order of this app.
package typealias OrderAnswer = LookupAnswer<[TransactionFact]>

extension OrderAnswer {
  /// `status` is 0 for a known order and 1 for an unknown one, both with HTTP 200.
  static func invoice(
    _ result: Result<JSONFields, ServerAPIRefusal>, verifier: AnswerVerifier, trail: ServerAPITrail
  ) -> OrderAnswer {
    let page: JSONFields
    switch result {
    case .failure(let refusal): return OrderAnswer(outcome: Outcome(refusal), trail: trail)
    case .success(let fields): page = fields
    }
    guard let status = page.integer("status") else { return silent("an answer without status", trail) }
    guard status != 1 else { return OrderAnswer(outcome: .notFound, trail: trail) }
    guard status == 0 else { return silent("an answer with the status \(status)", trail) }
    guard let signed = page.texts("signedTransactions") else {
      return silent("an answer without signedTransactions", trail)
    }
    var answer = OrderAnswer(outcome: .notFound, trail: trail)
    var transactions: [TransactionFact] = []
    for jws in signed {
      switch verifier.verify(jws ?? "", host: .production) {
      case .success(let transaction): transactions.append(transaction)
      case .failure(let refusal):
        answer.refused += 1
        answer.trail.warn("a transaction of the invoice could not be verified: \(refusal)")
      }
    }
    answer.outcome =
      transactions.isEmpty && answer.refused > 0
      ? .unanswered(.appleError("no transaction of the invoice could be verified"))
      : .found(transactions)
    return answer
  }

  private static func silent(_ detail: String, _ trail: ServerAPITrail) -> OrderAnswer {
    OrderAnswer(outcome: .unanswered(.appleError(detail)), trail: trail)
  }
}
