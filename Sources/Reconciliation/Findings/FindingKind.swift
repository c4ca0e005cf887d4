/// The urgency of a finding.
public enum Severity: String, Hashable, Comparable, CaseIterable, Sendable {
  /// Money or a customer is wrong now.
  case critical
  case major
  case minor

  private var rank: Int {
    switch self {
    case .critical: 0
    case .major: 1
    case .minor: 2
    }
  }

  // The synthesised function would hash the raw value.
  public func hash(into hasher: inout Hasher) { hasher.combine(rank) }

  public static func < (left: Severity, right: Severity) -> Bool { left.rank < right.rank }
}

/// The action that a job of the shop may take, as in `actions.json`.
public enum FindingAction: String, Hashable, CaseIterable, Sendable {
  case deliver
  case deliverRest = "deliver_rest"
  case takeBack = "take_back"
  case bookRefund = "book_refund"
  case reinstate
  case correctStatus = "correct_status"
  case look

  /// True if a job gives or takes goods. It then needs an answer of this night.
  var movesGoods: Bool { deliversGoods || self == .takeBack }

  var deliversGoods: Bool {
    switch self {
    case .deliver, .deliverRest, .reinstate: true
    case .takeBack, .bookRefund, .correctStatus, .look: false
    }
  }
}

/// A kind of discrepancy. Raw values appear in reports and on the command line.
/// The sequence of the cases orders the findings of an order, and decides which of equal amounts at risk is carried.
public enum FindingKind: String, Hashable, CaseIterable, Sendable {
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

  public var index: Int {
    // A case without values is one byte, its place among the cases.
    withUnsafeBytes(of: self) { Int($0[0]) }
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(index) }

  /// The usual severity. ``Finding/severity`` may differ.
  public var severity: Severity {
    switch self {
    case .paidNotDelivered, .partlyDelivered, .deliveredNotPaid, .cancelledButPaid, .orphanPayment, .duplicateClaim,
      .chargedTwice, .wrongUser, .productMismatch, .wrongBundle, .signatureInvalid, .sandboxDelivered,
      .deliveredAfterRefund, .refundReversedNotReinstated:
      .critical
    case .refundedStillDelivered, .partialRefund, .refundNotBooked, .refundOnlyHere, .deliveredTwice, .orphanDelivery,
      .quantityMismatch, .amountMismatch, .currencyMismatch, .familySharedSale, .restoredAsSale, .lapsedStillServed,
      .unreportedByShop, .stuckUnconfirmed:
      .major
    case .unclaimedRedemption, .renewalWithoutOrder, .statusMismatch, .environmentMislabelled, .transactionIdMismatch,
      .deliveredBeforePaid, .futureDated, .purchasePredatesOrder, .unknownProduct, .soldOutsideCatalogue, .boughtTwice,
      .accountTokenMissing, .badRow:
      .minor
    }
  }

  /// True if the finding accuses the person who placed the order, and Apple's answers decide it.
  ///
  /// Apple is asked about its proofs every night. Findings about customers who paid without the goods are no accusations.
  /// A later answer of Apple can withdraw an accusation, but no finding about prices, dates or the shop's own rows.
  public var accusesCustomer: Bool {
    switch self {
    case .deliveredNotPaid, .duplicateClaim, .wrongUser, .productMismatch, .wrongBundle, .signatureInvalid,
      .sandboxDelivered, .deliveredAfterRefund, .refundedStillDelivered, .quantityMismatch, .lapsedStillServed:
      true
    case .paidNotDelivered, .partlyDelivered, .cancelledButPaid, .orphanPayment, .chargedTwice,
      .refundReversedNotReinstated, .partialRefund, .refundNotBooked, .refundOnlyHere, .deliveredTwice, .orphanDelivery,
      .amountMismatch, .currencyMismatch, .familySharedSale, .restoredAsSale, .unreportedByShop, .stuckUnconfirmed,
      .unclaimedRedemption, .renewalWithoutOrder, .statusMismatch, .environmentMislabelled, .transactionIdMismatch,
      .deliveredBeforePaid, .futureDated, .purchasePredatesOrder, .unknownProduct, .soldOutsideCatalogue, .boughtTwice,
      .accountTokenMissing, .badRow:
      false
    }
  }

  /// True for a payment or a delivery without an order.
  public var isOfOrphan: Bool {
    self == .orphanPayment || self == .orphanDelivery || self == .unclaimedRedemption || self == .renewalWithoutOrder
  }

  /// True for a refund by Apple. The age counts from the refund, not from the purchase.
  var isOfRefund: Bool {
    switch self {
    case .deliveredAfterRefund, .refundedStillDelivered, .partialRefund, .refundNotBooked: true
    case .paidNotDelivered, .partlyDelivered, .deliveredNotPaid, .cancelledButPaid, .orphanPayment, .duplicateClaim,
      .chargedTwice, .wrongUser, .productMismatch, .wrongBundle, .signatureInvalid, .sandboxDelivered,
      .refundReversedNotReinstated, .refundOnlyHere, .deliveredTwice, .orphanDelivery, .quantityMismatch,
      .amountMismatch, .currencyMismatch, .familySharedSale, .restoredAsSale, .lapsedStillServed, .unreportedByShop,
      .stuckUnconfirmed, .unclaimedRedemption, .renewalWithoutOrder, .statusMismatch, .environmentMislabelled,
      .transactionIdMismatch, .deliveredBeforePaid,
      .futureDated, .purchasePredatesOrder, .unknownProduct, .soldOutsideCatalogue, .boughtTwice, .accountTokenMissing,
      .badRow:
      false
    }
  }

