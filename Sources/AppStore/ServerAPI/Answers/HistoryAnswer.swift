import Reconciliation

/// A customer's transactions in one app; those before a failed page are kept.
package struct HistoryAnswer: Hashable, Sendable {
  package enum End: Hashable, Sendable {
    case complete
    /// The page limit was reached and more pages follow; continue from `revision`.
    case pageLimit
    case notFound
    case malformedId
    /// 4040001: the customer's account no longer exists.
    case accountGone
    /// A page failed; continue from `revision` later.
    case unanswered(Silence)
    case fault(AppleFault)
  }

  /// The verified transactions by last change. One that changed since an earlier reading is repeated.
  package var transactions: [TransactionFact] = []
  /// The revision to continue from: later transactions were not read, or were rejected. Nil: from the start.
  package var revision: String?
  package var refused = 0
  package var end: End
  package var trail = ServerAPITrail()
}

extension HistoryAnswer.End {
  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .notFound: self = .notFound
    case .accountGone: self = .accountGone
    case .malformedId: self = .malformedId
    case .revisionRefused: self = .unanswered(.appleError("Apple refuses its own revision"))
    case .windowExpired: self = .unanswered(.appleError("a pagination error without a token"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }
}
