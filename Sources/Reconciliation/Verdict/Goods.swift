/// The share of an order that the user holds.
public enum Goods: Hashable, Sendable {
  case inFull, partly, none
}

/// Apple's `deliveryStatus` in Send Consumption Information.
public enum DeliveryStatus: String, Hashable, CaseIterable, Sendable {
  case delivered = "DELIVERED"
  case undelivered = "UNDELIVERED_OTHER"
}

extension OrderFacts {
  /// The share of the ordered units that were delivered, to any user. Refunded units beside paid ones are not owed.
  public var goods: Goods {
    let units = deliveredUnits
    return units >= Int64(order.quantity) - refundedUnits ? .inFull : (units > 0 ? .partly : .none)
  }

  public var unrevokedUnits: Int64 { validDeliveries.reduce(0) { $0 + ($1.stands ? $1.quantity ?? 0 : 0) } }

  /// Delivered units. Access counts that was taken back after the end of its subscription, for the order of the next
  /// period, or for another plan.
  /// After a refund only units that were not taken back count.
  public var deliveredUnits: Int64 {
    let owned = claims.owned.first.flatMap { $0.isLive ? $0 : nil }
    let isReplaced = owned?.isUpgraded == true
    return validDeliveries.reduce(0) { units, delivery in
      var isDelivered = delivery.stands
      if let end = owned.flatMap(accessEnd), let revoked = delivery.revokedAt, isReplaced || revoked >= end {
        isDelivered = true
      }
      return units + (isDelivered ? delivery.quantity ?? 0 : 0)
    }
  }

  /// The end of the access that the order of a period has to give: of the subscription, or of the period if another
  /// order claims a later one. A refund of later periods, which the status shows, ends the access early.
  private func accessEnd(_ period: TransactionRecord) -> Instant? {
    switch period.subscriptionStatus {
    case .revoked, nil: period.expiresDate
    case .active, .expired, .billingRetry, .gracePeriod:
      hasLaterOrder || period.expiresDate == nil
        ? period.expiresDate : period.subscriptionExpiresDate ?? period.expiresDate
    }
  }

  public var deliveryStatus: DeliveryStatus {
    switch goods {
    case .inFull: .delivered
    case .partly, .none: .undelivered
    }
  }
}
