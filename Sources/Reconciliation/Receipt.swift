/// Which of the three receipt kinds a payload is, told from its content.
package enum ReceiptKind: String, Hashable, CaseIterable, Sendable {
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
package enum CheckOutcome: String, Hashable, CaseIterable, Sendable {
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
package struct ProofState: Hashable, Sendable {
  package var outcome: CheckOutcome
  /// The `payment_reason` that the last answer, or its absence, gives; nil when verified.
  package var reason: PaymentReason?
  package var kind: ReceiptKind?
  /// `verifyReceipt`, `serverApi` or `offline`: who was asked last.
  package var channel: EvidenceChannel?
  /// The environment that Apple's answer or signature names; never the client's claim.
  package var environment: AppleEnvironment?
  /// The app that the verified proof belongs to.
  package var bundleId: String?
  /// verifyReceipt's `status` or the Server API's error code.
  package var appleStatus: Int32?
  /// How often it was asked without a usable answer in a row, plus the answer if there was one.
  package var attempts: Int32
  package var lastAttempt: Instant?
  /// When it is asked about next; nil: never.
  package var due: Dueness?
  /// As-of of the first question since the last answer that stayed without one.
  package var unansweredSince: Instant?
  /// As-of of the run that got the last usable answer.
  package var answeredAt: Instant?
  /// The one transaction id inside the proof's own payload, once its signature was verified; nil for app receipts, which
  /// list many.
  package var signedTransactionId: Identifier?
  /// How many transactions the proof brought.
  package var broughtCount: Int32

  /// A proof that nobody has asked about.
  package static let neverChecked = ProofState()

  package init() {
    outcome = .pending
    reason = .neverChecked
    attempts = 0
    broughtCount = 0
  }

  /// When it is asked about next; nil: never.
  package var nextAttempt: Instant? { due?.from }

  /// Whether Apple owes an answer about it to a run of that as-of.
  ///
  /// - Parameter stuckAfter: the age at which silence is a finding.
  package func isOwed(asOf: Instant, stuckAfter: Span) -> Bool {
    // What no run has taken in yet has been asked by none.
    if outcome == .pending, due == nil { return true }
    return Dueness.isOwed(
      due, unansweredSince: unansweredSince, reason: reason, asOf: asOf, stuckAfter: stuckAfter)
  }

  /// Whether it is a payload that nobody can read: what it held nobody knows.
  package var isUnreadable: Bool { outcome == .rejected && reason == .malformed }

  /// Whether the answer that is missing could bring a production payment. A proof of one purchase whose signature holds
  /// has brought what it has, and one that the sandbox signed brings no money.
  package var mayBringPayment: Bool {
    switch outcome {
    case .verified, .rejected, .notFound: false
    case .pending, .unanswered: isOpenForPayment
    // One of too many refusals was no answer: whatever it has brought, the proof is judged anew.
    case .review: reason == .systemic || isOpenForPayment
    }
  }

  private var isOpenForPayment: Bool { signedTransactionId == nil && (environment ?? .production) == .production }
}

/// A receipt as the shop stores it (without its payload), and what became of asking about it.
package struct Receipt: Hashable, Sendable {
  package var receiptId: Identifier
  package var orderId: Identifier?
  /// Who sent it.
  package var userId: Identifier?
  /// `Production` or `Sandbox` as the client claimed: compared, never trusted.
  package var claimedEnvironment: String?
  package var receivedAt: Instant
  package var state: ProofState
  /// Set when the row breaks the sales schema's contract; such a receipt counts for nothing else.
  package var defect: String?

  package init(
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
}
