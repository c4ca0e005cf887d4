/// The kind of a payload, recognised from its content.
public enum ReceiptKind: String, Hashable, CaseIterable, Sendable {
  /// A base64 PKCS#7 container of every purchase on the device.
  case app
  /// The iOS 6 property list of one purchase.
  case transaction
  /// A JWS of one purchase.
  case signed
  case malformed
}

extension Vocabularies {
  public static let receiptKind = Vocabulary<ReceiptKind>()
}

/// The state of a proof: a receipt, or the look-up of an ID that an order states.
public typealias ProofState = ProofStateFields<Identifier, String>

public struct ProofStateFields<ID: FieldText, Text: FieldText>: Equatable {
  public var outcome: CheckOutcome
  /// The `payment_reason` of the last answer or of its absence; nil: verified.
  public var reason: PaymentReason?
  public var kind: ReceiptKind?
  public var channel: EvidenceChannel?
  /// The environment in Apple's answer or signature, never the client's claim.
  public var environment: AppleEnvironment?
  public var bundleId: Text?
  /// verifyReceipt's `status` or the Server API's error code.
  public var appleStatus: Int32?
  /// Consecutive attempts without a usable answer, plus the answer if there was one.
  public var attempts: Int32
  public var lastAttempt: Instant?
  public var due: Dueness?
  /// The as-of of the first unanswered question since the last answer.
  public var unansweredSince: Instant?
  /// The as-of of the run that got the last usable answer.
  public var answeredAt: Instant?
  /// The one transaction ID in the verified payload; nil for app receipts, which list many.
  public var signedTransactionId: ID?
  public var containedCount: Int32
  /// True if the signer is unknown, and Apple was asked about the IDs in the proof instead.
  /// Any client can state an ID, so such a proof supports no claim against another order.
  public var isUnproven = false
  public var failedCheck: Text?

  public static var neverChecked: ProofStateFields { ProofStateFields() }

  public init() {
    outcome = .pending
    reason = .neverChecked
    attempts = 0
    containedCount = 0
  }

  public var nextAttempt: Instant? { due?.from }

  /// When Apple is asked next if an accusation is open. The next run stores an accusation that the last one opened.
  public func nextAttempt(isAccused: Bool) -> Instant? {
    guard isAccused, let due, due.rank == .stale, outcome == .verified, let lastAttempt else { return nextAttempt }
    return min(due.from, lastAttempt + RetrySchedule.nightly)
  }

  /// True if no run has taken the proof up yet.
  public var isUnknown: Bool { outcome == .pending && due == nil && !isOfUnconfiguredApp }

  /// True if no run has asked about the receipt, because its order's app was not configured.
  public var isOfUnconfiguredApp: Bool { outcome == .pending && reason == .wrongBundle }

  /// True if Apple owes an answer to a run of that as-of.
  /// - Parameter stuckAfter: the age at which a missing answer is a finding.
  public func isOwed(asOf: Instant, stuckAfter: Span) -> Bool {
    if isUnknown { return true }
    return Dueness.isOwed(
      due, outcome: outcome, unansweredSince: unansweredSince, reason: reason, asOf: asOf, stuckAfter: stuckAfter)
  }

  /// True if no answer states what the proof proves. Without root certificates nothing was asked.
  var isUnanswered: Bool {
    switch outcome {
    case .pending, .unanswered, .review: reason != .noRoots
    case .verified, .rejected, .notFound: false
    }
  }

  /// The reason while no answer is usable. A reason that proves something is not allowed in `unconfirmed`.
  var unconfirmedReason: PaymentReason { reason.flatMap { $0.provesUnpaid ? nil : $0 } ?? .appleError }

  /// True if an answer is missing. A deleted account is an answer, and so is a contradiction.
  var awaitsAnswer: Bool { isUnanswered && reason != .accountGone && reason != .contradiction }

  /// True if a verified proof was asked about again without an answer, and the question is not stuck.
  func isRenewalUnanswered(_ rules: Rules) -> Bool {
    outcome == .verified && unansweredSince != nil && !isStuck(rules)
  }

