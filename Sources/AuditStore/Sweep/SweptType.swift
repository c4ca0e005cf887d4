import Reconciliation

/// A type of Apple's notifications that says something about money (App Store Server Notifications, `notificationType`).
package enum SweptType: String, Hashable, CaseIterable, Sendable {
  case refund = "REFUND"
  case refundReversed = "REFUND_REVERSED"
  case revoke = "REVOKE"
  case oneTimeCharge = "ONE_TIME_CHARGE"
  case didRenew = "DID_RENEW"
  case subscribed = "SUBSCRIBED"

  /// How far a window goes back behind the one before it, for notifications that come to light late.
  ///
  /// Apple repeats a notification that was not taken 1, 12, 24, 48 and 72 hours after the attempt before, 157 hours in
  /// all. Refunds and their like are few, so that going back over the whole series costs a page or two. Notifications of
  /// sales are as many as sales; the longest delay that is known is about an hour, and a sale that comes to light later
  /// still is found by its order's own look-up, or in its customer's history.
  package var overlap: Span {
    switch self {
    case .refund, .refundReversed, .revoke: .days(7)
    case .oneTimeCharge, .didRenew, .subscribed: .hours(12)
    }
  }
}
