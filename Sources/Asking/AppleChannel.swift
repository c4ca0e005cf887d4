import AppStore
import Reconciliation
import Run

/// One of Apple's interfaces, for one app: what it is asked about a check, and what its answers mean. Only `ask` has an
/// effect.
package protocol AppleChannel: Sendable {
  var app: Settings.App { get }

  /// What Apple is to be asked, in order; none when nobody can say more than the receipt itself does.
  func questions(about check: JudgedCheck) -> [Question]

  /// Puts one question. Throws only when the task is cancelled before there is an answer, or when the question is not wanted
  /// any more once its turn has come: then nothing was sent.
  func ask(
    _ question: Question, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer

  /// Whether a side is asked nothing for a while, because Apple has said when to come back.
  func isHeldUp(on side: AppleHost) -> Bool

  /// Makes the next question with a credential made anew: the one before was refused.
  func renewCredential() async

  /// What the answers mean for the check.
  ///
  /// - Parameter answers: one for each of its questions, in order.
  func result(of check: JudgedCheck, answers: [ChannelAnswer]) -> CheckResult
}

/// What Apple can be asked.
package struct Question: Hashable, Sendable {
  package enum Matter: Hashable, Sendable {
    /// A receipt, by its payload. Never logged.
    case receipt(payload: String)
    case transaction(id: String)
  }

  package var matter: Matter
  /// The side to begin with.
  package var first: AppleHost

  package init(_ matter: Matter, first: AppleHost) {
    self.matter = matter
    self.first = first
  }

  /// Whether the payload goes along.
  var carriesPayload: Bool {
    switch matter {
    case .receipt: true
    case .transaction: false
    }
  }

  /// Production, unless it is known to be from the sandbox.
  package static func side(of environment: AppleEnvironment?) -> AppleHost {
    environment == .sandbox ? .sandbox : .production
  }
}

/// Apple's answer to a question, whichever interface gave it.
package struct ChannelAnswer: Hashable, Sendable {
  package enum Meaning: Hashable, Sendable {
    /// Authentic, with what it brings.
    case genuine(environment: AppleEnvironment, bundleId: String?, facts: [TransactionFact])
    /// Apple did not sign it.
    case forged
    /// Neither side knows the id, or it is none.
    case unknown
    /// The customer's account does not exist any more.
    case accountGone
    /// A person must look.
    case review
    case silent(Silence)
    /// Our credential or our request is refused. Nothing follows about what was asked; whether it is more than one
    /// question's trouble others tell.
    case fault(AppleFault)
  }

  package var meaning: Meaning
  /// verifyReceipt's `status` or the Server API's error code.
  package var appleStatus: Int?
  /// nil without a reply.
  package var httpStatus: Int?
  /// The sides that were asked, in order; none for what needed no request.
  package var asked: [AppleHost] = []
  package var warnings: [String] = []
  /// When Apple said it, if that was before this run.
  package var toldAt: Instant?
  /// The whole of verifyReceipt's answer to a genuine receipt.
  package var receipt: VerifiedReceipt?
  /// What Apple told besides: evidence, of which nothing was asked and which no proof brings.
  package var told: [TransactionFact] = []
  /// Why a part of the answer is missing: what there is is evidence, and no answer yet.
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
    case .found(let transaction):
      let fact = transaction.fact
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

  /// Takes in what Apple says about the subscription that the transaction belongs to. Without an answer about it the
  /// transaction is known all the same, and the question stays unanswered.
  ///
  /// Apple tells of all subscriptions of the customer: a proof of one is no proof of another, nor of a later period.
  package mutating func add(_ answer: SubscriptionAnswer) {
    asked += answer.trail.asked
    warnings += answer.trail.warnings
    missing = answer.silence
    switch (answer.outcome, meaning) {
    case (.found(let statuses), .genuine(let environment, let bundleId, let facts)):
      let latest = statuses.map(\.transaction.fact).filter { $0.environment == environment }
      let asked = Set(facts.map(\.transactionId))
      meaning = .genuine(
        environment: environment, bundleId: bundleId, facts: facts + latest.filter { asked.contains($0.transactionId) })
      told += latest.filter { !asked.contains($0.transactionId) }
    case (.fault(let fault), .genuine(_, _, let facts)):
      told += facts
      meaning = .fault(fault)
    case (.fault(let fault), _): meaning = .fault(fault)
    case (.unanswered, _), (.found, _), (.notFound, _), (.malformedId, _), (.accountGone, _): break
    }
  }

  /// What the answer says about the health of the side that was asked last. Rate limiting is not an illness: the gate
  /// deals with it. Nor is it one that Apple makes nothing of what is refused here, too: whoever sends such receipts could
  /// stop the asking about everybody.
  ///
  /// - Parameters:
  ///   - isRefusedHere: whether the local check refuses what was asked about.
  ///   - failure: what it says that the question has failed.
  func health(isRefusedHere: Bool, failure: CircuitBreaker.CallResult = .failure) -> CircuitBreaker.CallResult {
    guard let silence else { return asked.isEmpty ? .abandoned : .success }
    if isRefusedHere, isMadeNothingOf { return .abandoned }
    return silence.reason == .rateLimited ? .abandoned : failure
  }

  /// Whether Apple says 21002: the receipt is damaged, or its service has a moment's trouble.
  var isMadeNothingOf: Bool { appleStatus == 21_002 }

  /// Why there is no answer, or no whole one; nil for an answer.
  var silence: Silence? {
    if case .silent(let silence) = meaning { return silence }
    return missing
  }

  /// What it brings.
  var facts: [TransactionFact] {
    if case .genuine(_, _, let facts) = meaning { return facts }
    return []
  }

  var isFault: Bool {
    if case .fault = meaning { return true }
    return false
  }

  /// What Apple accepted when it gave the answer, nil standing for the request itself. The secret is looked at only where a
  /// subscription of the app is concerned.
  func accepted(bundleId: String) -> [AppleFault.Credential?] {
    if asked.isEmpty { return [] }
    switch meaning {
    case .genuine(_, let proven, let facts):
      guard receipt != nil else { return [nil, .serverAPIKey] }
      return proven == bundleId && facts.contains { $0.expiresDate != nil } ? [nil, .sharedSecret] : [nil]
    case .unknown: return [nil, .serverAPIKey]
    case .forged, .accountGone, .review: return [nil]
    case .silent, .fault: return []
    }
  }

  /// Apple's passing troubles are often gone a moment later. A timeout has already cost its time, unless nobody is answered:
  /// then the question has to wait with all others.
  func isWorthAnotherTry(inOutage isOutage: Bool) -> Bool {
    // When Apple says when to come back, that is not now.
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
