/// A kind of discrepancy. Raw values appear in reports and on the command line.
/// The sequence of the cases orders the findings of an order, and decides which of equal amounts at risk is carried.
public enum FindingKind: String, OrderedCases, Sendable {
  case paidNotDelivered = "paid_not_delivered"
  case partlyDelivered = "partly_delivered"
  case deliveredNotPaid = "delivered_not_paid"
  case cancelledButPaid = "cancelled_but_paid"
  case orphanPayment = "orphan_payment"
  case duplicateClaim = "duplicate_claim"
  case chargedTwice = "charged_twice"
  case wrongUser = "wrong_user"
  case productMismatch = "product_mismatch"
  case wrongBundle = "wrong_bundle"
  case signatureInvalid = "signature_invalid"
  case sandboxDelivered = "sandbox_delivered"
  case deliveredAfterRefund = "delivered_after_refund"
  case refundReversedNotReinstated = "refund_reversed_not_reinstated"
  case refundedStillDelivered = "refunded_still_delivered"
  case partialRefund = "partial_refund"
  case refundNotBooked = "refund_not_booked"
  case refundOnlyHere = "refund_only_here"
  case deliveredTwice = "delivered_twice"
  case orphanDelivery = "orphan_delivery"
  case quantityMismatch = "quantity_mismatch"
  case amountMismatch = "amount_mismatch"
  case currencyMismatch = "currency_mismatch"
  case familySharedSale = "family_shared_sale"
  case restoredAsSale = "restored_as_sale"
  case lapsedStillServed = "lapsed_still_served"
  case unreportedByShop = "unreported_by_shop"
  case stuckUnconfirmed = "stuck_unconfirmed"
  case unclaimedRedemption = "unclaimed_redemption"
  case renewalWithoutOrder = "renewal_without_order"
  case statusMismatch = "status_mismatch"
  case environmentMislabelled = "environment_mislabelled"
  case transactionIdMismatch = "transaction_id_mismatch"
  case deliveredBeforePaid = "delivered_before_paid"
  case futureDated = "future_dated"
  case purchasePredatesOrder = "purchase_predates_order"
  case unknownProduct = "unknown_product"
  case soldOutsideCatalogue = "sold_outside_catalogue"
  case boughtTwice = "bought_twice"
  case accountTokenMissing = "account_token_missing"
  case badRow = "bad_row"

  /// The name for people: sheets, page, mails, terminals. Files contain the raw value.
  public var title: String { definition.title }

  /// The usual severity. ``Finding/severity`` may differ.
  public var severity: Severity { definition.severity }

  public var action: FindingAction { definition.action }

  public var suggestedAction: String { definition.suggestedAction }

  /// True if the kind has all of the traits.
  public func has(_ traits: Traits) -> Bool { definition.traits.contains(traits) }

  /// True for a payment or a delivery without an order.
  public var isOfOrphan: Bool { definition.subject == .transaction || definition.subject == .delivery }

