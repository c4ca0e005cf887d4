import AppStore
import AuditStore
import Reconciliation

/// A due check, leased to this worker.
package struct DueCheck: Sendable {
  package enum QuestionTarget: Sendable {
    /// A receipt as the client sent it. Never logged.
    case receipt(payload: String)
    /// A transaction ID that an order states and none of its receipts settles.
    case lookup(transactionId: String)
  }

  package var context: CheckContext
  package var matter: QuestionTarget

  package init(context: CheckContext, matter: QuestionTarget) {
    self.context = context
    self.matter = matter
  }

  package init(subject: CheckSubject, matter: QuestionTarget, orderId: Identifier?, receivedAt: Instant) {
    context = CheckContext(
      row: CheckRow(subject: subject, history: CheckHistory(dated: receivedAt, knownSince: receivedAt)))
    context.orderId = orderId
    self.matter = matter
  }

  package var subject: CheckSubject { context.row.subject }
  package var bundleId: String? {
    get { context.bundleId }
    set { context.bundleId = newValue }
  }
  package var statedTransactionId: String? {
    get { context.statedTransactionId }
    set { context.statedTransactionId = newValue }
  }
  /// When the receipt came, or the newest order with the ID was made.
  package var receivedAt: Instant { context.row.history.dated }
  package var environment: AppleEnvironment? {
    get { context.row.environment }
    set { context.row.environment = newValue }
  }
  package var outcome: CheckOutcome {
    get { context.row.history.outcome }
    set { context.row.history.outcome = newValue }
  }
  package var attempts: Int {
    get { Int(context.row.history.attempts) }
    set { context.row.history.attempts = Int32(clamping: newValue) }
  }
  package var containedCount: Int {
    get { context.row.containedCount }
    set { context.row.containedCount = newValue }
  }
  mutating func forgetPayload() {
    if case .receipt = matter { matter = .receipt(payload: "") }
  }
}

package struct CheckContext: Sendable {
  /// The row as leased. No other worker changes it meanwhile.
  package var row: CheckRow
  package var orderId: Identifier?
  package var bundleId: String?
  /// The transaction ID stated on the order.
  package var statedTransactionId: String?
  package var orderCreatedAt: Instant?
  /// The user of the order, or the sender of a receipt without an order.
  package var userId: String?
  package var productId: String?
  package var fingerprint: String?
  /// True if its preliminary facts were stored in this run.
  var isPreliminaryStored = false

  package init(row: CheckRow) { self.row = row }

  /// True if the last answer was about this payload. Apple judges payloads, whatever the order states.
  var hasAnsweredPayload: Bool {
    guard let fingerprint, let before = row.fingerprint else { return fingerprint == row.fingerprint }
    return ProofFingerprint(fingerprint).isOfSamePayload(as: ProofFingerprint(before))
  }
}

/// A due check with the offline judgement of its receipt.
package struct JudgedCheck: Sendable {
  package var due: DueCheck
  package var kind: ReceiptKind?
  package var judgement: OfflineJudgement?

  package init(_ due: DueCheck, judge: OfflineJudge) {
    self.due = due
    if case .receipt(let payload) = due.matter {
      let judged = judge.judge(payload)
      kind = judged.kind
      judgement = judged.judgement
    }
  }

  package init(_ due: DueCheck, kind: ReceiptKind?, judgement: OfflineJudgement?) {
    self.due = due
    self.kind = kind
    self.judgement = judgement
  }

  package var genuine: GenuineProof? {
    if case .genuine(let proof) = judgement { return proof }
    return nil
  }

  /// True if Apple would contradict itself by denying the proof: it has signed it, or accepted it before.
  package var isKnownToApple: Bool {
    switch judgement {
    case .genuine: true
    // A denial by Apple then agrees with the offline judgement.
    case .refused: false
    case .claim, .noRoots, nil: isAcceptedBefore
    }
  }

  private var isAcceptedBefore: Bool {
    let row = due.context.row
    guard due.context.hasAnsweredPayload else { return false }
    if row.history.impliesAcceptance { return true }
    // A refused or undecided payload was not accepted. Its known transactions come from an earlier payload.
    let isRefused = row.history.reason == .systemic || row.storedRefusal?.refusal.isOfProof ?? false
    return !isRefused && (row.containedCount > 0 || row.environment != nil)
  }

  /// Contents that Apple's answer may not contradict: the receipt's own, and those accepted before.
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

  /// The app that is asked: the one in the signed proof, or else the one stated on the order.
  package var bundleId: String? { genuine?.bundleId ?? due.bundleId }

  /// A result without an answer. It includes facts until they are stored, because evidence is stored once.
  package func result(
    _ outcome: CheckOutcome, _ reason: PaymentReason? = nil, channel: EvidenceChannel
  ) -> CheckResult {
    var result = CheckResult(context: due.context, kind: kind, outcome: outcome, reason: reason, channel: channel)
    switch judgement {
    case .claim(let claim):
      // verifyReceipt judges the payload itself, so its answer proves the content.
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
    result.containedCount = genuine.facts.count
    result.containedIds = genuine.facts.reduce(into: []) { $0.formUnion($1.ids) }
    if genuine.signedTransactionId != nil { result.provenProductId = genuine.facts.first?.productId }
    if !isStored(genuine) { result.facts = genuine.facts }
    return result
  }

  /// True if the signed facts were stored before. A changed payload may be about another purchase.
  private func isStored(_ proof: GenuineProof) -> Bool {
    guard due.containedCount > 0 else { return false }
    if due.context.row.fingerprint != nil, !due.context.hasAnsweredPayload { return false }
    guard let id = proof.signedTransactionId else { return true }
    return due.context.row.signedTransactionId.map { Identifier($0) } == Identifier(id)
  }

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

  /// The result to store while the check stays due: signed facts are evidence even if Apple is silent.
  package var preliminaryResult: CheckResult? {
    guard !due.context.isPreliminaryStored, let genuine, !isStored(genuine) else { return nil }
    return result(.pending, .neverChecked, channel: .offline)
  }
}

extension TransactionFact {
  /// The ID and the original ID of the transaction, because an order may state either.
  var ids: Set<String> { Set([transactionId, originalTransactionId].compactMap(\.self)) }
}
