import Reconciliation

/// The transactions of one customer in one app, from Get Transaction History or Get Refund History. What was read before
/// a page failed is kept.
package struct HistoryAnswer: Hashable, Sendable {
  /// How the reading ended.
  package enum End: Hashable, Sendable {
    /// The last page was read.
    case complete
    /// As many pages as wanted were read, and there are more: go on from `revision`.
    case pageLimit
    /// This side does not know the id.
    case notFound
    /// It is no id of Apple's.
    case malformedId
    /// 4040001: the customer's account does not exist any more.
    case accountGone
    /// A page did not come: go on from `revision` another time.
    case unanswered(Silence)
    /// Apple refuses our credential or our request: nothing follows about what was asked.
    case fault(AppleFault)
  }

  /// One for each signed transaction that is believed, in Apple's order: by last change. A transaction that changed
  /// since an earlier reading comes again, so that rows are no count of purchases.
  package var transactions: [AppleTransaction] = []
  /// Where to go on: what comes after it was not read, or held something that is not believed. Nil: from the start.
  package var revision: String?
  /// How many signed transactions are not believed.
  package var refused = 0
  package var end: End
  package var trail = ServerAPITrail()

  package init(revision: String?, end: End) {
    self.revision = revision
    self.end = end
  }

  /// What the answer says about the health of Apple's side.
  package var health: CircuitBreaker.CallResult {
    guard case .unanswered(let silence) = end else { return .success }
    return CircuitBreaker.CallResult(silence)
  }
}

extension HistoryAnswer.End {
  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .notFound: self = .notFound
    case .accountGone: self = .accountGone
    case .malformedId: self = .malformedId
    case .revisionRefused: self = .unanswered(Silence(reason: .appleError, detail: "Apple refuses its own revision"))
    case .windowExpired: self = .unanswered(Silence(reason: .appleError, detail: "a pagination error without a token"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }
}
