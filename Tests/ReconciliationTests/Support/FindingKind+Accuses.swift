import Reconciliation

extension Finding {
  /// As a story expects it.
  var expected: ScenarioFixture.Expected { ScenarioFixture.Expected(kind: kind, subject: subject.id) }
}

extension FindingKind {
  /// Whether it says of a customer that they have what they did not pay for, or of an order that it is not what was paid.
  /// What Apple told of a refund is told, whatever else is open.
  var accuses: Bool {
    switch self {
    case .deliveredNotPaid, .duplicateClaim, .wrongUser, .productMismatch, .wrongBundle, .signatureInvalid,
      .sandboxDelivered, .quantityMismatch, .amountMismatch, .currencyMismatch, .familySharedSale, .restoredAsSale,
      .lapsedStillServed, .deliveredBeforePaid, .purchasePredatesOrder, .boughtTwice, .accountTokenMissing:
      true
    case .paidNotDelivered, .partlyDelivered, .cancelledButPaid, .orphanPayment, .chargedTwice, .deliveredAfterRefund,
      .refundReversedNotReinstated, .refundedStillDelivered, .partialRefund, .refundNotBooked, .refundOnlyHere,
      .deliveredTwice, .orphanDelivery, .unreportedByShop, .stuckUnconfirmed, .unclaimedRedemption,
      .renewalWithoutOrder,
      .statusMismatch, .environmentMislabelled, .transactionIdMismatch, .futureDated, .unknownProduct,
      .soldOutsideCatalogue, .badRow:
      false
    }
  }
}
