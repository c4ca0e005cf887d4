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

/// The result of asking about a proof so far.
public enum CheckOutcome: String, Hashable, CaseIterable, Sendable {
  case pending
  /// Authentic by Apple's answer or by its signature.
  case verified
  case rejected
  /// Asked without a usable answer. The retry schedule applies.
  case unanswered
  /// Answered by Apple, but only a person can decide.
  case review
  /// A look-up by ID without a result in production and sandbox.
  case notFound = "not_found"
}

/// The state of a proof: a receipt, or the look-up of an ID that an order states.
public struct ProofState: Hashable, Sendable {
  public var outcome: CheckOutcome
  /// The `payment_reason` of the last answer or of its absence; nil: verified.
  public var reason: PaymentReason?
  public var kind: ReceiptKind?
  public var channel: EvidenceChannel?
  /// The environment in Apple's answer or signature, never the client's claim.
  public var environment: AppleEnvironment?
  public var bundleId: String?
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
  public var signedTransactionId: Identifier?
  public var containedCount: Int32
  /// True if the signer is unknown, and Apple was asked about the IDs in the proof instead.
  /// Any client can state an ID, so such a proof supports no claim against another order.
  public var isUnproven = false
  public var failedCheck: String?

  public static let neverChecked = ProofState()

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
  public var isUnknown: Bool { outcome == .pending && due == nil }

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

  /// True if an answer is missing. A deleted account is an answer, and so is a contradiction.
  var awaitsAnswer: Bool { isUnanswered && reason != .accountGone && reason != .contradiction }

  /// True if a verified proof was asked about again without an answer, and the question is not stuck.
  func isRenewalUnanswered(_ rules: Rules) -> Bool {
    outcome == .verified && unansweredSince != nil && !isStuck(rules)
  }

  /// True if a missing answer may state the kind of purchase or a refund, beyond the list in the receipt.
  public var awaitsDetails: Bool { awaitsAnswer && kind != .signed }

  /// True if the proof supports its sender's claim: neither rejected nor by an unknown signer.
  public var isProof: Bool { outcome != .rejected && !isUnproven }

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

/// A receipt of the shop without its payload, with the state of its check.
public struct Receipt: Hashable, Sendable {
  public var receiptId: Identifier
  public var orderId: Identifier?
  public var userId: Identifier?
  /// `Production` or `Sandbox` as the client claimed; never trusted.
  public var claimedEnvironment: String?
  public var receivedAt: Instant
  public var state: ProofState
  /// True if the row has no usable date, which is a defect. Another date stands in for ``receivedAt``.
  public var isUndated = false
  /// Set if the row breaks the sales contract. Such a receipt counts for nothing else.
  public var defect: String?

  public init(
    receiptId: Identifier, orderId: Identifier?, userId: Identifier?, claimedEnvironment: String? = nil,
    receivedAt: Instant, state: ProofState, defect: String? = nil
  ) {
    (self.receiptId, self.orderId, self.userId) = (receiptId, orderId, userId)
    (self.claimedEnvironment, self.receivedAt, self.state) = (claimedEnvironment, receivedAt, state)
    self.defect = defect
  }

  var subject: Subject { .row(.receipt, receiptId, orderId: orderId, userId: userId) }
}

extension Reason {
  static func unsigned(_ receipt: Receipt) -> Reason {
    let check = receipt.state.failedCheck.map { ": \($0)" } ?? ""
    return "The proof in receipt \(receipt.receiptId) does not carry Apple's signature\(check)."
  }
}