  public var action: FindingAction {
    switch self {
    case .paidNotDelivered: .deliver
    case .partlyDelivered: .deliverRest
    case .deliveredNotPaid, .sandboxDelivered, .deliveredAfterRefund, .refundedStillDelivered, .deliveredTwice,
      .lapsedStillServed:
      .takeBack
    case .partialRefund, .refundNotBooked: .bookRefund
    case .refundReversedNotReinstated: .reinstate
    case .refundOnlyHere, .statusMismatch: .correctStatus
    case .cancelledButPaid, .orphanPayment, .duplicateClaim, .chargedTwice, .wrongUser, .productMismatch, .wrongBundle,
      .signatureInvalid, .orphanDelivery, .quantityMismatch, .amountMismatch, .currencyMismatch, .familySharedSale,
      .restoredAsSale, .unreportedByShop, .stuckUnconfirmed, .unclaimedRedemption, .renewalWithoutOrder,
      .environmentMislabelled, .transactionIdMismatch, .deliveredBeforePaid, .futureDated, .purchasePredatesOrder,
      .unknownProduct, .soldOutsideCatalogue, .boughtTwice,
      .accountTokenMissing, .badRow:
      .look
    }
  }

  public var suggestedAction: String {
    switch self {
    case .paidNotDelivered:
      "Deliver the goods, or ask the customer to request a refund from Apple (reportaproblem.apple.com)."
    case .partlyDelivered: "Deliver the missing units."
    case .deliveredNotPaid:
      "Take the goods back. Ask the customer before you call it fraud."
    case .cancelledButPaid:
      "Reopen the order and deliver, or ask the customer to request a refund from Apple (reportaproblem.apple.com)."
    case .orphanPayment: "Find the customer by the transaction, and create or correct the order."
    case .duplicateClaim: "Keep the order that owns the payment and take back what was delivered for this one."
    case .chargedTwice:
      "Ask the customer to request a refund of the second charge from Apple (reportaproblem.apple.com)."
    case .wrongUser: "Check which account paid and which account received the goods, and move the goods."
    case .productMismatch: "Compare the ordered product with the one that was paid and correct the order."
    case .wrongBundle: "Block the order: its proof belongs to another app."
    case .signatureInvalid: "Treat the proof as forged or damaged and block automatic delivery for this user."
    case .sandboxDelivered: "Take the goods back, or put the user on the list of test users."
    case .deliveredAfterRefund: "Take the goods back and find out why delivery followed the refund."
    case .refundReversedNotReinstated: "Deliver the goods again: Apple has charged the customer again."
    case .refundedStillDelivered: "Take the goods back, or accept the loss."
    case .partialRefund: "Book the refunded part."
    case .refundNotBooked: "Book the refund in the shop."
    case .refundOnlyHere: "Correct the order: Apple has not refunded it."
    case .deliveredTwice: "Take back the surplus units."
    case .orphanDelivery: "Find the order that this delivery belongs to, or take the goods back."
    case .quantityMismatch: "Correct the order's quantity, or deliver what was paid for."
    case .amountMismatch: "Correct the price in the shop or the order's amount."
    case .currencyMismatch: "Correct the order's currency; nothing was converted."
    case .familySharedSale: "Remove the amount: access through Family Sharing is no sale."
    case .restoredAsSale: "Remove the amount: a restore is no new sale."
    case .lapsedStillServed: "End the access, or find the missing renewal."
    case .unreportedByShop: "Find the sales that never reached the shop, starting with the app's logs."
    case .stuckUnconfirmed: "Read the last reason. If it persists, have the client send a fresh receipt."
    case .unclaimedRedemption: "Book an order for the redeemed code if free orders are booked."
    case .renewalWithoutOrder: "Book an order for this renewal if renewals are booked as orders."
    case .statusMismatch: "Correct the order's status in the shop."
    case .environmentMislabelled: "Correct the client: it reports the wrong environment."
    case .transactionIdMismatch:
      "Correct the order's transaction ID, and the client or the mapping that wrote it."
    case .deliveredBeforePaid: "Check the clocks and the delivery job: goods were delivered before the payment."
    case .futureDated: "Check the clock of the system that wrote this date."
    case .purchasePredatesOrder: "Check that the order was not made for an earlier purchase."
    case .unknownProduct: "Add the product to the catalogue, or correct the order."
    case .soldOutsideCatalogue: "Check the product's dates in the catalogue, or why it could still be bought."
    case .boughtTwice: "Check whether the customer meant to buy it again; a customer can own this product only once."
    case .accountTokenMissing: "Pass the account token to StoreKit at purchase."
    case .badRow: "Correct the row in the sales tables or in the view that maps them."
    }
  }
}
