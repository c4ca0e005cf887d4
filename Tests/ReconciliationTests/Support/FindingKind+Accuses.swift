import Reconciliation

extension Finding {
  /// As a story expects it.
  var expected: Story.Expected { Story.Expected(kind: kind, subject: subject.id) }
}

extension FindingKind {
  /// Whether it says of a customer that they have what they did not pay for, of an order that it is not what was paid or that
  /// it was refunded, or of the shop that it took too much.
  var accuses: Bool {
    switch self {
    case .deliveredNotPaid, .duplicateClaim, .wrongUser, .productMismatch, .wrongBundle, .signatureInvalid,
      .sandboxDelivered, .quantityMismatch, .amountMismatch, .currencyMismatch, .familySharedSale, .restoredAsSale,
      .lapsedStillServed, .deliveredBeforePaid, .purchasePredatesOrder, .boughtTwice, .accountTokenMissing,
      .cancelledButPaid, .chargedTwice, .deliveredAfterRefund, .refundedStillDelivered, .refundNotBooked:
      true
    case .paidNotDelivered, .partlyDelivered, .orphanPayment, .refundReversedNotReinstated, .partialRefund,
      .refundOnlyHere, .deliveredTwice, .orphanDelivery, .unreportedByShop, .stuckUnconfirmed, .renewalWithoutOrder,
      .statusMismatch,
      .environmentMislabelled, .futureDated, .unknownProduct, .soldOutsideCatalogue, .badRow:
      false
    }
  }
}
