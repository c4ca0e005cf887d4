import AppStore
import Reconciliation

/// An answer of Apple to a question, from either interface.
package struct ChannelAnswer: Hashable, Sendable {
  package enum Meaning: Hashable, Sendable {
    case genuine(environment: AppleEnvironment, bundleId: String?, facts: [TransactionFact])
    case forged
    /// Neither side knows the ID, or it cannot be an ID.
    case unknown
    case accountGone
    case review
    case silent(Silence)
    /// Apple refuses our credential or request, which proves nothing about the proof.
    case fault(AppleFault)
  }

  package var meaning: Meaning
  /// verifyReceipt's `status` or the Server API's error code.
  package var appleStatus: Int?
  package var httpStatus: Int?
  package var asked: [AppleHost] = []
  package var warnings: [String] = []
  /// When Apple made the statement, if before this run.
  package var statedAt: Instant?
  package var receipt: VerifiedReceipt?
  /// Further facts that Apple sent. They are evidence, but no proof contains them.
  package var furtherFacts: [TransactionFact] = []
  /// Why a part of the answer is missing. The facts are then evidence, but no answer.
  package var missing: Silence?

  package init(_ meaning: Meaning) { self.meaning = meaning }

  package init(_ answer: ReceiptAnswer) {
    switch answer.outcome {
    case .verified(let receipt):
      meaning = .genuine(environment: receipt.environment, bundleId: receipt.bundleId, facts: receipt.facts)
      self.receipt = receipt
    case .rejected: meaning = .forged
    case .accountGone: meaning = .accountGone
    case .review: meaning = .review
    case .unanswered(let silence): meaning = .silent(silence)
    case .fault(let fault): meaning = .fault(fault)
    }
    appleStatus = answer.appleStatus
    httpStatus = answer.httpStatus
    asked = answer.asked
    warnings = answer.warnings
  }

  package init(_ answer: TransactionAnswer) {
    switch answer.outcome {
    case .found(let fact):
      meaning = .genuine(environment: fact.environment, bundleId: fact.bundleId, facts: [fact])
    case .notFound, .malformedId: meaning = .unknown
    case .accountGone: meaning = .accountGone
    case .unanswered(let silence): meaning = .silent(silence)
    case .fault(let fault): meaning = .fault(fault)
    }
    appleStatus = answer.trail.errorCode
    httpStatus = answer.trail.httpStatus
    asked = answer.trail.asked
    warnings = answer.trail.warnings
  }

  /// Adds Apple's statement about the transaction's subscription. It may list all subscriptions of the customer: a
  /// proof of one proves neither another nor a later period.
  package mutating func add(_ answer: SubscriptionAnswer) {
    asked += answer.trail.asked
    warnings += answer.trail.warnings
    missing = answer.silence
    switch (answer.outcome, meaning) {
    case (.found(let statuses), .genuine(let environment, let bundleId, let facts)):
      let latest = statuses.filter { $0.environment == environment }
      let asked = Set(facts.map(\.transactionId))
      meaning = .genuine(
        environment: environment, bundleId: bundleId, facts: facts + latest.filter { asked.contains($0.transactionId) })
      furtherFacts += latest.filter { !asked.contains($0.transactionId) }
    case (.fault(let fault), .genuine(_, _, let facts)):
      furtherFacts += facts
      meaning = .fault(fault)
    case (.fault(let fault), _): meaning = .fault(fault)
    case (.unanswered, _), (.found, _), (.notFound, _), (.malformedId, _), (.accountGone, _): break
    }
  }

  /// The answer about the transaction, and the side that gave it, if that about its subscription is missing.
  package var received: (answer: ChannelAnswer, side: AppleHost)? {
    guard missing != nil, case .genuine(let environment, let bundleId, let facts) = meaning else { return nil }
    var received = self
    // The first fact is the transaction, and all others came with the incomplete part.
    received.meaning = .genuine(environment: environment, bundleId: bundleId, facts: Array(facts.prefix(1)))
    // The next request is counted alone.
    (received.furtherFacts, received.missing, received.asked, received.warnings) = ([], nil, [], [])
    return (received, Question.side(of: environment))
  }

  /// The effect of the answer on the circuit breaker. A rate limit is no failure, because the rate gate handles it.
  /// Neither is 21002 about a receipt that is also refused here: its sender could otherwise stop all requests.
  func health(isRefusedHere: Bool, failure: CircuitBreaker.CallResult = .failure) -> CircuitBreaker.CallResult {
    guard let silence else { return asked.isEmpty ? .abandoned : .success }
    if isRefusedHere, isUnreadableReceiptStatus { return .abandoned }
    return silence.reason == .rateLimited ? .abandoned : failure
  }

  /// True for status 21002: the receipt is damaged, or Apple's service has a passing fault.
  var isUnreadableReceiptStatus: Bool { appleStatus == 21_002 }

  /// Why there is no complete answer; nil for an answer.
  var silence: Silence? {
    if case .silent(let silence) = meaning { silence } else { missing }
  }

  var facts: [TransactionFact] {
    if case .genuine(_, _, let facts) = meaning { facts } else { [] }
  }

  var isFault: Bool {
    if case .fault = meaning { true } else { false }
  }

  /// The credentials that Apple accepted; nil is the request itself. The secret counts for subscriptions only.
  func accepted(bundleId: String) -> [AppleFault.Credential?] {
    if asked.isEmpty { return [] }
    switch meaning {
    case .genuine(_, let proven, let facts):
      guard receipt != nil else { return [nil, .serverAPIKey, .rootCertificates] }
      return proven == bundleId && facts.contains { $0.expiresDate != nil } ? [nil, .sharedSecret] : [nil]
    case .unknown: return [nil, .serverAPIKey]
    case .forged, .accountGone, .review: return [nil]
    case .silent, .fault: return []
    }
  }

  /// True if a retry may succeed. A timeout has cost its time already, so it is retried only in an outage.
  func isWorthRetrying(inOutage isOutage: Bool) -> Bool {
    // With a Retry-After, the question has to wait.
    guard let silence, silence.retryAfter == nil || silence.reason == .rateLimited else { return false }
    switch silence.reason {
    case .appleError, .rateLimited: return true
    case .unreachable: return isOutage || silence.detail != "timeout"
    }
  }
}

extension PaymentReason {
  package init(_ silence: Silence) {
    switch silence.reason {
    case .unreachable: self = .unreachable
    case .rateLimited: self = .rateLimited
    case .appleError: self = .appleError
    }
  }
}

extension AskingGate {
  /// Records the effect of an answer, and returns the lane that pauses from now on.
  func note(
    _ answer: ChannelAnswer, _ permit: Permit, isRefusedHere: Bool = false,
    failure: CircuitBreaker.CallResult = .failure, bundleId: String = ""
  ) -> Lane? {
    let health = answer.health(isRefusedHere: isRefusedHere, failure: failure)
    for credential in answer.accepted(bundleId: bundleId) { accept(credential, of: permit.lane.app) }
    // A question that went on to the other side was answered by the first one.
    guard let last = answer.asked.last, last != permit.lane.side else { return record(health, permit) }
    _ = record(.success, permit)
    guard case .granted(let other) = admit(Lane(app: permit.lane.app, side: last)) else { return nil }
    return record(health, other)
  }
}
