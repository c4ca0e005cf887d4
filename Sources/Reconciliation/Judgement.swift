/// What the audit says about one order row.
package struct Judgement: Sendable {
  package var row: OrderRow
  /// nil for a row that breaks the contract: nothing is said about its payment.
  package var verdict: Verdict?
  package var disposition: Disposition
  /// Worst first; each kind at most once on one subject.
  package var findings: [Finding]
  /// Apple's purchase date of the transaction that the order owns.
  package var paidAt: Instant?
  /// The latest delivery that was not taken back.
  package var deliveredAt: Instant?
  /// Apple's revocation date.
  package var refundedAt: Instant?
  /// As-of of the run that last asked Apple about it.
  package var checkedAt: Instant?
  /// Where the transaction behind the verdict was made.
  package var environment: AppleEnvironment?
  package var transactionId: Identifier?

  /// Judges one order. No clock, no database, no network.
  package init(judging facts: OrderFacts, rules: Rules) {
    var reasoning = Reasoning(isWanted: false)
    self.init(judging: facts, rules: rules, reasoning: &reasoning)
  }

  /// Judges one order and tells what was considered on the way.
  package static func explained(_ facts: OrderFacts, rules: Rules) -> (judgement: Judgement, reasoning: Reasoning) {
    var reasoning = Reasoning(isWanted: true)
    let judgement = Judgement(judging: facts, rules: rules, reasoning: &reasoning)
    return (judgement, reasoning)
  }

  private init(judging facts: OrderFacts, rules: Rules, reasoning: inout Reasoning) {
    let verdict = facts.verdict(rules: rules, &reasoning)
    let transaction = facts.claims.owned.first ?? verdict.transaction
    row = .valid(facts.order)
    self.verdict = verdict
    var because = Because(isWanted: reasoning.isWanted)
    disposition = facts.disposition(of: verdict, rules, &because)
    reasoning.tellDisposition(because)
    paidAt = facts.claims.owned.first?.purchaseDate
    refundedAt = facts.claims.owned.first?.revocation?.date
    deliveredAt = facts.standingDeliveries.lazy.map { $0.deliveredAt }.max()
    checkedAt = transaction?.checkedAt
    environment = transaction?.environment
    transactionId = facts.claims.owned.first?.transactionId ?? facts.order.transactionId ?? transaction?.transactionId
    findings = []
    take(attempt: facts.lookup?.lastAttempt)
    for receipt in facts.receipts { take(attempt: receipt.state.lastAttempt) }
    let conditions = FindingRules(facts: facts, rules: rules, judgement: self, isExplaining: reasoning.isWanted)
    findings = conditions.findings()
    reasoning.take(conditions.reasonsAgainst)
  }

  /// The latest attempt is when Apple was last asked.
  private mutating func take(attempt: Instant?) {
    if let attempt, checkedAt.map({ $0 < attempt }) ?? true { checkedAt = attempt }
  }

  /// Reports a row that breaks the sales schema's contract.
  package init(reporting bad: BadOrder) {
    row = .bad(bad)
    disposition = .badRow
    transactionId = bad.transactionId
    var finding = Finding(
      kind: .badRow, subject: bad.orderId, reason: "The order row breaks the contract: \(bad.defect).")
    finding.orderId = bad.orderId
    finding.userId = bad.userId
    finding.productId = bad.productId
    finding.bundleId = bad.bundleId
    findings = [finding]
  }
}
