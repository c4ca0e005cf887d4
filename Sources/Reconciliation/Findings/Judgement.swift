/// The result of the audit for one order row.
public struct Judgement: Hashable, Sendable {
  public var row: OrderRow
  public var verdict: Verdict?
  public var disposition: Disposition
  /// True if no missing answer could change the order's payment.
  public private(set) var isPaymentFinal = true
  /// Worst first; each kind at most once on one subject.
  public var findings: [Finding]
  public var paidAt: Instant?
  public var deliveredAt: Instant?
  public var refundedAt: Instant?
  public var checkedAt: Instant?
  public var environment: AppleEnvironment?
  public var transactionId: Identifier?
  public var country: Country?
  /// The refunded part of the order's amount; nil: nothing was refunded, or an unknown share.
  public private(set) var refundedAmount: Money?
  /// Owned purchases that pay for no unit of the order.
  public private(set) var furtherCharges: [PurchaseKey] = []
  /// Owned production transactions that renew a subscription.
  public private(set) var renewals: [Identifier] = []

  /// Judges one order without clock, database and network.
  public init(judging facts: consuming OrderFacts, rules: Rules) {
    var reasoning = Reasoning(isWanted: false)
    self.init(judging: facts, rules: rules, reasoning: &reasoning)
  }

  public static func explained(_ facts: OrderFacts, rules: Rules) -> (judgement: Judgement, reasoning: Reasoning) {
    var reasoning = Reasoning(isWanted: true)
    let judgement = Judgement(judging: facts, rules: rules, reasoning: &reasoning)
    return (judgement, reasoning)
  }

  private init(judging facts: consuming OrderFacts, rules: Rules, reasoning: inout Reasoning) {
    facts.decideDoubtfulRefunds()
    let (verdict, steps) = facts.verdict(rules: rules, isExplaining: reasoning.isWanted)
    reasoning.steps = steps
    row = .valid(facts.order)
    self.verdict = verdict
    isPaymentFinal = facts.isOwnershipFinal(rules)
    var because = Because(isWanted: reasoning.isWanted)
    disposition = facts.disposition(of: verdict, rules, &because)
    reasoning.disposition = because.text
    if facts.claims.owned.isEmpty {
      let proof = verdict.transaction
      checkedAt = proof?.checkedAt
      environment = proof?.environment
      country = proof?.country
      transactionId = facts.order.transactionId ?? proof?.smallestId
    } else {
      for record in facts.claims.owned where record.environment == .production && record.isLaterPeriod {
        renewals += record.keys.map(\.transactionId)
      }
      if facts.claims.owned.count > 1 {
        let payments = Set(facts.payments.map(\.purchaseKey))
        furtherCharges = facts.claims.owned.map(\.purchaseKey).filter { !payments.contains($0) }
      }
      refundedAmount = facts.refundedAmount
      paidAt = facts.claims.owned[0].saleDate
      refundedAt =
        facts.refundedPayments.compactMap { $0.revocation?.date }.max() ?? facts.claims.owned[0].revocation?.date
      checkedAt = facts.claims.owned[0].checkedAt
      environment = facts.claims.owned[0].environment
      country = facts.claims.owned[0].country
      transactionId = facts.claims.owned[0].shownId(stated: facts.order.transactionId)
    }
    deliveredAt = facts.unrevokedDeliveries.lazy.map { $0.deliveredAt }.max()
    findings = []
    take(attempt: facts.lookup?.lastAttempt)
    for receipt in facts.receipts { take(attempt: receipt.state.lastAttempt) }
    let conditions = FindingRules(facts: facts, rules: rules, judgement: self, isExplaining: reasoning.isWanted)
    findings = conditions.findings()
    reasoning.declined = conditions.declinedReasons
  }

  mutating func take(attempt: Instant?) {
    guard let attempt else { return }
    checkedAt = checkedAt.map { max($0, attempt) } ?? attempt
  }

  public init(reporting bad: BadOrder) {
    row = .bad(bad)
    disposition = .badRow
    transactionId = bad.transactionId
    var finding = Finding(
      kind: .badRow, subject: .row(.order, bad.orderId, userId: bad.userId, productId: bad.productId),
      reason: "The order row breaks the contract: \(bad.defect).")
    finding.orderId = bad.orderId
    finding.userId = bad.userId
    finding.productId = bad.productId
    finding.bundleId = bad.bundleId
    finding.transactionId = bad.transactionId
    finding.occurredAt = bad.isUndated ? nil : bad.createdAt
    findings = [finding]
  }
}

/// The reasons of a judgement, in words.
/// The rules write them while they decide. An audit of all orders asks for none, and no sentence is made.
public struct Reasoning: Sendable {
  let isWanted: Bool
  public internal(set) var steps: [VerdictRule.Step] = []
  public internal(set) var disposition = ""
  public internal(set) var declined: [FindingKind: String] = [:]
}
