import AppStore
import AuditStore
import Reconciliation

/// A due check that this worker has leased: its row, the shop's description, the offline judgement and the answers.
package struct CheckInProgress: Sendable {
  /// The row as leased. No other worker changes it meanwhile.
  package var row: CheckRow
  package var shop = ProofDescription()
  /// A receipt as the client sent it. Never logged.
  package var payload: String?
  package var kind: ReceiptKind?
  package var judgement: OfflineJudgement?
  /// True if its preliminary facts were stored in this run.
  var isPreliminaryStored = false
  var questions: [Question] = []
  /// Recent statements of Apple by transaction ID.
  var reported: [String: ReportedTransaction] = [:]
  var answers: [ChannelAnswer] = []
  /// The attempts at the next question; nil before the first one.
  var attempts: RetryBudget?

  package init(row: CheckRow) { self.row = row }

  package var subject: CheckSubject { row.subject }

  mutating func judge(_ payload: String, by judge: OfflineJudge) {
    self.payload = payload
    let judged = judge.judge(payload)
    kind = judged.kind
    judgement = judged.judgement
  }

  // MARK: - The proof

  package var genuine: GenuineProof? {
    if case .genuine(let proof) = judgement { proof } else { nil }
  }

  /// True if the last answer was about this payload. Apple judges payloads, whatever the order states.
  var hasAnsweredPayload: Bool {
    guard let now = shop.fingerprint, let before = row.fingerprint else { return shop.fingerprint == row.fingerprint }
    return ProofFingerprint(now).isOfSamePayload(as: ProofFingerprint(before))
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
    guard hasAnsweredPayload else { return false }
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
    let accepted = isAcceptedBefore ? WrittenContent(environment: row.environment, bundleId: row.bundleId) : nil
    return [written, accepted].compactMap(\.self)
  }

  /// True if the signed facts were stored before. A changed payload may be about another purchase.
  private func isStored(_ proof: GenuineProof) -> Bool {
    guard row.containedCount > 0, row.fingerprint == nil || hasAnsweredPayload else { return false }
    guard let id = proof.signedTransactionId else { return true }
    return row.signedTransactionId.map { Identifier($0) } == Identifier(id)
  }

  // MARK: - The questions

  var next: Question? { answers.count < questions.count ? questions[answers.count] : nil }

  /// True if one question has used up its tries. Each remaining question then has one try.
  var hasFailed: Bool { answers.contains { $0.silence != nil } }

  /// True if Apple was asked in this run.
  var isBegun: Bool { attempts != nil || answers.contains { $0.statedAt == nil } }

  /// The answer to a question, taken from a recent statement about the same transaction and app. A notification answers
  /// look-ups only, because a missing refund notification proves nothing about a receipt. An unverifiable receipt is
  /// always asked about: only the answers show what it contains.
  func answer(to question: Question, for bundleId: String) -> ChannelAnswer? {
    if case .claim = judgement { return nil }
    guard case .transaction(let id) = question.matter, let statement = reported[id],
      statement.channel == .serverApi || subject.kind == .lookup,
      statement.bundleId == nil || statement.bundleId == bundleId,
      genuine.map({ $0.environment == statement.environment }) ?? true
    else { return nil }
    var answer = ChannelAnswer(.genuine(environment: statement.environment, bundleId: statement.bundleId, facts: []))
    answer.statedAt = statement.at
    return answer
  }

  // MARK: - Results

  /// A result without an answer. It includes facts until they are stored, because evidence is stored once.
  package func result(
    _ outcome: CheckOutcome, _ reason: PaymentReason? = nil, channel: EvidenceChannel
  ) -> CheckResult {
    var result = CheckResult(of: self, outcome, reason, channel: channel)
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
    guard !isPreliminaryStored, let genuine, !isStored(genuine) else { return nil }
    return result(.pending, .neverChecked, channel: .offline)
  }
}

extension TransactionFact {
  /// The ID and the original ID of the transaction, because an order may state either.
  var ids: Set<String> { Set([transactionId, originalTransactionId].compactMap(\.self)) }
}

/// A statement of Apple about a transaction, with its channel and time.
package struct ReportedTransaction: Hashable, Sendable {
  package var environment: AppleEnvironment
  package var bundleId: String?
  package var channel: EvidenceChannel
  package var at: Instant
}
