import Reconciliation

/// What the report's words mean, for whoever gets it by mail and has nothing else.
enum Glossary {
  static func meaning(_ disposition: Disposition) -> String { "Orders \(disposition.clause)." }

  static func meaning(_ kind: FindingKind) -> String {
    switch kind {
    case .paidNotDelivered: "Apple confirms the payment, and the user does not hold the goods."
    case .partlyDelivered: "Fewer units delivered than paid for."
    case .deliveredNotPaid: "Goods of an order that is proven unpaid are with a user; the reason says why."
    case .cancelledButPaid: "The shop says failed or cancelled, and Apple confirms the payment."
    case .orphanPayment: "A payment that Apple confirms and no order claims."
    case .duplicateClaim: "The order wants a payment that another order owns."
    case .chargedTwice: "Apple charged twice or more for one order."
    case .wrongUser: "Goods or payment belong to another user than the order's."
    case .productMismatch: "The payment is for another product than the ordered one."
    case .wrongBundle: "The proof of payment belongs to another app."
    case .signatureInvalid: "The proof does not carry Apple's signature: forged or damaged."
    case .sandboxDelivered: "Goods delivered for play money, to a user who is no test user."
    case .deliveredAfterRefund: "Goods delivered after Apple had given the money back."
    case .refundReversedNotReinstated: "Apple took a refund back, and the goods are still taken back."
    case .refundedStillDelivered: "Apple gave the money back, and the goods are still with a user."
    case .partialRefund: "Apple gave a part of the money back."
    case .refundNotBooked: "Apple gave the money back, and the shop still says verified."
    case .refundOnlyHere: "The shop says refunded, and Apple has not refunded it."
    case .deliveredTwice: "More units delivered than ordered."
    case .orphanDelivery: "A delivery without an order, or for one that does not exist."
    case .quantityMismatch: "The payment is for another number of units than the order's."
    case .amountMismatch: "Apple's recorded price is not the order's, and no offer explains it."
    case .currencyMismatch: "The payment is in another currency than the order's; nothing is converted."
    case .familySharedSale: "Access through Family Sharing booked as a sale: nobody paid for it here."
    case .restoredAsSale: "A restored purchase booked as a new sale: no money moved."
    case .lapsedStillServed: "A subscription that has ended by every date, and the user still has access."
    case .unreportedByShop: "Apple's sales report counts units that nobody here knows."
    case .stuckUnconfirmed: "Apple was long asked in vain, or cannot be asked: nobody knows what was paid or proven."
    case .renewalWithoutOrder: "A subscription renewed, and no order claims the renewal."
    case .statusMismatch: "The shop's status contradicts what happened."
    case .environmentMislabelled: "The client named another of Apple's environments than the signed one."
    case .deliveredBeforePaid: "Goods left before the payment was made."
    case .futureDated: "A date that lies in the future."
    case .purchasePredatesOrder: "The payment was made long before the order."
    case .unknownProduct: "A product that the catalogue does not have."
    case .soldOutsideCatalogue: "A product sold while it was not on sale."
    case .boughtTwice: "A product that can be owned once, sold to one person twice."
    case .accountTokenMissing: "The purchase carries no account token, though the order has one."
    case .badRow: "A row of the sales tables that breaks their contract."
    }
  }

  /// What kinds of words there are, each with its words and what they mean. Those of the tie-out are its own table's.
  static let sections: [(title: String, words: [(String, String)])] = [
    ("Dispositions: the one bucket that an order ends in", Disposition.allCases.map { ($0.rawValue, meaning($0)) }),
    (
      "Reasons of payments: why an order is unpaid or unconfirmed",
      PaymentReason.allCases.map { ($0.rawValue, sentence($0.explanation)) }
    ),
    (
      "Receipts: what came of asking",
      CheckOutcome.allCases.map { ($0.rawValue, meaning($0)) }
    ),
    (
      "Reasons of refunds, as Apple has them",
      [
        ("app_issue", "The customer told Apple of an actual or perceived fault of the app."),
        ("other", "Whatever else: an accidental purchase, say."), ("(empty)", "Apple has not told."),
      ]
    ),
    (
      "Status of findings",
      [
        ("open", "Nobody has looked at it yet."), ("acknowledged", "Somebody knows."),
        ("closed", "For people it is dealt with. It stays listed and counted for as long as the facts stand."),
      ]
    ),
    (
      "Changes",
      [
        ("new", "A finding that was never met before."), ("closed", "The facts agree now; because says what changed."),
        ("reopened", "It had closed and stands again."), ("status", "People made something else of it."),
        ("adjusted", "An order of an earlier day that is in another disposition now."),
      ]
    ),
    (
      "Severity",
      [
        ("critical", "Money or a customer is wrong now."), ("major", "This week."), ("minor", "Data quality."),
      ]
    ),
  ]

  private static func meaning(_ outcome: CheckOutcome) -> String {
    switch outcome {
    case .pending: "Nobody has asked yet."
    case .verified: "Authentic: Apple said so, or its signature holds."
    case .rejected: "Proven false or worthless; the reason says how."
    case .unanswered: "Asked, and no usable answer came; it is asked again."
    case .review: "Apple answered something that only a person can take further."
    case .notFound: "Apple knows no such purchase, neither in production nor in the sandbox."
    }
  }

  private static func sentence(_ clause: String) -> String { clause.prefix(1).uppercased() + clause.dropFirst() + "." }
}
