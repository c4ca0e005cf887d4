import Reconciliation

/// Apple's answer about one ID. Every failure is a value; nothing is thrown.
package enum LookupOutcome<Found: Hashable & Sendable>: Hashable, Sendable {
  case found(Found)
  /// No environment has the ID for this app. Apple gives the same answer for IDs of other apps.
  case notFound
  case malformedId
  /// 4040001: the customer's account no longer exists.
  case accountGone
  case unanswered(Silence)
  case fault(AppleFault)

  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .notFound: self = .notFound
    case .accountGone: self = .accountGone
    case .malformedId: self = .malformedId
    case .revisionRefused, .windowExpired:
      self = .unanswered(.appleError("a paging error about an answer without pages"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }

  var silence: Silence? { if case .unanswered(let silence) = self { silence } else { nil } }
}

package struct LookupAnswer<Found: Hashable & Sendable>: Hashable, Sendable {
  package typealias Outcome = LookupOutcome<Found>

  package var outcome: Outcome
  /// The number of parts left out because their signature or content is rejected.
  package var refused = 0
  package var trail = ServerAPITrail()
}

package typealias TransactionAnswer = LookupAnswer<TransactionFact>
