import Reconciliation
import Testing

@testable import SampleWorlds

/// Findings about payments, goods and owners, each kind beside a similar case without it. A row lists all findings of
/// the audit.
@Suite struct PaymentFindingTests {
  @Test(arguments: goods + changedLater + claims + proofs + refunds)
  func findings(row: Case<[String]>) {
    #expect(row.scene.world.findingNames == row.expected)
  }

  @Test("A customer's report of missing goods is in the reason")
  func customersWord() {
    for (word, isReported) in [("FULFILLMENT_ISSUE", true), ("UNINTENDED_PURCHASE", false)] {
      var scene = ShopFixture()
      scene.paidOrder(transaction: { $0.refundRequest = RefundRequest(date: ShopFixture.asOf, reason: word) })
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

  static let goods: [Case<[String]>] = [
    Case("paid and delivered", []) { $0.delivery(of: $0.paidOrder()) },
    Case("paid, not delivered", ["paid_not_delivered on order"]) { $0.paidOrder() },
    Case("paid just now, not delivered", []) { scene in
      scene.paidOrder(transaction: { $0.purchaseDate = ShopFixture.asOf - .minutes(10) })
    },
    Case("two of three", ["partly_delivered on order"]) { scene in
      let order = scene.paidOrder({ $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      scene.delivery(of: order) { $0.quantity = 2 }
    },
    Case("three of three in two parcels", []) { scene in
      let order = scene.paidOrder({ $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      scene.delivery("d1", of: order) { $0.quantity = 2 }
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    },
    Case("four of three", ["delivered_twice on order"]) { scene in
      let order = scene.paidOrder({ $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      scene.delivery("d1", of: order)
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    },
    Case("taken back and delivered again", []) { scene in
      let order = scene.paidOrder()
      scene.delivery("d1", of: order) { $0.revokedAt = order.createdAt + .hours(1) }
      scene.delivery("d2", of: order)
    },
    Case("delivered without proof", ["delivered_not_paid on order"]) { $0.delivery(of: $0.order()) },
    Case("delivered while Apple is down", []) { scene in
      scene.time = ShopFixture.asOf - .days(1)
      let order = scene.order()
      scene.receipt(for: order, .unanswered(.unreachable))
      scene.delivery(of: order)
    },
    Case("failed, yet paid", ["cancelled_but_paid on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .failed }))
    },
    Case("cancelled, yet paid and not delivered", ["cancelled_but_paid on order", "paid_not_delivered on order"]) {
      scene in scene.paidOrder({ $0.status = .cancelled })
    },
    Case("cancelled and not paid", []) { $0.order { $0.status = .cancelled } },
    Case("cancelled and refunded", []) { scene in
      scene.paidOrder({ $0.status = .cancelled }, transaction: { $0.revocation = Revocation(date: ordered) })
    },
    Case("unconfirmed longer than the limit", ["stuck_unconfirmed on order"]) { scene in
      scene.receipt(
        for: scene.order { $0.createdAt = ShopFixture.asOf - .hours(48) - .microsecond }, .unanswered(.unreachable))
    },
    Case("unconfirmed as long as the limit", []) { scene in
      scene.receipt(for: scene.order { $0.createdAt = ShopFixture.asOf - .hours(48) }, .unanswered(.unreachable))
    },
  ]

  /// A status that was changed after the as-of leads to no finding. Findings that do not depend on it remain.
  static let changedLater: [Case<[String]>] = [
    Case("changed to failed after the as-of, paid", []) { scene in
      scene.delivery(of: scene.paidOrder({ changeLater(&$0, to: .failed) }))
    },
    Case("changed to cancelled after the as-of, paid, not delivered", ["paid_not_delivered on order"]) { scene in
      scene.paidOrder({ changeLater(&$0, to: .cancelled) })
    },
    Case("changed to pending after the as-of, paid and delivered", []) { scene in
      scene.delivery(of: scene.paidOrder({ changeLater(&$0, to: .pending) }))
    },
    Case("changed to verified later, neither paid nor delivered", []) { $0.order { changeLater(&$0, to: .verified) } },
    Case("changed to verified after the as-of, delivered without proof", ["delivered_not_paid on order"]) { scene in
      scene.delivery(of: scene.order { changeLater(&$0, to: .verified) })
    },
    Case("changed to verified after the as-of, and refunded", []) { scene in
      scene.paidOrder({ changeLater(&$0, to: .verified) }, transaction: { $0.revocation = refund })
    },
    Case("changed to verified later, refunded and still delivered", ["refunded_still_delivered on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder({ changeLater(&$0, to: .verified) }, transaction: { $0.revocation = refund }))
    },
    Case("changed to pending after the as-of, refunded and taken back", []) { scene in
      scene.paidOrder({ changeLater(&$0, to: .pending) }, transaction: { $0.revocation = refund })
    },
  ]

  static let claims: [Case<[String]>] = [
    Case("one payment for two orders", ["duplicate_claim on later", "status_mismatch on later"]) { scene in
      scene.delivery(of: scene.paidOrder())
      scene.order("later") {
        $0.transactionId = "T1"
        $0.createdAt = ordered + .hours(1)
      }
    },
    Case(
      "one payment for three orders: every claimant",
      [
        "duplicate_claim on o2", "duplicate_claim on o3", "status_mismatch on o2", "status_mismatch on o3",
      ]
    ) { scene in
      scene.delivery(of: scene.paidOrder())
      for (id, hours) in [("o2", 1), ("o3", 2)] as [(String, Int64)] {
        scene.order(id) { order in
          order.transactionId = "T1"
          order.createdAt = ordered + .hours(hours)
        }
      }
    },
    Case("one payment, goods for two orders", ["delivered_not_paid on later", "duplicate_claim on later"]) { scene in
      scene.delivery(of: scene.paidOrder())
      let later = scene.order("later", by: "stranger") {
        $0.transactionId = "T1"
        $0.createdAt = ordered + .hours(1)
      }
      scene.delivery("d2", of: later)
    },
    Case("one receipt with two payments for two orders", []) { scene in
      let first = scene.order("o1")
      let second = scene.order("o2") { $0.createdAt = ordered + .hours(5) }
      let records = [
        scene.transaction("T1"), scene.transaction("T2") { $0.purchaseDate = ordered + .hours(5) },
      ]
      scene.receipt("r1", for: first, .verified(.app), containing: records)
      scene.receipt("r2", for: second, .verified(.app), containing: records)
      scene.delivery("d1", of: first)
      scene.delivery("d2", of: second)
    },
    Case("one order, two payments", ["charged_twice on order"]) { scene in
      let order = scene.order()
      scene.receipt(
        for: order, .verified(.app), containing: [scene.transaction("T1"), scene.transaction("T2")])
      scene.delivery(of: order)
    },
    Case("one order, two payments, one of them stated", ["charged_twice on order"]) { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(
        for: order, .verified(.app), containing: [scene.transaction("T1"), scene.transaction("T2")])
      scene.delivery(of: order)
    },
    Case("one order, two payments, one refunded", []) { scene in
      let order = scene.order { $0.transactionId = "T1" }
      let refunded = scene.transaction("T2") { $0.revocation = Revocation(date: ordered + .hours(1)) }
      scene.receipt(for: order, .verified(.app), containing: [scene.transaction("T1"), refunded])
      scene.delivery(of: order)
    },
    Case("one order, two payments, the stated one refunded", []) { scene in
      let order = scene.order { $0.transactionId = "T1" }
      let refunded = scene.transaction("T1") { $0.revocation = Revocation(date: ordered + .hours(1)) }
      scene.receipt(for: order, .verified(.app), containing: [refunded, scene.transaction("T2")])
      scene.delivery(of: order)
    },
    Case("one payment proven by two receipts", []) { scene in
      let order = scene.order()
      let record = scene.transaction()
      scene.receipt("r1", for: order, .verified(.app), containing: [record])
      scene.signedProof("r2", for: order, of: record)
      scene.delivery(of: order)
    },
    Case("another product", ["product_mismatch on order", "status_mismatch on order"]) { scene in
      scene.paidOrder({ $0.productId = "gems.500" })
    },
    Case("another app", ["status_mismatch on order", "wrong_bundle on order"]) { scene in
      scene.paidOrder(transaction: { $0.bundleId = "com.example.other" })
    },
    Case("sandbox goods", ["delivered_not_paid on order", "sandbox_delivered on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.environment = .sandbox }))
    },
    Case("sandbox goods of a test user", []) { scene in
      scene.world.rules.testUsers = ["user"]
      scene.delivery(of: scene.paidOrder(transaction: { $0.environment = .sandbox }))
    },
    Case("Xcode goods", ["delivered_not_paid on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.environment = .xcode }))
    },
    Case("family access sold", ["family_shared_sale on order", "status_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.ownership = .familyShared }))
    },
    Case("family access that the shop never booked", []) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .pending }, transaction: { $0.ownership = .familyShared }))
    },
    Case("family access of amount 0", []) { scene in
      scene.amount = .of(0)
      scene.delivery(of: scene.paidOrder({ $0.status = .pending }, transaction: { $0.ownership = .familyShared }))
    },
  ]

  static let proofs: [Case<[String]>] = [
    Case("a forged proof", ["signature_invalid on order", "status_mismatch on order"]) { scene in
      scene.receipt(for: scene.order(), .rejected(.signatureInvalid))
    },
    Case("a forged proof beside a verified one", ["signature_invalid on order"]) { scene in
      let order = scene.order()
      scene.receipt("r1", for: order, .rejected(.signatureInvalid))
      scene.signedProof("r2", for: order, of: scene.transaction())
      scene.delivery(of: order)
    },
    Case("two forged proofs", ["signature_invalid on order"]) { scene in
      let order = scene.order { $0.status = .failed }
      scene.receipt("r1", for: order, .rejected(.signatureInvalid))
      scene.receipt("r2", for: order, .rejected(.signatureInvalid))
    },
    Case("an answer of Apple's with a bad signature", []) { scene in
      scene.receipt(for: scene.order { $0.createdAt = ShopFixture.asOf - .hours(2) }, .unanswered(.signatureInvalid))
    },
    Case("an Xcode proof", ["status_mismatch on order"]) { scene in
      scene.receipt(for: scene.order(), .rejected(.xcode))
    },
    Case("stated as Production, signed for the sandbox", ["environment_mislabelled on order"]) { scene in
      scene.world.rules.testUsers = ["user"]
      let order = scene.order()
      let record = scene.transaction { $0.environment = .sandbox }
      scene.receipt(for: order, .verified(.app), containing: [record]) { $0.claimedEnvironment = "Production" }
      scene.delivery(of: order)
    },
    Case("the stated environment is right", []) { scene in
      scene.world.rules.testUsers = ["user"]
      let order = scene.order()
      let record = scene.transaction { $0.environment = .sandbox }
      scene.receipt(for: order, .verified(.app), containing: [record]) { $0.claimedEnvironment = "Sandbox" }
      scene.delivery(of: order)
    },
    Case("an environment stated, and the signature never checked", []) { scene in
      scene.receipt(for: scene.order { $0.createdAt = ShopFixture.asOf - .hours(2) }, .neverChecked) {
        $0.claimedEnvironment = "Production"
      }
    },
  ]

  static let refunds: [Case<[String]>] = [
    Case("refunded, taken back, booked", []) { scene in
      let order = scene.paidOrder({ $0.status = .refunded }, transaction: { $0.revocation = refund })
      scene.delivery(of: order) { $0.revokedAt = ShopFixture.asOf }
    },
    Case("refunded, not booked", ["refund_not_booked on order"]) { scene in
      scene.paidOrder(transaction: { $0.revocation = refund })
    },
    Case("refunded, still delivered", ["refunded_still_delivered on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .refunded }, transaction: { $0.revocation = refund }))
    },
    Case("refunded, status pending", ["status_mismatch on order"]) { scene in
      scene.paidOrder({ $0.status = .pending }, transaction: { $0.revocation = refund })
    },
    Case("delivered after the refund", ["delivered_after_refund on order", "refunded_still_delivered on order"]) {
      scene in
      let order = scene.paidOrder({ $0.status = .refunded }, transaction: { $0.revocation = refund })
      scene.delivery(of: order) { $0.deliveredAt = refund.date + .microsecond }
    },
    Case("delivered at the moment of the refund", ["refunded_still_delivered on order"]) { scene in
      let order = scene.paidOrder({ $0.status = .refunded }, transaction: { $0.revocation = refund })
      scene.delivery(of: order) { $0.deliveredAt = refund.date }
    },
    Case("prorated", ["partial_refund on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.revocation = third }))
    },
    Case("prorated, status refunded", ["partial_refund on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .refunded }, transaction: { $0.revocation = third }))
    },
    Case("prorated, delivered later", ["partial_refund on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.revocation = third })) { $0.deliveredAt = ShopFixture.asOf }
    },
    Case("refunded in the shop only", ["refund_only_here on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .refunded }))
    },
    Case("refunded in the shop, and Apple has stated no refund since", ["refund_only_here on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ book(&$0, at: ShopFixture.asOf - .hours(1)) }))
    },
    Case("refunded in the shop after Apple's last statement", []) { scene in
      scene.delivery(of: scene.paidOrder({ book(&$0, at: ShopFixture.asOf - .minutes(59)) }))
    },
    Case("refunded in the shop, in a row that was changed after the as-of", []) { scene in
      let order = scene.paidOrder({ order in
        order.status = .refunded
        order.isChangedAfterAsOf = true
      })
      scene.delivery(of: order)
    },
    Case("refunded in the shop, and the channel cannot state refunds", []) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .refunded }, transaction: { $0.revocationStatedDate = nil }))
    },
    Case(
      "the refund was reversed, the goods are gone",
      [
        "paid_not_delivered on order", "refund_reversed_not_reinstated on order",
      ]
    ) { scene in
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = ShopFixture.asOf - .hours(3) })
      scene.delivery(of: order) { $0.revokedAt = ShopFixture.asOf - .hours(9) }
    },
    Case(
      "the refund was reversed, a part of the goods is gone",
      ["partly_delivered on order", "refund_reversed_not_reinstated on order"]
    ) { scene in
      scene.quantity = 2
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = ShopFixture.asOf - .hours(3) })
      scene.delivery("d1", of: order) { delivery in
        delivery.quantity = 1
        delivery.revokedAt = ShopFixture.asOf - .hours(9)
      }
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    },
    Case(
      "the refund was reversed, a part of the goods was never delivered", ["partly_delivered on order"]
    ) { scene in
      scene.quantity = 2
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = ShopFixture.asOf - .hours(3) })
      scene.delivery(of: order) { $0.quantity = 1 }
    },
    Case("the refund was reversed, the goods are back", []) { scene in
      let order = scene.paidOrder(transaction: { $0.revocationWithdrawnDate = ShopFixture.asOf - .hours(3) })
      scene.delivery("d1", of: order) { $0.revokedAt = ShopFixture.asOf - .hours(9) }
      scene.delivery("d2", of: order)
    },
    Case("the refund was reversed after the as-of, the goods are gone", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: reversedLater)) { $0.revokedAt = ShopFixture.asOf - .hours(5) }
    },
    Case("the refund was reversed after the as-of, the goods are back", []) { scene in
      let order = scene.paidOrder(transaction: reversedLater)
      scene.delivery("d1", of: order) { $0.revokedAt = ShopFixture.asOf - .hours(5) }
      scene.delivery("d2", of: order) { $0.deliveredAt = ShopFixture.asOf - .hours(1) }
    },
    Case(
      "the refund was reversed after the as-of, the goods are there, and the status is refunded",
      ["refunded_still_delivered on order"]
    ) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .refunded }, transaction: reversedLater))
    },
    Case("a refund reversed after the as-of, in a row that was changed after it", []) { scene in
      let order = scene.paidOrder(
        { order in
          order.status = .refunded
          order.isChangedAfterAsOf = true
        }, transaction: reversedLater)
      scene.delivery(of: order)
    },
    Case("taken back without any refund", ["paid_not_delivered on order"]) { scene in
      scene.delivery(of: scene.paidOrder()) { $0.revokedAt = ShopFixture.asOf - .hours(9) }
    },
  ]

  private static let ordered = ShopFixture.asOf - .days(4)
  private static let refund = Revocation(date: ShopFixture.asOf - .hours(6))
  private static func book(_ order: inout Order, at date: Instant) {
    (order.status, order.refundBookedBy) = (.refunded, date)
  }
  private static func changeLater(_ order: inout Order, to status: OrderStatus) {
    order.status = status
    order.isChangedAfterAsOf = true
  }
  private static func reversedLater(_ record: inout TransactionRecord) {
    record.revocation = refund
    record.revocationWithdrawnDate = ShopFixture.asOf + .minutes(2)
  }
  private static let third = Revocation(date: ShopFixture.asOf - .hours(6), percentage: 33_333, type: "REFUND_PRORATED")
}
