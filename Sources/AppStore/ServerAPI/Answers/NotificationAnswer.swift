import Reconciliation

package struct NotificationQuery: Hashable, Sendable {
  /// Apple's retention ("Get Notification History").
  package static let longestReach = Span.days(180)

  package let start: Instant
  /// The end of the window, exclusive.
  package let end: Instant
  package let type: String?
  /// Apple's subtype, such as `UPGRADE`; nil for all of the type. Apple accepts none without a type.
  package let subtype: String?

  /// Moves a start before Apple's retention forward. A pagination token needs exactly the same window, so it is done
  /// once.
  package init(start: Instant, end: Instant, type: String?, subtype: String? = nil, now: Instant) {
    // One hour inside the limit, because later pages take time and clocks differ.
    self.start = max(start, now - Self.longestReach + .hours(1))
    (self.end, self.type) = (end, type)
    self.subtype = type == nil ? nil : subtype
  }
}

extension SweptType {
  package func query(start: Instant, end: Instant, now: Instant) -> NotificationQuery {
    let words = rawValue.split(separator: "/").map(String.init)
    return NotificationQuery(
      start: start, end: end, type: words[0], subtype: words.count > 1 ? words[1] : nil, now: now)
  }
}

package struct AppleNotification: Hashable, Sendable {
  /// The key for deduplication: deliveries are repeated and windows overlap.
  package var uuid: String
  package var type: String
  package var subtype: String?
  package var signedDate: Instant
  /// The transaction when Apple sent the notification, or why it is rejected; nil if there is none.
  package var transaction: Result<TransactionFact, AnswerRefusal>?
}

/// Part of the notification history of one app. If a page fails, the notifications before it are kept.
package struct NotificationAnswer: Hashable, Sendable {
  package enum End: Hashable, Sendable {
    case complete
    /// The page limit was reached and more pages follow; continue from `paginationToken`.
    case pageLimit
    /// Apple no longer accepts the token, or the window is too old. Make a new query without a token.
    case restartWindow
    case unanswered(Silence)
    case fault(AppleFault)
  }

  /// The verified notifications of this app and environment, each UUID once.
  package var notifications: [AppleNotification] = []
  package struct UnverifiableNotification: Hashable, Sendable {
    package var jws: String
    package var reason: String
  }

  /// The rejected notifications, including those of which only the transaction is rejected.
  package var unverifiable: [UnverifiableNotification] = []

  /// True if everything is rejected, and more than one: no single damage explains that.
  package var isDisbelieved: Bool {
    unverifiable.count > 1
      && notifications.allSatisfy { if case .failure = $0.transaction { true } else { false } }
  }
  /// The token to continue from within the same window; nil: from its start.
  package var paginationToken: String?
  package var end: End
  package var trail = ServerAPITrail()
}

extension NotificationAnswer.End {
  init(_ refusal: ServerAPIRefusal) {
    switch refusal {
    case .windowExpired: self = .restartWindow
    case .notFound, .accountGone, .malformedId, .revisionRefused:
      self = .unanswered(.appleError("an error about an id, though none was asked about"))
    case .unanswered(let silence): self = .unanswered(silence)
    case .fault(let fault): self = .fault(fault)
    }
  }
}
