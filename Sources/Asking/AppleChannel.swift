import AppStore
import Reconciliation
import Run

/// One of Apple's interfaces, for one app: what it is asked about a check, and what its answers mean. Only `ask` has an
/// effect.
package protocol AppleChannel: Sendable {
  var app: Settings.App { get }

  /// What Apple is to be asked, in order; none when nobody can say more than the receipt itself does.
  func questions(about check: JudgedCheck) -> [Question]

  /// Puts one question. Throws only when the task is cancelled before there is an answer.
  func ask(_ question: Question) async throws(CancellationError) -> ChannelAnswer

  /// What the answers mean for the check.
  ///
  /// - Parameter answers: one for each of its questions, in order; none of them a fault of ours.
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
    /// Our own fault, with the remedy: nothing follows from it about any check of the app.
    case fault(String)
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
    case .fault(let fault): meaning = .fault(fault.message)
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
    case .fault(let fault): meaning = .fault(fault.message)
    }
    appleStatus = answer.trail.errorCode
    httpStatus = answer.trail.httpStatus
    asked = answer.trail.asked
    warnings = answer.trail.warnings
  }

  /// Takes in what Apple says about the subscription that the transaction belongs to. Without an answer about it the
  /// transaction is known all the same.
  package mutating func add(_ answer: SubscriptionAnswer) {
    asked += answer.trail.asked
    warnings += answer.trail.warnings
    switch (answer.outcome, meaning) {
    case (.found(let statuses), .genuine(let environment, let bundleId, let facts)):
      let latest = statuses.map(\.transaction.fact).filter { $0.environment == environment }
      meaning = .genuine(environment: environment, bundleId: bundleId, facts: facts + latest)
    case (.fault(let fault), _): meaning = .fault(fault.message)
    case (.unanswered(let silence), _):
      warnings.append("Apple did not say how a subscription stands; its grace period is unknown: \(silence.detail)")
    case (.found, _), (.notFound, _), (.malformedId, _), (.accountGone, _): break
    }
  }

  /// What the answer says about the health of the side that was asked last. Rate limiting is not an illness: the gate
  /// deals with it.
  var health: CircuitBreaker.CallResult {
    guard case .silent(let silence) = meaning else { return asked.isEmpty ? .abandoned : .success }
    return silence.reason == .rateLimited ? .abandoned : .failure
  }

  /// Apple's passing troubles are often gone a moment later. A timeout has already cost its time.
  var isWorthAnotherTry: Bool {
    guard case .silent(let silence) = meaning else { return false }
    switch silence.reason {
    case .appleError, .rateLimited: return true
    case .unreachable: return silence.detail != "timeout"
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