  /// Properties of a kind that rules and reports ask for.
  public struct Traits: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The finding accuses the person who placed the order, and Apple's answers decide it.
    ///
    /// Apple is asked about its proofs every night. Findings about customers who paid without the goods are no
    /// accusations. A later answer of Apple can withdraw an accusation, but no finding about prices, dates or the
    /// shop's own rows.
    public static let accusesCustomer = Traits(rawValue: 1 << 0)
    /// Apple refunded the purchase. The age counts from the refund, not from the purchase.
    public static let isAboutRefund = Traits(rawValue: 1 << 1)
    /// The amount at risk is owed to a customer.
    public static let isOwedToCustomer = Traits(rawValue: 1 << 2)
    /// A payment without an order may pay the order. Both then have one amount at risk.
    public static let mayBePaidByOrphan = Traits(rawValue: 1 << 3)
    /// Apple's answers after an outage, or its corrected reports, close findings in any number.
    public static let isClosedByApple = Traits(rawValue: 1 << 4)
    /// verifyReceipt shows no prices and no partial refunds.
    public static let needsServerAPI = Traits(rawValue: 1 << 5)
  }

  /// Everything that night-audit knows about a kind, apart from the rule that finds it.
  public struct Definition: Sendable {
    public let title: String
    public let severity: Severity
    public let action: FindingAction
    /// The usual subject; `.receipt` for a receipt with or without an order.
    public let subject: Subject.Kind
    public let traits: Traits
    public let meaning: String
    /// The remedy as a sentence for the person who acts.
    public let suggestedAction: String
    /// The first thing to check if many rows have the finding at once, to follow "check".
    public let likelyCause: String

    fileprivate init(
      _ title: String, _ severity: Severity, _ action: FindingAction = .look, on subject: Subject.Kind = .order,
      traits: Traits = [], meaning: String, suggestedAction: String, likelyCause: String
    ) {
      (self.title, self.severity, self.action, self.subject) = (title, severity, action, subject)
      (self.traits, self.meaning, self.likelyCause) = (traits, meaning, likelyCause)
      self.suggestedAction = suggestedAction
    }
  }

  /// The one place that describes a kind.
  public var definition: Definition {
    switch self {
    case .paidNotDelivered:
      Definition(
        "Paid, not delivered", .critical, .deliver, traits: [.isOwedToCustomer],
        meaning: "Apple confirms the payment, and the user does not have the goods.",
        suggestedAction:
          "Deliver the goods, or ask the customer to request a refund from Apple (reportaproblem.apple.com).",
        likelyCause: Cause.deliveries)
    case .partlyDelivered:
      Definition(
        "Partly delivered", .critical, .deliverRest, traits: [.isOwedToCustomer],
        meaning: "Fewer units delivered than paid for.",
        suggestedAction: "Deliver the missing units.",
        likelyCause: Cause.deliveries)
    case .deliveredNotPaid:
      Definition(
        "Delivered, not paid", .critical, .takeBack, traits: [.accusesCustomer, .mayBePaidByOrphan],
        meaning: "A user has the goods of an order that is proven unpaid; the reason says why.",
        suggestedAction: "Take the goods back. Ask the customer before you call it fraud.",
        likelyCause: "whether receipts are loaded up to tonight and name the same orders")
    case .cancelledButPaid:
      Definition(
        "Cancelled, but paid", .critical,
        meaning: "The shop says failed or cancelled, and Apple confirms the payment.",
        suggestedAction:
          "Reopen the order and deliver, or ask the customer to request a refund from Apple "
          + "(reportaproblem.apple.com).",
        likelyCause: Cause.statuses)
    case .orphanPayment:
      Definition(
        "Payment without order", .critical, on: .transaction, traits: [.isOwedToCustomer],
        meaning: "Apple confirms a payment, and no order claims it.",
        suggestedAction: "Find the customer by the transaction, and create or correct the order.",
        likelyCause: Cause.ordersShown)
    case .duplicateClaim:
      Definition(
        "Duplicate claim", .critical, traits: [.accusesCustomer, .mayBePaidByOrphan],
        meaning: "The order claims a payment that belongs to another order.",
        suggestedAction: "Keep the order that owns the payment and take back what was delivered for this one.",
        likelyCause: Cause.ownTransactionIds)
    case .chargedTwice:
      Definition(
        "Charged twice", .critical, traits: [.isOwedToCustomer],
        meaning: "Apple charged twice or more for one order.",
        suggestedAction:
          "Ask the customer to request a refund of the second charge from Apple (reportaproblem.apple.com).",
        likelyCause: Cause.ownTransactionIds)
    case .wrongUser:
      Definition(
        "Wrong user", .critical, traits: [.accusesCustomer],
        meaning: "Goods or payment belong to another user than the order's.",
        suggestedAction: "Check which account paid and which account received the goods, and move the goods.",
        likelyCause:
          "whether user_id of deliveries and of orders are IDs of the same kind, and app_account_token is that of each "
          + "order's user")
    case .productMismatch:
      Definition(
        "Product mismatch", .critical, traits: [.accusesCustomer, .mayBePaidByOrphan],
        meaning: "The payment is for another product than the ordered one.",
        suggestedAction: "Compare the ordered product with the one that was paid and correct the order.",
        likelyCause: Cause.productIds)
    case .wrongBundle:
      Definition(
        "Wrong bundle", .critical, traits: [.accusesCustomer, .mayBePaidByOrphan],
        meaning: "The proof of payment belongs to another app.",
        suggestedAction: "Block the order: its proof belongs to another app.",
        likelyCause: "whether the view names the app of each order, and bundleId in the configuration is right")
    case .signatureInvalid:
      Definition(
        "Invalid signature", .critical, on: .receipt, traits: [.accusesCustomer, .mayBePaidByOrphan],
        meaning: "The proof does not carry Apple's signature: forged or damaged.",
        suggestedAction: "Treat the proof as forged or damaged and block automatic delivery for this user.",
        likelyCause: "whether receipts are shown as the client sent them, and Apple's roots are installed")
    case .sandboxDelivered:
      Definition(
        "Sandbox purchase delivered", .critical, .takeBack, traits: [.accusesCustomer],
        meaning: "Goods were delivered for a sandbox purchase to a user who is not a test user.",
        suggestedAction: "Take the goods back, or put the user on the list of test users.",
        likelyCause: Cause.testSystem)
    case .deliveredAfterRefund:
      Definition(
        "Delivered after refund", .critical, .takeBack, traits: [.accusesCustomer, .isAboutRefund],
        meaning: "Goods were delivered after the refund.",
        suggestedAction: "Take the goods back and find out why delivery followed the refund.",
        likelyCause: Cause.revocations)
    case .refundReversedNotReinstated:
      Definition(
        "Refund reversed, not reinstated", .critical, .reinstate,
        meaning: "Apple reversed a refund, and the goods are still taken back.",
        suggestedAction: "Deliver the goods again: Apple has charged the customer again.",
        likelyCause: Cause.revocations)
    case .refundedStillDelivered:
      Definition(
        "Refunded, still delivered", .major, .takeBack, traits: [.accusesCustomer, .isAboutRefund],
        meaning: "Apple refunded the purchase, and the user still has the goods.",
        suggestedAction: "Take the goods back, or accept the loss.",
        likelyCause: Cause.revocations)
    case .partialRefund:
      Definition(
        "Partial refund", .major, .bookRefund, traits: [.isAboutRefund, .needsServerAPI],
        meaning: "Apple refunded a part of the purchase.",
        suggestedAction: "Book the refunded part.",
        likelyCause: Cause.refunds)
    case .refundNotBooked:
      Definition(
        "Refund not booked", .major, .bookRefund, traits: [.isAboutRefund],
        meaning: "Apple refunded the purchase, and the shop still says verified.",
        suggestedAction: "Book the refund in the shop.",
        likelyCause: Cause.refunds)
    case .refundOnlyHere:
      Definition(
        "Refunded in shop only", .major, .correctStatus,
        meaning: "The shop says refunded, and Apple has not refunded it.",
        suggestedAction: "Correct the order: Apple has not refunded it.",
        likelyCause: Cause.refunds)
    case .deliveredTwice:
      Definition(
        "Over-delivered", .major, .takeBack,
        meaning: "More units delivered than ordered.",
        suggestedAction: "Take back the surplus units.",
        likelyCause: Cause.quantities)
    case .orphanDelivery:
      Definition(
        "Delivery without order", .major, on: .delivery,
        meaning: "A delivery without an order, or for one that does not exist.",
        suggestedAction: "Find the order that this delivery belongs to, or take the goods back.",
        likelyCause: "whether deliveries of other stores are left out, and order_id holds the IDs of orders")
    case .quantityMismatch:
      Definition(
        "Quantity mismatch", .major, traits: [.accusesCustomer],
        meaning: "The payment is for another number of units than the order's.",
        suggestedAction: "Correct the order's quantity, or deliver what was paid for.",
        likelyCause: Cause.quantities)
    case .amountMismatch:
      Definition(
        "Amount mismatch", .major, traits: [.needsServerAPI],
        meaning: "Apple's price differs from the order's amount, with an offer or without.",
        suggestedAction: "Correct the price in the shop or the order's amount.",
        likelyCause: "whether amount is the total that the customer paid, in units of currency and not cents")
    case .currencyMismatch:
      Definition(
        "Currency mismatch", .major, traits: [.needsServerAPI],
        meaning: "The payment and the order are in different currencies. Amounts are not converted.",
        suggestedAction: "Correct the order's currency; nothing was converted.",
        likelyCause: "whether currency is the currency of the payment")
    case .familySharedSale:
      Definition(
        "Family Sharing booked as sale", .major,
        meaning: "Access through Family Sharing booked as a sale: no payment was made for it here.",
        suggestedAction: "Remove the amount: access through Family Sharing is no sale.",
        likelyCause: Cause.sharedPurchases)
    case .restoredAsSale:
      Definition(
        "Restore booked as sale", .major,
        meaning: "A restored purchase booked as a new sale: no money moved.",
        suggestedAction: "Remove the amount: a restore is no new sale.",
        likelyCause: Cause.sharedPurchases)
    case .lapsedStillServed:
      Definition(
        "Access after expiry", .major, .takeBack, traits: [.accusesCustomer],
        meaning: "The subscription has expired, and the user still has access.",
        suggestedAction: "End the access, or find the missing renewal.",
        likelyCause: Cause.revocations)
    case .unreportedByShop:
      Definition(
        "Not reported by shop", .major, on: .productWeek, traits: [.isClosedByApple],
        meaning: "Apple's sales report counts units that have no transaction here.",
        suggestedAction: "Find the sales that never reached the shop, starting with the app's logs.",
        likelyCause: "whether the view leaves out products or days")
    case .stuckUnconfirmed:
      Definition(
        "Unconfirmed for too long", .major, traits: [.isClosedByApple],
        meaning: "The payment could not be confirmed for more than two days.",
        suggestedAction: "Read the last reason. If it persists, have the client send a fresh receipt.",
        likelyCause: Cause.examples)
    case .unclaimedRedemption:
      Definition(
        "Redeemed code without order", .minor, on: .transaction,
        meaning: "A customer received a product at price 0 by an offer or a code, and no order claims it.",
        suggestedAction: "Book an order for the redeemed code if free orders are booked.",
        likelyCause: Cause.ordersShown)
    case .renewalWithoutOrder:
      Definition(
        "Renewal without order", .minor, on: .transaction,
        meaning: "A subscription renewed, and no order claims the renewal.",
        suggestedAction: "Book an order for this renewal if renewals are booked as orders.",
        likelyCause: Cause.ordersShown)
    case .statusMismatch:
      Definition(
        "Status mismatch", .minor, .correctStatus,
        meaning: "The shop's status contradicts payment or delivery.",
        suggestedAction: "Correct the order's status in the shop.",
        likelyCause: Cause.statuses)
    case .environmentMislabelled:
      Definition(
        "Environment mislabelled", .minor,
        meaning: "The client named another of Apple's environments than the signed one.",
        suggestedAction: "Correct the client: it reports the wrong environment.",
        likelyCause: Cause.testSystem)
    case .transactionIdMismatch:
      Definition(
        "Transaction ID mismatch", .minor,
        meaning: "The order states another transaction ID than its own proof contains.",
        suggestedAction: "Correct the order's transaction ID, and the client or the mapping that wrote it.",
        likelyCause: Cause.ownTransactionIds)
    case .deliveredBeforePaid:
      Definition(
        "Delivered before payment", .minor,
        meaning: "Goods were delivered before the payment was made.",
        suggestedAction: "Check the clocks and the delivery job: goods were delivered before the payment.",
        likelyCause: Cause.timeZones)
    case .futureDated:
      Definition(
        "Dated in the future", .minor,
        meaning: "A date that lies in the future.",
        suggestedAction: "Check the clock of the system that wrote this date.",
        likelyCause: Cause.timeZones)
    case .purchasePredatesOrder:
      Definition(
        "Purchase older than order", .minor,
        meaning: "The payment was made long before the order.",
        suggestedAction: "Check that the order was not made for an earlier purchase.",
        likelyCause: Cause.timeZones)
    case .unknownProduct:
      Definition(
        "Unknown product", .minor,
        meaning: "A product that the catalogue does not have.",
        suggestedAction: "Add the product to the catalogue, or correct the order.",
        likelyCause: Cause.productIds)
    case .soldOutsideCatalogue:
      Definition(
        "Sold outside catalogue dates", .minor,
        meaning: "A product sold while it was not on sale.",
        suggestedAction: "Check the product's dates in the catalogue, or why it could still be bought.",
        likelyCause: Cause.productIds)
    case .boughtTwice:
      Definition(
        "Bought twice", .minor,
        meaning: "A product that can be owned once, sold to one person twice.",
        suggestedAction:
          "Check whether the customer meant to buy it again; a customer can own this product only once.",
        likelyCause: Cause.ownTransactionIds)
    case .accountTokenMissing:
      Definition(
        "Account token missing", .minor,
        meaning: "The purchase carries no account token, though the order has one.",
        suggestedAction: "Pass the account token to StoreKit at purchase.",
        likelyCause: "whether the client sends account tokens")
    case .badRow:
      Definition(
        "Invalid source row", .minor,
        meaning: "A row of the sales tables is invalid and excluded.",
        suggestedAction: "Correct the row in the sales tables or in the view that maps them.",
        likelyCause: Cause.examples)
    }
  }
}

extension Vocabularies {
  public static let findingKind = Vocabulary<FindingKind>()
}

/// Causes that several kinds share.
private enum Cause {
  static let deliveries =
    "whether deliveries are loaded up to tonight, name the same orders, and count units as orders do"
  static let productIds = "whether product_id holds Apple's product IDs"
  static let testSystem = "whether the view shows orders of a test system"
  static let quantities = "whether quantity counts the same unit in orders and deliveries: packs, or their contents"
  static let ordersShown =
    "whether the view shows all orders, subscriptions included, with their receipts or transaction IDs, and whether "
    + "transaction_id is each order's own purchase and not the newest renewal of its subscription"
  static let ownTransactionIds =
    "whether transaction_id is the ID of each order's own purchase, and receipts belong to one order"
  static let statuses = "whether each status of the shop is mapped to the right word"
  static let revocations = "whether revoked_at is set where goods were taken back or access ended"
  static let refunds = "whether refunds of the shop are mapped to status refunded"
  static let sharedPurchases = "whether the view shows restored and family purchases as orders"
  static let timeZones = "whether all times are in the same time zone"
  static let examples = "a few of them with night-audit explain"
}
