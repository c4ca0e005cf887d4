import Reconciliation
import Testing

@testable import SampleWorlds

/// Findings about payments, goods and owners, each kind beside a similar case without it. A row lists all findings of
/// the audit.
@Suite struct PaymentFindingTests {
  @Test(arguments: goods + changedLater + claims + proofs + refunds)
  func findings(row: Case<String>) {
    #expect(row.findings == row.expected)
  }

  @Test("A customer's report of missing goods is in the reason")
  func customersWord() {
    for (word, isReported) in [("FULFILLMENT_ISSUE", true), ("UNINTENDED_PURCHASE", false)] {
      var scene = ShopFixture()
      scene.paidOrder(transaction: { $0.refundRequest = RefundRequest(date: asOf, reason: word) })
      let finding = scene.world.audited().findings.first { $0.kind == .paidNotDelivered }
      #expect(
        finding?.reason.text.contains("customer reported this to Apple") == isReported, "\(finding?.reason ?? "-")")
    }
  }

  @Test("A doubtful refund is decided once, and its decision does not change the judgement")
  func settledRefund() throws {
    for isDelivered in [true, false] {
      var scene = ShopFixture()
      let order = scene.paidOrder(transaction: Self.reversedLater)
      if isDelivered { scene.delivery(of: order) }
      var facts = try #require(scene.world.matchedFacts().orders["order"])
      let judgement = Judgement(judging: facts, rules: scene.world.rules)
      for _ in 1...2 {
        facts.decideDoubtfulRefunds()
        #expect(facts.claims.owned.map { $0.revocation == nil } == [isDelivered])
        #expect(Judgement(judging: facts, rules: scene.world.rules) == judgement)
      }
    }
  }

  static let goods: [Case<String>] = [
    Case("paid and delivered", "nothing") { $0.sale() },
    Case("paid, not delivered", "paid_not_delivered") { $0.paidOrder() },
    Case("paid just now, not delivered", "nothing") { $0.paid { $0.purchaseDate = asOf - .minutes(10) } },
    Case("two of three", "partly_delivered") {
      $0.sale({ $0.quantity = 3 }, bought: { $0.quantity = 3 }, goods: { $0.quantity = 2 })
    },
    Case("three of three in two parcels", "nothing") { scene in
      let order = scene.paidOrder({ $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      scene.delivery("d1", of: order) { $0.quantity = 2 }
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    },
    Case("four of three", "delivered_twice") { scene in
      let order = scene.paidOrder({ $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      scene.delivery("d1", of: order)
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    },
    Case("taken back and delivered again", "nothing") { scene in
      let order = scene.paidOrder()
      scene.delivery("d1", of: order) { $0.revokedAt = order.createdAt + .hours(1) }
      scene.delivery("d2", of: order)
    },
    Case("delivered without proof", "delivered_not_paid") { $0.order(isServed: true) },
    Case("delivered while Apple is down", "nothing") { scene in
      scene.time = asOf - .days(1)
      scene.order(with: .unanswered, isServed: true)
    },
    Case("failed, yet paid", "cancelled_but_paid") { $0.sale { $0.status = .failed } },
    Case("cancelled, yet paid and not delivered", "cancelled_but_paid, paid_not_delivered") {
      $0.paidOrder({ $0.status = .cancelled })
    },
    Case("cancelled and not paid", "nothing") { $0.order { $0.status = .cancelled } },
    Case("cancelled and refunded", "nothing") {
      $0.paidOrder({ $0.status = .cancelled }, transaction: { $0.revocation = Revocation(date: ordered) })
    },
    Case("unconfirmed longer than the limit", "stuck_unconfirmed") {
      $0.order(with: .unanswered) { $0.createdAt = asOf - .hours(48) - .microsecond }
    },
    Case("unconfirmed up to the limit", "nothing") { $0.order(with: .unanswered) { $0.createdAt = asOf - .hours(48) } },
  ]

  /// A status that was changed after the as-of leads to no finding. Findings that do not depend on it remain.
  static let changedLater: [Case<String>] = [
    Case("changed to failed after the as-of, paid", "nothing") { $0.sale { changeLater(&$0, to: .failed) } },
    Case("changed to cancelled after the as-of, paid, not delivered", "paid_not_delivered") {
      $0.paidOrder({ changeLater(&$0, to: .cancelled) })
    },
    Case("changed to pending later, paid and delivered", "nothing") { $0.sale { changeLater(&$0, to: .pending) } },
    Case("changed to verified later, neither paid nor delivered", "nothing") {
      $0.order { changeLater(&$0, to: .verified) }
    },
    Case("changed to verified after the as-of, delivered without proof", "delivered_not_paid") {
      $0.order(isServed: true) { changeLater(&$0, to: .verified) }
    },
    Case("changed to verified after the as-of, and refunded", "nothing") {
      $0.paidOrder({ changeLater(&$0, to: .verified) }, transaction: { $0.revocation = refund })
    },
    Case("changed to verified later, refunded and still delivered", "refunded_still_delivered") {
      $0.sale({ changeLater(&$0, to: .verified) }, bought: { $0.revocation = refund })
    },
    Case("changed to pending after the as-of, refunded and taken back", "nothing") {
      $0.paidOrder({ changeLater(&$0, to: .pending) }, transaction: { $0.revocation = refund })
    },
  ]

  static let claims: [Case<String>] = [
    Case("one payment for two orders", "duplicate_claim on later, status_mismatch on later") { scene in
      scene.sale()
      scene.order("later", stating: "T1", hours: 1)
    },
    Case(
      "one payment for three orders: every claimant",
      "duplicate_claim on o2, duplicate_claim on o3, status_mismatch on o2, status_mismatch on o3"
    ) { scene in
      scene.sale()
      for (id, hours) in [("o2", 1), ("o3", 2)] as [(String, Int64)] {
        scene.order(id) { ($0.transactionId, $0.createdAt) = ("T1", ordered + .hours(hours)) }
      }
    },
    Case("one receipt with two payments for two orders", "nothing") { scene in
      let first = scene.order("o1")
      let second = scene.order("o2") { $0.createdAt = ordered + .hours(5) }
      let records = [scene.transaction("T1"), scene.transaction("T2") { $0.purchaseDate = ordered + .hours(5) }]
      scene.receipt("r1", for: first, .verified(.app), containing: records)
      scene.receipt("r2", for: second, .verified(.app), containing: records)
      scene.delivery("d1", of: first)
      scene.delivery("d2", of: second)
    },
    Case("one order, two payments, one of them stated", "charged_twice") {
      $0.order(stating: "T1", with: .list($0.transaction("T1"), $0.transaction("T2")), isServed: true)
    },
    Case("one order, two payments, one refunded", "nothing") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      let refunded = scene.transaction("T2") { $0.revocation = Revocation(date: ordered + .hours(1)) }
      scene.receipt(for: order, .verified(.app), containing: [scene.transaction("T1"), refunded])
      scene.delivery(of: order)
    },
    Case("one order, two payments, the stated one refunded", "nothing") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      let refunded = scene.transaction("T1") { $0.revocation = Revocation(date: ordered + .hours(1)) }
      scene.receipt(for: order, .verified(.app), containing: [refunded, scene.transaction("T2")])
      scene.delivery(of: order)
    },
    Case("one payment proven by two receipts", "nothing") { scene in
      let order = scene.order()
      let record = scene.transaction()
      scene.receipt("r1", for: order, .verified(.app), containing: [record])
      scene.signedProof("r2", for: order, of: record)
      scene.delivery(of: order)
    },
    Case("sandbox goods", "delivered_not_paid, sandbox_delivered") { $0.bought { $0.environment = .sandbox } },
    Case("sandbox goods of a test user", "nothing") { scene in
      scene.world.rules.testUsers = ["user"]
      scene.sale(bought: { $0.environment = .sandbox })
    },
    Case("Xcode goods", "delivered_not_paid") { $0.bought { $0.environment = .xcode } },
    Case("family access sold", "family_shared_sale, status_mismatch") { $0.bought { $0.ownership = .familyShared } },
    Case("family access that the shop never booked", "nothing") {
      $0.sale({ $0.status = .pending }, bought: { $0.ownership = .familyShared })
    },
    Case("family access of amount 0", "nothing") { scene in
      scene.amount = .of(0)
      scene.sale({ $0.status = .pending }, bought: { $0.ownership = .familyShared })
    },
  ]

  static let proofs: [Case<String>] = [
    Case("a forged proof", "signature_invalid, status_mismatch") { $0.order(with: .forged) },
    Case("a forged proof beside a verified one", "signature_invalid") {
      $0.order(with: .forged, .signed($0.transaction()), isServed: true)
    },
    Case("two forged proofs", "signature_invalid") { $0.order(with: .forged, .forged) { $0.status = .failed } },
    Case("an answer of Apple's with a bad signature", "nothing") {
      $0.order(with: .init(.unanswered(.signatureInvalid))) { $0.createdAt = asOf - .hours(2) }
    },
    Case("another app", "status_mismatch, wrong_bundle") { $0.paid { $0.bundleId = "com.example.other" } },
    Case("an Xcode proof", "status_mismatch") { $0.order(with: .init(.rejected(.xcode))) },
    Case("stated as Production, signed for the sandbox", "environment_mislabelled") { scene in
      scene.world.rules.testUsers = ["user"]
      scene.order(
        with: .init(.verified(.app), of: [scene.transaction { $0.environment = .sandbox }]) {
          $0.claimedEnvironment = "Production"
        }, isServed: true)
    },
    Case("the stated environment is right", "nothing") { scene in
      scene.world.rules.testUsers = ["user"]
      scene.order(
        with: .init(.verified(.app), of: [scene.transaction { $0.environment = .sandbox }]) {
          $0.claimedEnvironment = "Sandbox"
        }, isServed: true)
    },
    Case("an environment stated, and the signature never checked", "nothing") {
      $0.order(with: .init(.neverChecked) { $0.claimedEnvironment = "Production" }) { $0.createdAt = asOf - .hours(2) }
    },
  ]

  static let refunds: [Case<String>] = [
    Case("refunded, taken back, booked", "nothing") {
      $0.sale({ $0.status = .refunded }, bought: { $0.revocation = refund }, goods: { $0.revokedAt = asOf })
    },
    Case("refunded, not booked", "refund_not_booked") { $0.paid { $0.revocation = refund } },
    Case("refunded, still delivered", "refunded_still_delivered") {
      $0.sale({ $0.status = .refunded }, bought: { $0.revocation = refund })
    },
    Case("refunded, status pending", "status_mismatch") {
      $0.paidOrder({ $0.status = .pending }, transaction: { $0.revocation = refund })
    },
    Case("delivered after the refund", "delivered_after_refund, refunded_still_delivered") {
      $0.sale(
        { $0.status = .refunded }, bought: { $0.revocation = refund },
        goods: { $0.deliveredAt = refund.date + .microsecond })
    },
    Case("delivered at the moment of the refund", "refunded_still_delivered") {
      $0.sale({ $0.status = .refunded }, bought: { $0.revocation = refund }, goods: { $0.deliveredAt = refund.date })
    },
    Case("prorated", "partial_refund") { $0.bought { $0.revocation = third } },
    Case("prorated, status refunded", "partial_refund") {
      $0.sale({ $0.status = .refunded }, bought: { $0.revocation = third })
    },
    Case("prorated, delivered later", "partial_refund") {
      $0.sale(bought: { $0.revocation = third }, goods: { $0.deliveredAt = asOf })
    },
    Case("refunded in the shop only", "refund_only_here") { $0.sale { $0.status = .refunded } },
    Case("refunded in the shop, and Apple has stated no refund since", "refund_only_here") {
      $0.sale { book(&$0, at: asOf - .hours(1)) }
    },
    Case("refunded here after Apple's last statement", "nothing") { $0.sale { book(&$0, at: asOf - .minutes(59)) } },
    Case("refunded in the shop, in a row that was changed after the as-of", "nothing") {
      $0.sale { ($0.status, $0.isChangedAfterAsOf) = (.refunded, true) }
    },
    Case("refunded in the shop, and the channel cannot state refunds", "nothing") {
      $0.sale({ $0.status = .refunded }, bought: { $0.revocationStatedDate = nil })
    },
    Case("the refund was reversed, the goods are gone", "paid_not_delivered, refund_reversed_not_reinstated") {
      $0.sale(bought: { $0.revocationWithdrawnDate = asOf - .hours(3) }, goods: { $0.revokedAt = asOf - .hours(9) })
    },
    Case(
      "the refund was reversed, a part of the goods is gone", "partly_delivered, refund_reversed_not_reinstated"
    ) { scene in
      scene.quantity = 2
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = asOf - .hours(3) })
      scene.delivery("d1", of: order) { ($0.quantity, $0.revokedAt) = (1, asOf - .hours(9)) }
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    },
    Case("the refund was reversed, a part of the goods was never delivered", "partly_delivered") { scene in
      scene.quantity = 2
      scene.sale(bought: { $0.revocationWithdrawnDate = asOf - .hours(3) }, goods: { $0.quantity = 1 })
    },
    Case("the refund was reversed, the goods are back", "nothing") { scene in
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = asOf - .hours(3) })
      scene.delivery("d1", of: order) { $0.revokedAt = asOf - .hours(9) }
      scene.delivery("d2", of: order)
    },
    Case("the refund was reversed after the as-of, the goods are gone", "nothing") {
      $0.sale(bought: reversedLater, goods: { $0.revokedAt = asOf - .hours(5) })
    },
    Case("the refund was reversed after the as-of, the goods are back", "nothing") { scene in
      let order = scene.paidOrder(transaction: reversedLater)
      scene.delivery("d1", of: order) { $0.revokedAt = asOf - .hours(5) }
      scene.delivery("d2", of: order) { $0.deliveredAt = asOf - .hours(1) }
    },
    Case(
      "the refund was reversed after the as-of, the goods are there, and the status is refunded",
      "refunded_still_delivered"
    ) {
      $0.sale({ $0.status = .refunded }, bought: reversedLater)
    },
    Case("a refund reversed after the as-of, in a row that was changed after it", "nothing") {
      $0.sale({ ($0.status, $0.isChangedAfterAsOf) = (.refunded, true) }, bought: reversedLater)
    },
    Case("taken back without any refund", "paid_not_delivered") { $0.delivered { $0.revokedAt = asOf - .hours(9) } },
  ]

  private static let refund = Revocation(date: asOf - .hours(6))
  private static func book(_ order: inout Order, at date: Instant) {
    (order.status, order.refundBookedBy) = (.refunded, date)
  }
  private static func changeLater(_ order: inout Order, to status: OrderStatus) {
    order.status = status
    order.isChangedAfterAsOf = true
  }
  private static func reversedLater(_ record: inout TransactionRecord) {
    record.revocation = refund
    record.revocationWithdrawnDate = asOf + .minutes(2)
  }
  private static let third = Revocation(date: asOf - .hours(6), percentage: 33_333, type: "REFUND_PRORATED")
}