  /// True if Apple owes an answer that may state a refund of what the proof contains, and the question is not stuck.
  func owesRefundStatement(_ rules: Rules) -> Bool {
    if isStuck(rules) { return false }
    if isRenewalUnanswered(rules) || awaitsAnswer { return true }
    guard outcome == .verified, let due else { return false }
    return isOwed(asOf: rules.asOf, stuckAfter: rules.stuckAfter) && rules.asOf - due.from < rules.stuckAfter
  }

  /// True if a missing answer may state the kind of purchase or a refund, beyond the list in the receipt.
  public var awaitsDetails: Bool { awaitsAnswer && kind != .signed }

  /// True if the proof supports its sender's claim: neither rejected nor by an unknown signer.
  public var isProof: Bool { outcome != .rejected && !isUnproven }

  /// True if a local check refused the proof. No question to Apple renews such an answer.
  var isRefusedLocally: Bool { outcome == .rejected && channel == .offline }

  public var isUnreadable: Bool { outcome == .rejected && reason == .malformed }

  /// True if a missing answer could reveal a production payment. A signed or sandbox proof cannot.
  /// For an old receipt of one purchase Apple also returns the later periods of its subscription.
  public var mayRevealPayment: Bool {
    switch outcome {
    case .verified, .rejected, .notFound: false
    case .pending, .unanswered: isOpenForPayment
    // A systemic refusal was no answer: the proof is judged again, whatever it contains.
    case .review: reason == .systemic || isOpenForPayment
    }
  }

  /// True if a missing answer could move a payment to another order, and the check is not stuck.
  public func mayMovePayment(_ rules: borrowing Rules) -> Bool {
    guard mayRevealPayment, outcome != .review || reason == .systemic else { return false }
    return !isStuck(rules)
  }

  /// True if the question has been without an answer for `audit.stuckAfter`.
  /// Apple is not asked about a proof beyond the horizon. Such a proof counts as asked since its due date.
  func isStuck(_ rules: borrowing Rules) -> Bool {
    let since = unansweredSince ?? (due?.rank == .judgedOffline ? due?.from : nil)
    return since.map { rules.asOf - $0 >= rules.stuckAfter } ?? false
  }

  /// True if the content of the proof is unknown, and an answer may still reveal it.
  public var isUnread: Bool {
    guard containedCount == 0 else { return false }
    return switch outcome {
    case .verified, .rejected, .notFound: false
    case .pending, .unanswered: reason != .noRoots && isOpenForPayment
    case .review: reason == .systemic
    }
  }

  private var isOpenForPayment: Bool {
    (signedTransactionId == nil || kind == .transaction) && (environment ?? .production) == .production
  }
}

extension ProofStateFields: FieldCoded {
  public static var blank: ProofStateFields { .neverChecked }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    coder.name("outcome")
    try coder.code(word: &outcome, of: Vocabularies.outcome)
    coder.name("reason")
    try coder.code(word: &reason, of: Vocabularies.reason)
    coder.name("payload_kind")
    try coder.code(word: &kind, of: Vocabularies.receiptKind)
    coder.name("channel")
    try coder.code(word: &channel, of: Vocabularies.channel)
    coder.name("environment")
    try coder.code(word: &environment, of: Vocabularies.environment)
    try coder.code(&bundleId, "bundle_id")
    try coder.code(&appleStatus, "apple_status")
    try coder.code(&attempts, "attempts")
    try coder.code(&lastAttempt, "last_attempt")
    try coder.code(&due)
    try coder.code(&unansweredSince, "unanswered_since")
    try coder.code(&answeredAt, "answered_at")
    try coder.code(&signedTransactionId, "signed_transaction_id")
    try coder.code(&containedCount, "brought_count")
    try coder.code(&isUnproven, "is_unproven")
    try coder.code(&failedCheck, "failed_check")
  }
}

extension ProofStateFields: Hashable where ID: Hashable, Text: Hashable {}
extension ProofStateFields: Sendable where ID: Sendable, Text: Sendable {}
