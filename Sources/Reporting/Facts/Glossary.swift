import Reconciliation

/// The meaning of the report's words, for readers who have only the workbook.
enum Glossary {
  static func meaning(_ disposition: Disposition) -> String { "Orders \(disposition.clause)." }

  static func meaning(_ kind: FindingKind) -> String {
    switch kind {
    case .paidNotDelivered: "Apple confirms the payment, and the user does not have the goods."
    case .partlyDelivered: "Fewer units delivered than paid for."
    case .deliveredNotPaid: "A user has the goods of an order that is proven unpaid; the reason says why."
    case .cancelledButPaid: "The shop says failed or cancelled, and Apple confirms the payment."
    case .orphanPayment: "Apple confirms a payment, and no order claims it."
    case .duplicateClaim: "The order claims a payment that belongs to another order."
    case .chargedTwice: "Apple charged twice or more for one order."
    case .wrongUser: "Goods or payment belong to another user than the order's."
    case .productMismatch: "The payment is for another product than the ordered one."
    case .wrongBundle: "The proof of payment belongs to another app."
    case .signatureInvalid: "The proof does not carry Apple's signature: forged or damaged."
    case .sandboxDelivered: "Goods were delivered for a sandbox purchase to a user who is not a test user."
    case .deliveredAfterRefund: "Goods were delivered after the refund."
    case .refundReversedNotReinstated: "Apple reversed a refund, and the goods are still taken back."
    case .refundedStillDelivered: "Apple refunded the purchase, and the user still has the goods."
    case .partialRefund: "Apple refunded a part of the purchase."
    case .refundNotBooked: "Apple refunded the purchase, and the shop still says verified."
    case .refundOnlyHere: "The shop says refunded, and Apple has not refunded it."
    case .deliveredTwice: "More units delivered than ordered."
    case .orphanDelivery: "A delivery without an order, or for one that does not exist."
    case .quantityMismatch: "The payment is for another number of units than the order's."
    case .amountMismatch: "Apple's recorded price is not the order's, and no offer explains it."
    case .unclaimedRedemption: "A customer received a product at price 0 by an offer or a code, and no order claims it."
    case .transactionIdMismatch: "The order states another transaction ID than its own proof contains."
    case .currencyMismatch: "The payment and the order are in different currencies. Amounts are not converted."
    case .familySharedSale: "Access through Family Sharing booked as a sale: no payment was made for it here."
    case .restoredAsSale: "A restored purchase booked as a new sale: no money moved."
    case .lapsedStillServed: "The subscription has expired, and the user still has access."
    case .unreportedByShop: "Apple's sales report counts units that have no transaction here."
    case .stuckUnconfirmed: "The payment could not be confirmed for more than two days."
    case .renewalWithoutOrder: "A subscription renewed, and no order claims the renewal."
    case .statusMismatch: "The shop's status contradicts payment or delivery."
    case .environmentMislabelled: "The client named another of Apple's environments than the signed one."
    case .deliveredBeforePaid: "Goods were delivered before the payment was made."
    case .futureDated: "A date that lies in the future."
    case .purchasePredatesOrder: "The payment was made long before the order."
    case .unknownProduct: "A product that the catalogue does not have."
    case .soldOutsideCatalogue: "A product sold while it was not on sale."
    case .boughtTwice: "A product that can be owned once, sold to one person twice."
    case .accountTokenMissing: "The purchase carries no account token, though the order has one."
    case .badRow: "A row of the sales tables is invalid and excluded."
    }
  }

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
        ("adjusted", "An order of an earlier day has another outcome now, or a refund another amount."),
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
