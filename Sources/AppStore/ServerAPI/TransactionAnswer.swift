import Reconciliation

/// What asking Apple about one transaction id came to. Every trouble is a value: nothing about an id is ever thrown.
package struct TransactionAnswer: Hashable, Sendable {
  /// The answer, sorted by what may be concluded from it.
  package enum Outcome: Hashable, Sendable {
    /// Apple's record of it, `fact.environment` included.
    case found(AppleTransaction)
    /// Neither production nor the sandbox has it for this app. Apple gives the same answer for ids of other apps.
    case notFound
    /// It is no transaction id of Apple's.
    case malformedId
    /// 4040001: the customer's account does not exist any more.
    case accountGone
    /// No answer, or none that says anything about the transaction.
    case unanswered(Silence)
    /// Apple refuses our credential or our request: nothing follows about what was asked.
    case fault(AppleFault)
  }

  package var outcome: Outcome
  package var trail: ServerAPITrail

  package init(outcome: Outcome, trail: ServerAPITrail = ServerAPITrail()) {
    self.outcome = outcome
    self.trail = trail
  }

  /// What the answer says about the health of Apple's side.
  package var health: CircuitBreaker.CallResult {
    guard case .unanswered(let silence) = outcome else { return .success }
    return CircuitBreaker.CallResult(silence)
  }
}
