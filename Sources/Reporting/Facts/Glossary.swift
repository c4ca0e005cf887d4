import Reconciliation

/// The meaning of the report's words, for readers who have only the workbook.
enum Glossary {
  static func meaning(_ disposition: Disposition) -> String { "Orders \(disposition.clause)." }

  /// The words by kind. Those of the tie-out come from its table.
  static let sections: [(title: String, words: [(String, String)])] = [
    ("Outcomes of orders", Disposition.allCases.map { ($0.title, meaning($0)) }),
    (
      "Reasons of payments: why an order is unpaid or unconfirmed",
      PaymentReason.allCases.map { ($0.rawValue.title, sentence($0.explanation)) }
    ),
    (
      "Receipts: result of the check",
      CheckOutcome.allCases.map { ($0.rawValue, meaning($0)) }
    ),
    (
      "Reasons of refunds, from Apple",
      [
        ("app_issue".title, "The customer reported an actual or perceived fault of the app to Apple."),
        ("other".title, "Any other reason, such as an accidental purchase."), ("(empty)", "Apple gave no reason."),
      ]
    ),
    (
      "Reasons of refund requests, from the customer",
      [
        ("UNINTENDED_PURCHASE".title, "The customer did not intend the purchase."),
        ("FULFILLMENT_ISSUE".title, "The customer paid, and did not receive the purchase or cannot use it."),
        ("UNSATISFIED_WITH_PURCHASE".title, "The customer is not satisfied with the purchase."),
        ("LEGAL".title, "The customer gave a legal reason."),
        ("OTHER".title, "The customer gave any other reason."), ("(empty)", "Apple reported no reason."),
      ]
    ),
    ("Delivery status of refund requests", deliveryStatuses),
    (
      "Status of findings",
      [
        ("open", "Not reviewed yet."), ("acknowledged", "Reviewed; work is in progress."),
        ("accepted", "Accepted by a person until a day or up to an amount; it is open again when either is passed."),
        ("closed", "Closed by a person. It stays listed and counted until the facts agree."),
      ]
    ),
    (
      "Changes",
      [
        ("new", "A finding that no earlier report has."), ("closed", "The facts agree now; because gives the reason."),
        ("reopened", "A closed finding applies again."), ("status", "A person changed its status."),
        ("adjusted", "An order of an earlier day, or a refund, is different now; because gives the reason."),
      ]
    ),
    (
      "Severity",
      [
        ("critical", "Money or a customer is wrong now."), ("major", "This week."), ("minor", "Data quality."),
      ]
    ),
  ]

  private static let deliveryStatuses: [(String, String)] =
    DeliveryStatus.allCases.map { ($0.rawValue.title, meaning($0)) } + [("(empty)", "No order owns the transaction.")]

  private static func meaning(_ outcome: CheckOutcome) -> String {
    switch outcome {
    case .pending: "Not asked yet."
    case .verified: "Authentic: Apple confirmed it, or its signature is valid."
    case .rejected: "Invalid; the reason gives the cause."
    case .unanswered: "Asked without a usable answer; it is asked again."
    case .review: "Apple's answer needs a person."
    case .notFound: "Apple knows no such purchase, neither in production nor in the sandbox."
    }
  }

  private static func meaning(_ status: DeliveryStatus) -> String {
    switch status {
    case .delivered: "The user has all units ordered. Apple's word for the answer: \(status.rawValue)."
    case .undelivered: "The user does not have all units ordered. Apple's word for the answer: \(status.rawValue)."
    }
  }

  private static func sentence(_ clause: String) -> String { clause.prefix(1).uppercased() + clause.dropFirst() + "." }
}

extension Disposition {
  /// A clause that follows "orders".
  var clause: String {
    switch self {
    case .settled: "paid and delivered in full"
    case .paidNotDelivered: "paid and not delivered"
    case .deliveredNotPaid: "delivered and proven unpaid"
    case .partlyDelivered: "paid and delivered in part"
    case .refunded: "refunded, with nothing to take back"
    case .refundedStillDelivered: "refunded, with goods that a user still has"
    case .inFlight: "paid within the delivery grace, and not delivered yet"
    case .unconfirmed: "whose payment is not confirmed"
    case .void: "not paid, with nothing to take back"
    case .sandbox: "paid in Apple's sandbox by test users"
    case .badRow: "whose rows break the contract of the sales tables"
    }
  }
}
