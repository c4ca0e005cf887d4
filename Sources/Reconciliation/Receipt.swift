/// Which of the three receipt kinds a payload is, told from its content.
public enum ReceiptKind: String, Hashable, CaseIterable, Sendable {
  /// A base64 PKCS#7 container of every purchase on the device.
  case app
  /// The iOS 6 property list of one purchase.
  case transaction
  /// A JWS of one purchase.
  case signed
  /// None of the three.
  case malformed
}

/// What asking about a proof has led to so far.
public enum CheckOutcome: String, Hashable, CaseIterable, Sendable {
  /// Nobody has asked yet.
  case pending
  /// Authentic: Apple said so, or its signature holds. What it brings are transactions.
  case verified
  /// Proven false or worthless; the reason says how.
  case rejected
  /// Asked, and no usable answer came; asked again by the schedule.
  case unanswered
  /// Apple answered something that only a person can take further.
  case review
  /// A look-up by id that found nothing in production and sandbox.
  case notFound = "not_found"
}

/// The state of a proof: a receipt, or the look-up of a transaction id that an order names without a receipt.
public struct ProofState: Hashable, Sendable {
  public var outcome: CheckOutcome
  /// The `payment_reason` that the last answer, or its absence, gives; nil when verified.
  public var reason: PaymentReason?
  public var kind: ReceiptKind?
  /// `verifyReceipt`, `serverApi` or `offline`: who was asked last.
  public var channel: EvidenceChannel?
  /// The environment that Apple's answer or signature names; never the client's claim.
  public var environment: AppleEnvironment?
  /// The app that the verified proof belongs to.
  public var bundleId: String?
  /// verifyReceipt's `status` or the Server API's error code.
  public var appleStatus: Int32?
  /// How often it was asked without a usable answer in a row, plus the answer if there was one.
  public var attempts: Int32
  public var lastAttempt: Instant?
  /// When it is asked about next; nil: never.
  public var due: Dueness?
  /// As-of of the first question since the last answer that stayed without one.
  public var unansweredSince: Instant?
  /// As-of of the run that got the last usable answer.
  public var answeredAt: Instant?
  /// The one transaction id inside the proof's own payload, once its signature was verified; nil for app receipts, which
  /// list many.
  public var signedTransactionId: Identifier?
  /// How many transactions the proof brought.
  public var broughtCount: Int32
  /// Whether nobody here can tell who signed it, and Apple was asked about the ids that it names instead: anybody can name an
  /// id, so what it brings supports nobody's claim against another's.
  public var isUnproven = false
  /// The check of the signature or the content that failed.
  public var failedCheck: String?

  /// A proof that nobody has asked about.
  public static let neverChecked = ProofState()

  public init() {
    outcome = .pending
    reason = .neverChecked
    attempts = 0
    broughtCount = 0
  }

  /// When it is asked about next; nil: never.
  public var nextAttempt: Instant? { due?.from }

  /// Whether no run has taken it in yet, so that none has asked about it.
  public var isUnknown: Bool { outcome == .pending && due == nil }

  /// Whether Apple owes an answer about it to a run of that as-of.
  ///
  /// - Parameter stuckAfter: the age at which silence is a finding.
  public func isOwed(asOf: Instant, stuckAfter: Span) -> Bool {
    if isUnknown { return true }
    return Dueness.isOwed(
      due, outcome: outcome, unansweredSince: unansweredSince, reason: reason, asOf: asOf, stuckAfter: stuckAfter)
  }

  /// Whether there is no answer that says what it proves. Without root certificates nobody is silent: nobody was asked.
  var isUnanswered: Bool {
    switch outcome {
    case .pending, .unanswered, .review: reason != .noRoots
    case .verified, .rejected, .notFound: false
    }
  }

  /// The same where an answer is still missing: that an account is gone is one, and so is one word against another.
  var awaitsAnswer: Bool { isUnanswered && reason != .accountGone && reason != .contradiction }

  /// Whether an answer is missing that may say more than the list that it is: what a purchase is, and whether it was refunded.
  public var awaitsDetails: Bool { awaitsAnswer && kind != .signed }

  /// Whether what it brings is its sender's, as far as is known: it is not known to be false, and not only a claim.
  public var isProof: Bool { outcome != .rejected && !isUnproven }

  /// Whether it is a payload that nobody can read: what it held nobody knows.
  public var isUnreadable: Bool { outcome == .rejected && reason == .malformed }

  /// Whether the answer that is missing could bring a production payment. A transaction that Apple signed has brought what it
  /// has, and what the sandbox signed brings no money. About an old receipt of one purchase Apple also tells the later
  /// periods of its subscription.
  public var mayBringPayment: Bool {
    switch outcome {
    case .verified, .rejected, .notFound: false
    case .pending, .unanswered: isOpenForPayment
    // One of too many refusals was no answer: whatever it has brought, the proof is judged anew.
    case .review: reason == .systemic || isOpenForPayment
    }
  }

  /// Whether an answer is missing that could give a payment to another order, and its question is not stuck.
  ///
  /// Apple's word that only a person can take it further is an answer, unless it was one refusal of too many.
  public func mayChangeOwners(_ rules: borrowing Rules) -> Bool {
    guard mayBringPayment, outcome != .review || reason == .systemic else { return false }
    return unansweredSince.map { rules.asOf - $0 < rules.stuckAfter } ?? true
  }

  /// Whether nobody knows yet what it holds, and somebody is still to say so: a question that was refused, or that nobody
  /// can ask, tells nothing more.
  public var isUnread: Bool {
    guard broughtCount == 0 else { return false }
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

/// A receipt as the shop stores it (without its payload), and what became of asking about it.
public struct Receipt: Hashable, Sendable {
  public var receiptId: Identifier
  public var orderId: Identifier?
  /// Who sent it.
  public var userId: Identifier?
  /// `Production` or `Sandbox` as the client claimed: compared, never trusted.
  public var claimedEnvironment: String?
  public var receivedAt: Instant
  public var state: ProofState
  /// Whether the row has no date that can be used, which is a defect, so that another one stands in for ``receivedAt``.
  public var isUndated = false
  /// Set when the row breaks the sales schema's contract; such a receipt counts for nothing else.
  public var defect: String?

  public init(
    receiptId: Identifier, orderId: Identifier?, userId: Identifier?, claimedEnvironment: String? = nil,
    receivedAt: Instant, state: ProofState, defect: String? = nil
  ) {
    self.receiptId = receiptId
    self.orderId = orderId
    self.userId = userId
    self.claimedEnvironment = claimedEnvironment
    self.receivedAt = receivedAt
    self.state = state
    self.defect = defect
  }

  /// What a finding on the row itself stands on.
  var subject: Subject { .row(.receipt, receiptId, orderId: orderId, userId: userId) }
}

extension Reason {
  /// The reason of the finding `signature_invalid`, with the check that failed.
  static func unsigned(_ receipt: Receipt) -> Reason {
    let check = receipt.state.failedCheck.map { ": \($0)" } ?? ""
    return "The proof in receipt \(receipt.receiptId) does not carry Apple's signature\(check)."
  }
}
