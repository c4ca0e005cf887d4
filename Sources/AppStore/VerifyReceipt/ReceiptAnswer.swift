import Reconciliation

/// What asking Apple about one receipt came to. Every trouble is a value: nothing about a receipt is ever thrown.
package struct ReceiptAnswer: Hashable, Sendable {
  /// The answer, sorted by what may be concluded from it.
  package enum Outcome: Hashable, Sendable {
    /// Apple signed the receipt. Whether it is for the right app and product is not judged here.
    case verified(VerifiedReceipt)
    /// 21003: Apple did not sign it.
    case rejected
    /// 21010: the customer's account does not exist any more.
    case accountGone
    /// A status that Apple says not to retry, or sends no longer.
    case review(status: Int)
    /// No answer, or none that says anything about the receipt.
    case unanswered(Silence)
    /// Apple refuses our secret or our request: nothing follows about the receipt.
    case fault(AppleFault)
  }

  package var outcome: Outcome
  /// The last `status` that Apple gave, that of an answer "ask the other side" included.
  package var appleStatus: Int?
  /// The HTTP status of the last exchange; nil when it brought no reply.
  package var httpStatus: Int?
  /// The sides that were asked, in order.
  package var asked: [AppleHost]
  /// For the operator: announced ends of the service, and parts of the answer that could not be read.
  package var warnings: [String]

  package init(
    outcome: Outcome, appleStatus: Int? = nil, httpStatus: Int? = nil, asked: [AppleHost] = [], warnings: [String] = []
  ) {
    self.outcome = outcome
    self.appleStatus = appleStatus
    self.httpStatus = httpStatus
    self.asked = asked
    self.warnings = warnings
  }

  /// What the answer says about the health of Apple's side. Rate limiting is not an illness: the gate deals with it.
  package var health: CircuitBreaker.CallResult {
    switch outcome {
    case .verified, .rejected, .accountGone, .review, .fault: .success
    case .unanswered(let silence):
      switch silence.reason {
      case .unreachable, .appleError: .failure
      case .rateLimited: .abandoned
      }
    }
  }
}

/// Why there is no answer, and when to ask again if Apple said so.
package struct Silence: Hashable, Sendable {
  /// The payment reasons of silence that an exchange can have.
  package enum Reason: String, Hashable, CaseIterable, Sendable {
    /// No connection, no TLS, no reply in time, or a connection lost.
    case unreachable
    /// HTTP 429.
    case rateLimited = "rate_limited"
    /// Apple answered, but with its own trouble or with something unreadable.
    case appleError = "apple_error"
  }

  package var reason: Reason
  /// What happened, in words fit for a log: nothing of the receipt, the secret or the answer's text is in it.
  package var detail: String
  /// Apple's `Retry-After`, as an instant.
  package var retryAfter: Instant?

  package init(reason: Reason, detail: String, retryAfter: Instant? = nil) {
    self.reason = reason
    self.detail = detail
    self.retryAfter = retryAfter
  }

  /// Of what was not asked: the side is held up.
  package static let heldUp = Silence(reason: .rateLimited, detail: "Apple has said to come back later")
}

/// The content of a receipt that Apple says is genuine.
package struct VerifiedReceipt: Hashable, Sendable {
  package var environment: AppleEnvironment
  package var bundleId: String?
  /// What Apple says about each transaction, one fact a transaction id, in the order of the answer. An absent transaction
  /// is no evidence: finished consumables disappear from receipts.
  package var facts: [TransactionFact]
  /// Apple's time of answering; ours where the answer has none, as those for old transaction receipts.
  package var requestDate: Instant
  /// 0, or 21006 for an old receipt whose subscription has expired.
  package var status: Int
  /// When Apple made the receipt; the same each time it is asked about.
  package var creationDate: Instant?
  /// The transaction that the receipt itself is, where it is an old transaction receipt.
  package var ownTransactionId: String?
  /// The end of the grace period by original transaction id, for subscriptions in one.
  package var gracePeriodEnds: [String: Instant] = [:]
  /// What the answer says that cannot be read as one thing or the other. Transactions that it is about are no facts.
  package var contradictions: [AnswerContradiction] = []

  package init(
    environment: AppleEnvironment, bundleId: String?, facts: [TransactionFact], requestDate: Instant, status: Int
  ) {
    self.environment = environment
    self.bundleId = bundleId
    self.facts = facts
    self.requestDate = requestDate
    self.status = status
  }
}
