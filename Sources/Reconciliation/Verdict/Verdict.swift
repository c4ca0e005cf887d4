/// The verdict on an order's payment.
/// Indirect, because a transaction is large to copy from rule to rule.
public indirect enum Verdict: Hashable, Sendable {
  case paid(TransactionRecord)
  case nothingToPay
  case reversed(TransactionRecord)
  /// Proven unpaid, by the transaction if there is one.
  case unpaid(PaymentReason, TransactionRecord?)
  case unconfirmed(PaymentReason)

  public var name: String {
    switch self {
    case .paid, .nothingToPay: "paid"
    case .reversed: "reversed"
    case .unpaid: "unpaid"
    case .unconfirmed: "unconfirmed"
    }
  }

  /// The word of the column `payment_reason`; nil: reversed, or paid by a purchase.
  public var reason: PaymentReason? {
    switch self {
    case .paid, .reversed: nil
    case .nothingToPay: .nothingToPay
    case .unpaid(let reason, _): reason
    case .unconfirmed(let reason): reason
    }
  }

  public var transaction: TransactionRecord? {
    switch self {
    case .paid(let transaction), .reversed(let transaction): transaction
    case .unpaid(_, let transaction): transaction
    case .unconfirmed, .nothingToPay: nil
    }
  }
}

extension Vocabularies {
  public static let disposition = Vocabulary<Disposition>()
}

/// The outcome of an order.
public enum Disposition: String, OrderedCases, Sendable {
  case settled
  case paidNotDelivered = "paid_not_delivered"
  case deliveredNotPaid = "delivered_not_paid"
  case partlyDelivered = "partly_delivered"
  case refunded
  case refundedStillDelivered = "refunded_still_delivered"
  case inFlight = "in_flight"
  case unconfirmed
  case void
  case sandbox
  case badRow = "bad_row"

  /// Dispositions in money totals, in the sequence of the report's columns.
  public static let inMoneyTotals: [Disposition] = [
    .settled, .paidNotDelivered, .deliveredNotPaid, .partlyDelivered, .refunded, .refundedStillDelivered, .inFlight,
    .unconfirmed, .void,
  ]

  /// True if the order owns a purchase, paid or reversed, or needs none.
  public var hasPurchase: Bool {
    switch self {
    case .settled, .paidNotDelivered, .partlyDelivered, .refunded, .refundedStillDelivered, .inFlight: true
    case .deliveredNotPaid, .unconfirmed, .void, .sandbox, .badRow: false
    }
  }
}
