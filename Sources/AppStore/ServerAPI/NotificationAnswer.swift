import Reconciliation

/// Which notifications are wanted.
package struct NotificationQuery: Hashable, Sendable {
  /// How far back Apple keeps them ("Get Notification History").
  package static let longestReach = Span.days(180)

  /// The first instant of the window.
  package let start: Instant
  /// The end of the window, itself outside.
  package let end: Instant
  /// Apple's word, `REFUND` for instance; nil for all types.
  package let type: String?
  /// Apple's word, `UPGRADE` for instance; nil for all of the type. Apple takes none without a type.
  package let subtype: String?

  /// - Parameters:
  ///   - start: moved forward when it is longer ago than Apple keeps notifications.
  ///   - now: the time of day. It is taken here and not when a page is asked for: a pagination token is good for one and
  ///     the same window only.
  package init(start: Instant, end: Instant, type: String?, subtype: String? = nil, now: Instant) {
    // An hour inside the limit, because later pages and other clocks count as well.
    self.start = max(start, now - Self.longestReach + .hours(1))
    self.end = end
    self.type = type
    self.subtype = type == nil ? nil : subtype
  }
}

/// A notification of Apple's as its history shows it.
package struct AppleNotification: Hashable, Sendable {
  /// Repeated deliveries and overlapping windows bring the same one.
  package var uuid: String
  /// Apple's word, unknown ones included.
  package var type: String
  /// Apple's word for the special case.
  package var subtype: String?
  package var signedDate: Instant
  /// Apple's `status` of the subscription at that time; nil where there is none, or one that is unknown here.
  package var status: SubscriptionState?
  /// Why the customer wants the money back (`CONSUMPTION_REQUEST`): `FULFILLMENT_ISSUE` means "paid, not delivered".
  package var consumptionRequestReason: String?
  /// The transaction as it was when Apple sent the notification, or why it is not believed; nil when there is none.
  package var transaction: Result<SignedTransaction, AnswerRefusal>?
  /// What Apple signed, unchanged: the whole notification.
  package var jws: String
}

/// Part of the notification history of one app. What was read before a page failed is kept.
package struct NotificationAnswer: Hashable, Sendable {
  /// How the reading ended.
  package enum End: Hashable, Sendable {
    /// The last page of the window was read.
    case complete
    /// As many pages as wanted were read, and there are more: go on from `paginationToken`.
    case pageLimit
    /// Apple does not know the pagination token any more, or the window has become too old: make a new query, and ask
    /// without a token.
    case restartWindow
    /// A page did not come: go on from `paginationToken` another time.
    case unanswered(Silence)
    /// Apple refuses our credential or our request: nothing follows about what was asked.
    case fault(AppleFault)
  }

  /// Notifications whose own signature holds, of this app and environment, each uuid once.
  package var notifications: [AppleNotification] = []
  /// A notification that is not believed.
  package struct Disbelieved: Hashable, Sendable {
    /// What came, unchanged.
    package var jws: String
    package var reason: String

    package init(jws: String, reason: String) {
      self.jws = jws
      self.reason = reason
    }
  }

  /// Those included of which only the transaction is not believed.
  package var disbelieved: [Disbelieved] = []

  /// Whether nothing of it is believed, which no single damage explains.
  package var isDisbelieved: Bool {
    disbelieved.count > 1
      && notifications.allSatisfy { notification in
        if case .failure = notification.transaction { return true }
        return false
      }
  }
  /// Where to go on within the same window; nil: from its start.
  package var paginationToken: String?
  package var end: End
  package var trail = ServerAPITrail()

  package init(paginationToken: String?, end: End) {
    self.paginationToken = paginationToken
    self.end = end
  }

  /// What the answer says about the health of Apple's side.
  package var health: CircuitBreaker.CallResult {
    guard case .unanswered(let silence) = end else { return .success }
    return CircuitBreaker.CallResult(silence)
  }
}

extension NotificationAnswer.End {
  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .windowExpired: self = .restartWindow
    case .notFound, .accountGone, .malformedId, .revisionRefused:
      self = .unanswered(Silence(reason: .appleError, detail: "an error about an id, though none was asked about"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }
}
