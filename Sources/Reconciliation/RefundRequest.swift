/// Apple's notification that a customer asked for a refund, or that Apple refused one.
public enum RefundRequestNotice: Hashable, Sendable {
  /// `CONSUMPTION_REQUEST`, with Apple's `consumptionRequestReason`; nil where Apple gives none.
  case requested(reason: String?)
  /// `REFUND_DECLINED`.
  case declined

  /// The word in the database.
  public var word: String {
    switch self {
    case .requested: "requested"
    case .declined: "declined"
    }
  }

  /// The notice with a word of the database; nil for no word.
  public init?(word: String?, reason: String?) {
    switch word {
    case "requested": self = .requested(reason: reason)
    case "declined": self = .declined
    default: return nil
    }
  }

  /// Apple's reason for a request.
  public var reason: String? {
    switch self {
    case .requested(let reason): reason
    case .declined: nil
    }
  }
}

/// The newest refund request of a customer for one transaction.
public struct RefundRequest: Hashable, Sendable {
  /// When Apple signed the request.
  public var date: Instant
  /// Apple's `consumptionRequestReason`: `FULFILLMENT_ISSUE` is the customer's word for "paid, not delivered".
  public var reason: String?
  /// When Apple declined the request.
  public var declinedDate: Instant?

  public init(date: Instant, reason: String? = nil, declinedDate: Instant? = nil) {
    (self.date, self.reason, self.declinedDate) = (date, reason, declinedDate)
  }

  /// The last moment for an answer: 12 hours later (Apple: Send Consumption Information).
  public var deadline: Instant { date + .hours(12) }

  /// Takes a notice that is newer than all notices before.
  static func after(_ request: RefundRequest?, _ notice: RefundRequestNotice, at date: Instant) -> RefundRequest? {
    switch notice {
    case .requested(let reason): return RefundRequest(date: date, reason: reason)
    case .declined:
      var declined = request
      declined?.declinedDate = date
      return declined
    }
  }
}

extension TransactionRecord {
  /// The refund request that Apple has neither granted nor declined.
  public var openRefundRequest: RefundRequest? {
    guard let request = self.refundRequest, request.declinedDate == nil else { return nil }
    let refunds = [self.revocation?.date, self.revocationWithdrawnDate].compactMap(\.self)
    return refunds.contains { $0 >= request.date } ? nil : request
  }
}

/// Apple's `deliveryStatus` in Send Consumption Information, as far as the shop's records tell it.
public enum DeliveryStatus: String, Hashable, CaseIterable, Sendable {
  case delivered = "DELIVERED"
  case undelivered = "UNDELIVERED_OTHER"
}

extension OrderFacts {
  /// The delivery status of the order.
  public var deliveryStatus: DeliveryStatus {
    switch goods {
    case .inFull: .delivered
    case .partly, .none: .undelivered
    }
  }
}
