import AppStore
import AuditStore
import Reconciliation

/// One thing that is due to be asked about, leased to this run.
package struct DueCheck: Sendable {
  /// What is asked about.
  package enum Matter: Sendable {
    /// A receipt as the client sent it. Never logged.
    case receipt(payload: String)
    /// A transaction id that an order names without a receipt.
    case lookup(transactionId: String)
  }

  package var subject: CheckSubject
  package var matter: Matter
  package var orderId: Identifier?
  /// The app that the order names; nil for the only app.
  package var bundleId: String?
  /// The transaction that the order names.
  package var namedTransactionId: String?
  /// When the receipt came, or the youngest order that names the id was made.
  package var receivedAt: Instant
  /// Where an earlier answer found it; saves a request.
  package var environment: AppleEnvironment?
  /// What was answered before.
  package var outcome: CheckOutcome
  /// How often it was asked in a row without a usable answer.
  package var attempts: Int
  /// How many transactions it has brought so far.
  package var broughtCount: Int

  package init(subject: CheckSubject, matter: Matter, orderId: Identifier?, receivedAt: Instant) {
    self.subject = subject
    self.matter = matter
    self.orderId = orderId
    self.receivedAt = receivedAt
    outcome = .pending
    attempts = 0
    broughtCount = 0
  }
}

/// A due check with what the receipt says by itself.
package struct JudgedCheck: Sendable {
  package var due: DueCheck
  /// nil for a look-up.
  package var kind: ReceiptKind?
  /// nil for a look-up.
  package var judgement: OfflineJudgement?

  package init(_ due: DueCheck, judge: OfflineJudge) {
    self.due = due
    if case .receipt(let payload) = due.matter {
      let judged = judge.judge(payload)
      kind = judged.kind
      judgement = judged.judgement
    }
  }

  /// A check whose judgement is known.
  package init(_ due: DueCheck, kind: ReceiptKind?, judgement: OfflineJudgement?) {
    self.due = due
    self.kind = kind
    self.judgement = judgement
  }

  /// What Apple signed; nil for anything else.
  package var genuine: GenuineProof? {
    if case .genuine(let proof) = judgement { return proof }
    return nil
  }

  /// The app that the question belongs to: a signature names it, else the order does.
  package var bundleId: String? { genuine?.bundleId ?? due.bundleId }

  /// A result with what is known without anybody's answer. Facts are evidence once: they come along only until they were
  /// stored.
  package func result(
    _ outcome: CheckOutcome, _ reason: PaymentReason? = nil, channel: EvidenceChannel
  ) -> CheckResult {
    var result = CheckResult(
      subject: due.subject, orderId: due.orderId, kind: kind, outcome: outcome, reason: reason, channel: channel)
    guard let genuine else { return result }
    result.environment = genuine.environment
    result.bundleId = genuine.bundleId
    result.signedTransactionId = genuine.signedTransactionId
    result.broughtCount = genuine.facts.count
    if due.broughtCount == 0 { result.facts = genuine.facts }
    return result
  }

  /// What the check comes to when nobody can say more than the receipt itself does.
  package var offlineResult: CheckResult {
    switch judgement {
    case .genuine: result(.verified, channel: .offline)
    case .refused(let reason): result(.rejected, reason, channel: .offline)
    case .noRoots: result(.unanswered, .noRoots, channel: .offline)
    case .claim, nil: result(.review, .appleError, channel: .offline)
    }
  }

  /// What is worth storing although the check stays due: what Apple signed is evidence while Apple is silent.
  package var preliminaryResult: CheckResult? {
    guard genuine != nil, due.broughtCount == 0 else { return nil }
    return result(.pending, .neverChecked, channel: .offline)
  }
}
