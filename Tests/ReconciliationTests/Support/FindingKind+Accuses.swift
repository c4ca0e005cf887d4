import Reconciliation

extension Finding {
  /// The finding in the form in which a scenario expects it.
  var expected: ScenarioFixture.Expected { ScenarioFixture.Expected(kind: kind, subject: subject.id) }
}

extension FindingKind {
  /// True if the kind accuses a customer of an unpaid benefit, or an order of differing from its payment. Kinds about
  /// refunds are no accusations, because Apple has stated the refund.
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
