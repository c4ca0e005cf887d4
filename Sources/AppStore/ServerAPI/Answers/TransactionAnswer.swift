import Reconciliation

/// The answer about one transaction ID. Every failure is a value; nothing is thrown.
package struct TransactionAnswer: Hashable, Sendable {
  package enum Outcome: Hashable, Sendable {
    case found(AppleTransaction)
    /// Neither environment has the ID for this app. Apple gives the same answer for IDs of other apps.
    case notFound
    case malformedId
    /// 4040001: the customer's account no longer exists.
    case accountGone
    case unanswered(Silence)
    case fault(AppleFault)
  }

  package var outcome: Outcome
  package var trail: ServerAPITrail

  package init(outcome: Outcome, trail: ServerAPITrail = ServerAPITrail()) {
    self.outcome = outcome
    self.trail = trail
  }

  package var health: CircuitBreaker.CallResult {
    guard case .unanswered(let silence) = outcome else { return .success }
    return CircuitBreaker.CallResult(silence)
  }
}
