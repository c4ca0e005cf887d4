// Titles of kinds and dispositions for people: sheets, page, mails, terminals. Files contain the codes.

extension FindingKind {
  public var title: String {
    switch self {
    case .paidNotDelivered: "Paid, not delivered"
    case .partlyDelivered: "Partly delivered"
    case .deliveredNotPaid: "Delivered, not paid"
    case .cancelledButPaid: "Cancelled, but paid"
    case .orphanPayment: "Payment without order"
    case .duplicateClaim: "Duplicate claim"
    case .chargedTwice: "Charged twice"
    case .wrongUser: "Wrong user"
    case .productMismatch: "Product mismatch"
    case .wrongBundle: "Wrong bundle"
    case .signatureInvalid: "Invalid signature"
    case .sandboxDelivered: "Sandbox purchase delivered"
    case .deliveredAfterRefund: "Delivered after refund"
    case .refundReversedNotReinstated: "Refund reversed, not reinstated"
    case .refundedStillDelivered: "Refunded, still delivered"
    case .partialRefund: "Partial refund"
    case .refundNotBooked: "Refund not booked"
    case .refundOnlyHere: "Refunded in shop only"
    case .deliveredTwice: "Over-delivered"
    case .orphanDelivery: "Delivery without order"
    case .quantityMismatch: "Quantity mismatch"
    case .amountMismatch: "Amount mismatch"
    case .unclaimedRedemption: "Redeemed code without order"
    case .transactionIdMismatch: "Transaction ID mismatch"
    case .currencyMismatch: "Currency mismatch"
    case .familySharedSale: "Family Sharing booked as sale"
    case .restoredAsSale: "Restore booked as sale"
    case .lapsedStillServed: "Access after expiry"
    case .unreportedByShop: "Not reported by shop"
    case .stuckUnconfirmed: "Unconfirmed for too long"
    case .renewalWithoutOrder: "Renewal without order"
    case .statusMismatch: "Status mismatch"
    case .environmentMislabelled: "Environment mislabelled"
    case .deliveredBeforePaid: "Delivered before payment"
    case .futureDated: "Dated in the future"
    case .purchasePredatesOrder: "Purchase older than order"
    case .unknownProduct: "Unknown product"
    case .soldOutsideCatalogue: "Sold outside catalogue dates"
    case .boughtTwice: "Bought twice"
    case .accountTokenMissing: "Account token missing"
    case .badRow: "Invalid source row"
    }
  }
}

extension Disposition {
  public var title: String {
    switch self {
    case .settled: "Settled"
    case .paidNotDelivered: FindingKind.paidNotDelivered.title
    case .deliveredNotPaid: FindingKind.deliveredNotPaid.title
    case .partlyDelivered: FindingKind.partlyDelivered.title
    case .refunded: "Refunded"
    case .refundedStillDelivered: FindingKind.refundedStillDelivered.title
    case .inFlight: "Delivery pending"
    case .unconfirmed: "Unconfirmed"
    case .void: "Not paid, nothing delivered"
    case .sandbox: "Sandbox"
    case .badRow: FindingKind.badRow.title
    }
  }
}
