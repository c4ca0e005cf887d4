import AuditStore
import Foundation
import Reconciliation
import Reporting

extension Explanation.Order {
  init(_ row: OrderRow, repeatedRows: Int) {
    switch row {
    case .valid(let order):
      self.init(
        orderId: order.orderId, userId: order.userId, bundleId: order.bundleId, productId: order.productId,
        quantity: Int64(order.quantity), amount: order.amount.decimalText, currency: order.amount.currency.code,
        status: order.status.rawValue, transactionId: order.transactionId, appAccountToken: order.appAccountToken,
        createdAt: order.createdAt, verifiedAt: order.verifiedAt, repeatedRows: repeatedRows)
    case .bad(let bad):
      self.init(
        orderId: bad.orderId, userId: bad.userId, bundleId: bad.bundleId, productId: bad.productId,
        quantity: bad.quantity, amount: bad.amountText, currency: bad.currencyText, status: bad.statusText,
        transactionId: bad.transactionId, createdAt: bad.createdAt, defect: bad.defect, repeatedRows: repeatedRows)
    }
  }
}

extension Explanation.Rule {
  init(_ step: VerdictRule.Step) {
    self.init(
      rule: step.rule.rawValue, question: step.rule.question, holds: step.verdict != nil, because: step.because)
  }
}

extension Explanation.Finding {
  init(_ finding: Finding, _ history: Explanation.History?) {
    self.init(
      findingId: finding.findingId, kind: finding.kind, severity: finding.severity, subject: finding.subject.id,
      orderId: finding.orderId, userId: finding.userId, transactionId: finding.transactionId,
      receiptId: finding.receiptId, deliveryId: finding.deliveryId, stands: true, reason: finding.reason.text,
      suggestedAction: finding.suggestedAction, currency: finding.currency?.code,
      amount: finding.amountInRiskCurrency?.decimalText, atStake: finding.atStake?.decimalText, history: history)
  }
}

extension Explanation.Refund {
  init(_ revocation: Revocation) {
    self.init(
      date: revocation.date,
      percentage: revocation.percentage.map { Money.decimalText(Int128($0), digits: 3) }, type: revocation.type,
      reason: revocation.reason)
  }
}

extension Explanation.Statement {
  init(_ fact: TransactionFact, asOf: Instant, about subject: CheckSubject?) {
    let (refunded, refund): (Refunded, Revocation?) =
      switch fact.revocation {
      case .absent: (.silent, nil)
      // The date of the upgrade, not of a refund.
      case .stated(.some) where fact.channel == .verifyReceipt && fact.isUpgraded == true: (.silent, nil)
      case .stated(.none): (.no, nil)
      case .stated(.some(let revocation)): (.yes, revocation)
      }
    self.init(
      signedAt: fact.signedDate, channel: fact.channel, asOf: asOf, aboutKind: subject?.kind.rawValue,
      aboutId: subject?.id, refunded: refunded, refund: refund.map { Explanation.Refund($0) },
      price: fact.priceMilliunits.map { Money.decimalText(Int128($0), digits: 3) }, currency: fact.currency,
      expiresAt: fact.expiresDate, isRenewal: fact.isRenewal, hasOffer: fact.hasOffer, offerPeriod: fact.offerPeriod,
      renewalPrice: fact.renewalPriceMilliunits.map { Money.decimalText(Int128($0), digits: 3) },
      renewalCurrency: fact.renewalCurrency)
  }
}

extension Explanation.Claim {
  init(_ claim: ClaimReasoning.Claim) {
    let token =
      switch claim.token {
      case .same: "own"
      case .other: "other"
      case .unknown: "unknown"
      }
    self.init(
      orderId: claim.order.orderId, userId: claim.order.userId, createdAt: claim.order.createdAt, accountToken: token,
      isProven: claim.isProven, names: claim.isNamed, isFalse: claim.isFalse)
  }
}

