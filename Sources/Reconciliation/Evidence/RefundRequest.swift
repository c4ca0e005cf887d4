/// Apple's notification that a customer asked for a refund, or that Apple declined it.
public enum RefundRequestNotice: Hashable, Sendable {
  /// `CONSUMPTION_REQUEST` with Apple's `consumptionRequestReason`; nil: not stated.
  case requested(reason: String?)
  /// `REFUND_DECLINED`.
  case declined

  public var word: String {
    switch self {
    case .requested: "requested"
    case .declined: "declined"
    }
  }

  public init?(word: String?, reason: String?) {
    switch word {
    case "requested": self = .requested(reason: reason)
    case "declined": self = .declined
    default: return nil
    }
  }

  public var reason: String? {
    switch self {
    case .requested(let reason): reason
    case .declined: nil
    }
  }
}

/// The newest refund request for one transaction.
public typealias RefundRequest = RefundRequestFields<String>

public struct RefundRequestFields<Text: FieldText>: Equatable {
  public var date: Instant
  /// Apple's `consumptionRequestReason`. `FULFILLMENT_ISSUE` means "paid, not delivered".
  public var reason: Text?
  public var declinedDate: Instant?

  public init(date: Instant, reason: Text? = nil, declinedDate: Instant? = nil) {
    (self.date, self.reason, self.declinedDate) = (date, reason, declinedDate)
  }
}

extension RefundRequestFields: Hashable where Text: Hashable {}
extension RefundRequestFields: Sendable where Text: Sendable {}

extension RefundRequest {
  /// The time limit for an answer: 12 hours (Apple: Send Consumption Information).
  public var deadline: Instant { date + .hours(12) }

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

/// Apple's `deliveryStatus` in Send Consumption Information.
public enum DeliveryStatus: String, Hashable, CaseIterable, Sendable {
  case delivered = "DELIVERED"
  case undelivered = "UNDELIVERED_OTHER"
}

extension OrderFacts {
  public var deliveryStatus: DeliveryStatus {
    switch goods {
    case .inFull: .delivered
    case .partly, .none: .undelivered
    }
  }
}
