import AppStore
import Reconciliation

/// A kind of Apple's notifications that says something about money or access (App Store Server Notifications,
/// `notificationType` and, after a slash, `subtype`).
package enum SweptType: String, Hashable, CaseIterable, Sendable {
  case refund = "REFUND"
  case refundReversed = "REFUND_REVERSED"
  case revoke = "REVOKE"
  /// Why customers want their money back: one of their words is "paid, not delivered".
  case consumptionRequest = "CONSUMPTION_REQUEST"
  case oneTimeCharge = "ONE_TIME_CHARGE"
  case didRenew = "DID_RENEW"
  case subscribed = "SUBSCRIBED"
  /// A sale that replaces a running period; Apple announces it in no other way.
  case upgraded = "DID_CHANGE_RENEWAL_PREF/UPGRADE"
  /// A sale by an offer; Apple announces it in no other way.
  case offerRedeemed = "OFFER_REDEEMED"
  case renewalExtended = "RENEWAL_EXTENDED"
  case failedToRenew = "DID_FAIL_TO_RENEW"
  case gracePeriodExpired = "GRACE_PERIOD_EXPIRED"
  case expired = "EXPIRED"

  /// How far a window goes back behind the one before it, for notifications that come to light late.
  ///
  /// Apple repeats a notification that was not taken 1, 12, 24, 48 and 72 hours after the attempt before, 157 hours in
  /// all. Refunds and their like are few, so that going back over the whole series costs a page or two. Notifications of
  /// sales are as many as sales; the longest delay that is known is about an hour, and a sale that comes to light later
  /// still is found by its order's own look-up, or in its customer's history.
  package var overlap: Span {
    switch self {
    case .refund, .refundReversed, .revoke, .consumptionRequest, .renewalExtended: .days(7)
    case .oneTimeCharge, .didRenew, .subscribed, .upgraded, .offerRedeemed: .hours(12)
    case .failedToRenew, .gracePeriodExpired, .expired: .hours(12)
    }
  }

  /// What Apple is asked for.
  ///
  /// - Parameter now: the time of day, by which Apple's reach is measured.
  package func query(start: Instant, end: Instant, now: Instant) -> NotificationQuery {
    let words = rawValue.split(separator: "/").map(String.init)
    return NotificationQuery(
      start: start, end: end, type: words[0], subtype: words.count > 1 ? words[1] : nil, now: now)
  }
}