extension Explanation.Transaction {
  init(
    _ record: TransactionRecord, isOwned: Bool, standing: String, unclaimed: String?,
    competitors: [Explanation.Competitor], _ reasoning: ClaimReasoning, evidence: [Explanation.Statement]
  ) {
    var token: String?
    if case .stated(.some(let text)) = record.appAccountToken { token = text }
    self.init(
      transactionId: record.transactionId, otherIds: record.otherIds, environment: record.environment,
      productId: record.productId, quantity: record.quantity, purchasedAt: record.purchaseDate,
      expiresAt: record.subscriptionExpiresDate ?? record.expiresDate, bundleId: record.bundleId,
      price: record.price?.decimalText, currency: record.currency,
      refund: record.revocation.map { Explanation.Refund($0) }, refundWithdrawnAt: record.revocationWithdrawnDate,
      isFamilyShared: record.isFamilyShared, appAccountToken: token, isOwned: isOwned, standing: standing,
      unclaimed: unclaimed, competitors: competitors, claims: reasoning.claims.map { Explanation.Claim($0) },
      matching: reasoning.steps.map {
        Explanation.MatchingStep(question: $0.question, left: $0.left, because: $0.because)
      }, evidence: evidence)
  }
}

extension Explanation.Proof {
  init(
    _ subject: CheckSubject, _ receipt: Receipt?, _ state: ProofState, contained: [TransactionKey], isAccused: Bool,
    answers: [Explanation.Answer]
  ) {
    self.init(
      subjectKind: subject.kind.rawValue, subjectId: subject.id, receivedAt: receipt?.receivedAt,
      userId: receipt?.userId, kind: state.kind, claimedEnvironment: receipt?.claimedEnvironment,
      environment: state.environment, outcome: state.outcome, reason: state.reason,
      isUnproven: state.isUnproven ? true : nil, failedCheck: state.failedCheck, attempts: state.attempts,
      lastAttempt: state.lastAttempt, nextAttempt: state.nextAttempt(isAccused: isAccused), defect: receipt?.defect,
      transactions: contained.sorted(), answers: answers)
  }
}

extension Explanation.Delivery {
  init(_ delivery: Delivery) {
    self.init(
      deliveryId: delivery.deliveryId, userId: delivery.userId, productId: delivery.productId,
      quantity: delivery.quantity, deliveredAt: delivery.deliveredAt, revokedAt: delivery.revokedAt,
      defect: delivery.defect)
  }
}

extension Explanation {
  var history: [Moment] {
    var moments = [Moment(at: order.createdAt, event: "ordered")]
    func add(_ at: Instant?, _ event: String) { if let at { moments.append(Moment(at: at, event: event)) } }
    add(order.verifiedAt, "the shop recorded it as paid")
    for proof in proofs {
      let what = proof.subjectKind == "receipt" ? "receipt \(proof.subjectId)" : "transaction id \(proof.subjectId)"
      add(proof.receivedAt, "\(what) received")
      for answer in proof.answers { add(answer.asOf, "asked about \(what): \(answer.outcome.rawValue)") }
    }
    for transaction in transactions {
      add(transaction.purchasedAt, "Apple sold transaction \(transaction.transactionId)")
      add(transaction.refund?.date, "Apple refunded transaction \(transaction.transactionId)")
      add(transaction.refundWithdrawnAt, "Apple reversed the refund of transaction \(transaction.transactionId)")
    }
    for delivery in deliveries {
      add(delivery.deliveredAt, "delivery \(delivery.deliveryId) to user \(delivery.userId)")
      add(delivery.revokedAt, "goods of delivery \(delivery.deliveryId) taken back")
    }
    for finding in findings {
      for event in finding.history?.events ?? [] { add(event.asOf, "finding “\(finding.kind.title)” \(event.event)") }
    }
    // Events of one instant keep their causal order.
    return moments.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
  }
}

extension Instant {
  package var machineText: String { Date(timeIntervalSince1970: Double(seconds)).ISO8601Format() }
}
