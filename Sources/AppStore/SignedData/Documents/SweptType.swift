import Reconciliation

/// A kind of notification about money or access: `notificationType[/subtype]`. See App Store Server Notifications.
package enum SweptType: String, Hashable, CaseIterable, Sendable {
  case refund = "REFUND"
  case refundReversed = "REFUND_REVERSED"
  case revoke = "REVOKE"
  /// Carries the customer's reason for a refund request, such as an undelivered purchase.
  case consumptionRequest = "CONSUMPTION_REQUEST"
  case refundDeclined = "REFUND_DECLINED"
  case oneTimeCharge = "ONE_TIME_CHARGE"
  case didRenew = "DID_RENEW"
  case subscribed = "SUBSCRIBED"
  /// A sale that replaces a running period; no other notification announces it.
  case upgraded = "DID_CHANGE_RENEWAL_PREF/UPGRADE"
  /// A sale by an offer; no other notification announces it.
  case offerRedeemed = "OFFER_REDEEMED"
  case renewalExtended = "RENEWAL_EXTENDED"
  case failedToRenew = "DID_FAIL_TO_RENEW"
  case gracePeriodExpired = "GRACE_PERIOD_EXPIRED"
  case expired = "EXPIRED"

  /// How far a window overlaps the previous one, for late notifications.
  /// Apple retries 1, 12, 24, 48 and 72 hours after the previous attempt, 157 hours in all. Refunds are few, so
  /// covering all retries costs a page or two. Late sales are found by look-up or history; their longest known delay is
  /// an hour.
  package var overlap: Span {
    switch self {
    case .refund, .refundReversed, .revoke, .consumptionRequest, .refundDeclined, .renewalExtended: .days(7)
    case .oneTimeCharge, .didRenew, .subscribed, .upgraded, .offerRedeemed: .hours(12)
    case .failedToRenew, .gracePeriodExpired, .expired: .hours(12)
    }
  }

  package var reportsSales: Bool { [.oneTimeCharge, .didRenew, .subscribed, .upgraded, .offerRedeemed].contains(self) }

  /// Adds what the notification itself states about the transaction in it.
  func amend(_ fact: inout TransactionFact, _ data: JSONFields?) {
    switch self {
    case .consumptionRequest: fact.refundRequest = .requested(reason: data?.text("consumptionRequestReason"))
    case .refundDeclined: fact.refundRequest = .declined
    case .refundReversed: fact.reversesRefund = true
    case .refund, .revoke, .oneTimeCharge, .didRenew, .subscribed, .upgraded, .offerRedeemed, .renewalExtended,
      .failedToRenew, .gracePeriodExpired, .expired:
      break
    }
  }
}
