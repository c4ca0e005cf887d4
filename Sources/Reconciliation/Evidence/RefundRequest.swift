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

extension RefundRequestFields: FieldCoded {
  public static var blank: RefundRequestFields { RefundRequestFields(date: .blank) }
  public static var fieldCount: Int { 3 }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&date, "refund_requested_at")
    try coder.code(&reason, "consumption_request_reason")
    try coder.code(&declinedDate, "refund_declined_at")
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
