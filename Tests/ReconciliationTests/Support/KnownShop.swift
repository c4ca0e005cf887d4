import Reconciliation
import TestSupport

/// Stories put together, their rows shuffled: a shop of which everything is known beforehand.
struct KnownShop: Sendable {
  var world = World(rules: Scene().world.rules)
  var dispositions: [Identifier: Disposition] = [:]
  var findings: Set<Story.Expected> = []

  init(telling scenarios: [Scenario], seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for (number, scenario) in scenarios.enumerated() {
      var story = Story(prefix: "\(number)/", seed: random.next())
      scenario.tell(&story)
      world.add(story.scene.world)
      dispositions.merge(story.dispositions) { first, _ in first }
      findings.formUnion(story.findings)
    }
    world = world.shuffled(using: &random)
  }
}

extension Finding {
  /// As a story expects it.
  var expected: Story.Expected { Story.Expected(kind: kind, subject: subject.id) }
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
      .deliveredTwice, .orphanDelivery, .unreportedByShop, .stuckUnconfirmed, .renewalWithoutOrder, .statusMismatch,
      .environmentMislabelled, .futureDated, .unknownProduct, .soldOutsideCatalogue, .badRow:
      false
    }
  }
}
