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

  package var context: CheckContext
  package var matter: Matter

  package init(context: CheckContext, matter: Matter) {
    self.context = context
    self.matter = matter
  }

  /// A check that nobody has asked about.
  package init(subject: CheckSubject, matter: Matter, orderId: Identifier?, receivedAt: Instant) {
    context = CheckContext(
      row: CheckRow(subject: subject, history: CheckHistory(dated: receivedAt, knownSince: receivedAt)))
    context.orderId = orderId
    self.matter = matter
  }

  package var subject: CheckSubject { context.row.subject }
  package var orderId: Identifier? { context.orderId }
  /// The app that the order names; nil for the only app.
  package var bundleId: String? {
    get { context.bundleId }
    set { context.bundleId = newValue }
  }
  /// The transaction that the order names.
  package var namedTransactionId: String? {
    get { context.namedTransactionId }
    set { context.namedTransactionId = newValue }
  }
  /// When the receipt came, or the youngest order that names the id was made.
  package var receivedAt: Instant { context.row.history.dated }
  /// Where an earlier answer found it; saves a request.
  package var environment: AppleEnvironment? {
    get { context.row.environment }
    set { context.row.environment = newValue }
  }
  /// What was answered before.
  package var outcome: CheckOutcome {
    get { context.row.history.outcome }
    set { context.row.history.outcome = newValue }
  }
  /// How often it was asked in a row without a usable answer.
  package var attempts: Int {
    get { Int(context.row.history.attempts) }
    set { context.row.history.attempts = Int32(clamping: newValue) }
  }
  /// How many transactions it has brought so far.
  package var broughtCount: Int {
    get { context.row.broughtCount }
    set { context.row.broughtCount = newValue }
  }
  /// Lets go of the payload.
  mutating func forgetPayload() {
    if case .receipt = matter { matter = .receipt(payload: "") }
  }
}

/// What is known of a check without its payload.
package struct CheckContext: Sendable {
  /// As it was when it was taken from the queue. Nobody else changes it meanwhile.
  package var row: CheckRow
  package var orderId: Identifier?
  /// The app that the order names; nil for the only app.
  package var bundleId: String?
  /// The transaction that the order names.
  package var namedTransactionId: String?
  package var orderCreatedAt: Instant?
  /// The user of the order; of a receipt without an order, its sender.
  package var userId: String?
  /// The product of the order.
  package var productId: String?
  /// As `ProofFingerprint` reads it; nil for a look-up, whose id says it all.
  package var fingerprint: String?
  /// Whether what it says by itself was stored in this run.
  var isSetAside = false

  package init(row: CheckRow) { self.row = row }

  /// Whether the payload is the one that was answered about last. Apple is asked about that: what the order says by now is no
  /// matter of what it accepted or refused.
  var isOfAnsweredPayload: Bool {
    guard let fingerprint, let before = row.fingerprint else { return fingerprint == row.fingerprint }
    return ProofFingerprint(fingerprint).isOfSamePayload(as: ProofFingerprint(before))
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

  /// Whether Apple contradicts itself when it denies the proof: its signature holds, or it has accepted the same proof before.
  package var isKnownToApple: Bool {
    switch judgement {
    case .genuine: true
    // Then both say so.
    case .refused: false
    case .claim, .noRoots, nil: isAcceptedBefore
    }
  }

  private var isAcceptedBefore: Bool {
    let row = due.context.row
    guard due.context.isOfAnsweredPayload else { return false }
    if row.history.tellsOfAcceptance { return true }
    // What was refused, or held because it was one of too many, was not accepted: what it brought an earlier payload did.
    let isRefused = row.history.reason == .systemic || row.held?.refusal.isOfProof ?? false
    return !isRefused && (row.broughtCount > 0 || row.environment != nil)
  }

  /// What an answer about the receipt cannot contradict: what it says in itself, whoever signed it, and what Apple said when
  /// it accepted it.
  package var known: [WrittenContent] {
    let written: WrittenContent? =
      switch judgement {
      case .genuine(let proof): WrittenContent(proof)
      case .claim(let claim): claim.content
      case .noRoots(let content): content
      case .refused, nil: nil
      }
    let row = due.context.row
    let accepted = isAcceptedBefore ? WrittenContent(environment: row.environment, bundleId: row.bundleId) : nil
    return [written, accepted].compactMap(\.self)
  }

  /// The app that the question belongs to: a signature names it, else the order does.
  package var bundleId: String? { genuine?.bundleId ?? due.bundleId }

  /// A result with what is known without anybody's answer. Facts are evidence once: they come along only until they were
  /// stored.
  package func result(
    _ outcome: CheckOutcome, _ reason: PaymentReason? = nil, channel: EvidenceChannel
  ) -> CheckResult {
    var result = CheckResult(context: due.context, kind: kind, outcome: outcome, reason: reason, channel: channel)
    switch judgement {
    case .claim(let claim):
      // What verifyReceipt answers it answers about the payload itself.
      result.isUnproven = channel != .verifyReceipt && !claim.isExpired
      result.failedCheck = claim.why
      if claim.isExpired, kind == .signed, outcome == .verified {
        result.signedTransactionId = claim.transactionIds.first
      }
    case .refused(_, let failedCheck): result.failedCheck = failedCheck
    case .genuine, .noRoots, nil: break
    }
    guard let genuine else { return result }
    result.environment = genuine.environment
    result.bundleId = genuine.bundleId
    result.signedTransactionId = genuine.signedTransactionId
    result.broughtCount = genuine.facts.count
    result.broughtIds = genuine.facts.reduce(into: []) { $0.formUnion($1.ids) }
    if genuine.signedTransactionId != nil { result.provenProductId = genuine.facts.first?.productId }
    if !isStored(genuine) { result.facts = genuine.facts }
    return result
  }

  /// Whether what Apple signed was stored before: the payload may be another one now, which is about another purchase.
  private func isStored(_ proof: GenuineProof) -> Bool {
    guard due.broughtCount > 0 else { return false }
    if due.context.row.fingerprint != nil, !due.context.isOfAnsweredPayload { return false }
    guard let id = proof.signedTransactionId else { return true }
    return due.context.row.signedTransactionId.map { Identifier($0) } == Identifier(id)
  }

  /// What the check comes to when nobody can say more than the receipt itself does.
  package var offlineResult: CheckResult {
    switch judgement {
    case .genuine: result(.verified, channel: .offline)
    case .refused(let reason, _): result(.rejected, reason, channel: .offline)
    case .noRoots: result(.unanswered, .noRoots, channel: .offline)
    case .claim(let claim):
      result(.review, claim.isExpired ? .certificateExpired : .appleError, channel: .offline)
    case nil: result(.review, .appleError, channel: .offline)
    }
  }

  /// What is worth storing although the check stays due: what Apple signed is evidence while Apple is silent.
  package var preliminaryResult: CheckResult? {
    guard !due.context.isSetAside, let genuine, !isStored(genuine) else { return nil }
    return result(.pending, .neverChecked, channel: .offline)
  }
}

extension TransactionFact {
  /// The transaction by its own and its original id: an order may name either.
  var ids: Set<String> { Set([transactionId, originalTransactionId].compactMap(\.self)) }
}
