import Reconciliation
import Testing

@testable import SampleWorlds

/// Findings about differing records, dates, rows, and records without an order.
@Suite struct RecordFindingTests {
  @Test(arguments: users + comparison + dates + statuses + rows)
  func findings(row: Case<String>) {
    #expect(row.findings == row.expected)
  }

  /// Otherwise, a decision about one row would apply to another row on the next night.
  @Test func rowsWithoutAnIDAreDistinguishedByContent() {
    func delivery(
      _ id: Identifier, of order: Identifier?, to user: Identifier, at date: Instant = Self.late
    ) -> String {
      OrphanFindings.finding(
        on: Delivery(
          deliveryId: id, orderId: order, userId: user, productId: "gems", deliveredAt: date, defect: "broken"),
        rules: ShopFixture().world.rules
      )?.identity ?? ""
    }
    func receipt(of order: Identifier?, from user: Identifier?) -> [String] {
      OrphanFindings.findings(
        on: Receipt(
          receiptId: "", orderId: order, userId: user, receivedAt: Self.late, state: .neverChecked, defect: "broken"),
        rules: ShopFixture().world.rules
      ).map(\.identity)
    }
    func order(by user: Identifier) -> [String] {
      var bad = BadOrder.broken("")
      bad.userId = user
      return Judgement(reporting: bad).findings.map(\.identity)
    }
    let identities: [String] =
      [delivery("", of: "A", to: "u"), delivery("", of: "B", to: "u"), delivery("", of: nil, to: "v")]
      + receipt(of: "A", from: "u") + receipt(of: "B", from: nil) + receipt(of: nil, from: nil)
      + order(by: "u") + order(by: "v")
    #expect(Set(identities).count == identities.count && identities.count == 8, "\(identities)")
    // An unreadable date is different each night.
    #expect(delivery("", of: "A", to: "u", at: Self.ended) == identities[0])
    #expect(delivery("d", of: "A", to: "u") == Finding(kind: .badRow, subject: .delivery("d"), reason: "").identity)
  }

  static let users: [Case<String>] = [
    Case("goods to another user", "wrong_user") { $0.delivered { $0.userId = "stranger" } },
    Case("goods to another user, taken back", "nothing") { scene in
      let order = scene.paidOrder()
      scene.delivery("d1", of: order) { ($0.userId, $0.revokedAt) = ("stranger", asOf) }
      scene.delivery("d2", of: order)
    },
    Case("another account token", "wrong_user") {
      $0.sale({ $0.appAccountToken = token }, bought: { $0.appAccountToken = .stated(otherToken) })
    },
    Case("the same token in capitals", "nothing") {
      $0.sale({ $0.appAccountToken = token }, bought: { $0.appAccountToken = .stated(token.uppercased()) })
    },
    Case("the same token without hyphens", "nothing") { scene in
      let bare = token.filter { $0 != "-" }
      scene.sale({ $0.appAccountToken = bare }, bought: { $0.appAccountToken = .stated(token) })
    },
    Case("the same token in braces, as a URN for Apple", "nothing") {
      $0.sale(
        { $0.appAccountToken = "{\(token.uppercased())}" },
        bought: { $0.appAccountToken = .stated("urn:uuid:\(token)") })
    },
    Case("another token in braces", "wrong_user") {
      $0.sale({ $0.appAccountToken = "{\(token)}" }, bought: { $0.appAccountToken = .stated(otherToken) })
    },
    Case("the order's account token is no UUID", "nothing") {
      $0.sale({ $0.appAccountToken = "player 17" }, bought: { $0.appAccountToken = .stated(token) })
    },
    Case("the order's account token is no UUID, and Apple's is another user's", "wrong_user") { scene in
      scene.sale({ $0.appAccountToken = "player 17" }, bought: { $0.appAccountToken = .stated(token) })
      scene.order("other", by: "stranger") {
        ($0.appAccountToken, $0.productId, $0.status) = (token, "gems.500", .failed)
      }
    },
    Case("the order has no token, and Apple's is another user's", "wrong_user") { scene in
      scene.sale(bought: { $0.appAccountToken = .stated(token.uppercased()) })
      scene.order("other", by: "stranger") {
        ($0.appAccountToken, $0.productId, $0.status) = (token, "gems.500", .failed)
      }
    },
    Case("the order has no token, and Apple's is the same user's", "nothing") { scene in
      scene.sale(bought: { $0.appAccountToken = .stated(token) })
      scene.order("other") { ($0.appAccountToken, $0.productId, $0.status) = (token, "gems.500", .failed) }
    },
    Case("no token, and Apple's is of no known user", "nothing") { $0.bought { $0.appAccountToken = .stated(token) } },
    Case("the transaction has no token", "account_token_missing") {
      $0.sale({ $0.appAccountToken = token }, bought: { $0.appAccountToken = .stated(nil) })
    },
    Case("the channel cannot state a token", "nothing") {
      $0.sale({ $0.appAccountToken = token }, bought: { $0.appAccountToken = .absent })
    },
    Case("neither has a token", "nothing") { $0.bought { $0.appAccountToken = .stated(nil) } },
  ]

  static let comparison: [Case<String>] = [
    Case("another quantity", "quantity_mismatch") { $0.sale { $0.quantity = 2 } },
    Case("no quantity stated", "nothing") { $0.sale({ $0.quantity = 2 }, bought: { $0.quantity = nil }) },
    Case("a milliunit dearer", "amount_mismatch") { $0.bought { $0.priceMilliunits = 9_901 } },
    Case("cheaper", "amount_mismatch") { $0.bought { $0.priceMilliunits = 4_900 } },
    Case("cheaper by an offer", "amount_mismatch") { $0.bought { ($0.priceMilliunits, $0.hasOffer) = (4_900, true) } },
    Case("within the tolerance", "nothing") { scene in
      scene.world.rules.amountToleranceMillionths = 10_000
      scene.sale(bought: { $0.priceMilliunits = 9_910 })
    },
    Case("outside the tolerance", "amount_mismatch") { scene in
      scene.world.rules.amountToleranceMillionths = 10_000
      scene.sale(bought: { $0.priceMilliunits = 9_911 })
    },
    Case("yen", "nothing") { scene in
      scene.amount = .of(300, "JPY")
      scene.sale()
    },
    Case("no price stated", "nothing") { $0.bought { $0.priceMilliunits = nil } },
    Case("another currency", "currency_mismatch") { $0.bought { $0.currency = "EUR" } },
    Case("no currency stated", "nothing") { $0.bought { ($0.currency, $0.priceMilliunits) = (nil, nil) } },
    Case("access past the grace", "lapsed_still_served on T1 user") {
      $0.bought { $0.expiresDate = asOf - .days(16) - .microsecond }
    },
    Case("access within the grace", "nothing") { $0.bought { $0.expiresDate = asOf - .days(16) } },
    Case("lapsed and taken back", "nothing") {
      $0.sale(bought: { $0.expiresDate = ended }, goods: { $0.revokedAt = ended })
    },
    Case("taken back before the period was over", "paid_not_delivered") {
      $0.sale(bought: { $0.expiresDate = ended }, goods: { $0.revokedAt = ended - .microsecond })
    },
    Case("taken back at its end, and given again", "nothing") { scene in
      let order = scene.paidOrder(transaction: { $0.expiresDate = ended })
      scene.delivery("d1", of: order) { $0.revokedAt = ended }
      scene.delivery("d2", of: order)
    },
    Case("refunded, and taken back after the end", "nothing") {
      $0.sale(
        { $0.status = .refunded },
        bought: { ($0.expiresDate, $0.revocation) = (ended, Revocation(date: ordered + .hours(1))) },
        goods: { $0.revokedAt = asOf })
    },
    Case("renewed by a later period", "renewal_without_order on T2") { scene in
      scene.sale(bought: { $0.expiresDate = asOf - .days(30) })
      scene.transaction("T2") {
        ($0.originalTransactionId, $0.purchaseDate, $0.expiresDate, $0.isRenewal) = (
          "T1", ordered - .days(30), asOf, true
        )
      }
    },
  ]

  static let dates: [Case<String>] = [
    Case("delivered before the purchase", "delivered_before_paid") {
      $0.delivered { $0.deliveredAt = ordered - .minutes(5) - .microsecond }
    },
    Case("one of two delivered before the purchase", "delivered_before_paid") { scene in
      let order = scene.paidOrder({ $0.quantity = 2 }, transaction: { $0.quantity = 2 })
      for (id, minutes) in [("d1", 5), ("d2", -60)] as [(String, Int64)] {
        scene.delivery(id, of: order) { ($0.quantity, $0.deliveredAt) = (1, ordered + .minutes(minutes)) }
      }
    },
    Case("delivered within the clock skew", "nothing") { $0.delivered { $0.deliveredAt = ordered - .minutes(5) } },
    Case("delivered before the purchase, taken back, delivered again", "nothing") { scene in
      let order = scene.paidOrder()
      scene.delivery("d1", of: order) { ($0.deliveredAt, $0.revokedAt) = (ordered - .hours(1), ordered) }
      scene.delivery("d2", of: order)
    },
    Case("created in the future", "future_dated") { $0.order { $0.createdAt = late } },
    Case("created within the clock skew", "nothing") { $0.order { $0.createdAt = asOf + .minutes(5) } },
    Case("verified in the future", "future_dated") { $0.sale { $0.verifiedAt = late } },
    Case("delivered in the future, and counted", "future_dated") { $0.delivered { $0.deliveredAt = late } },
    Case("taken back in the future", "future_dated, paid_not_delivered") { $0.delivered { $0.revokedAt = late } },
    Case("bought in the future", "delivered_before_paid, future_dated") { $0.bought { $0.purchaseDate = late } },
    Case("bought after the as-of, and before the facts were read", "delivered_before_paid") { scene in
      scene.world.rules.readAt = late
      scene.sale(bought: { $0.purchaseDate = late })
    },
  ]

  static let statuses: [Case<String>] = [
    Case("settled but pending", "status_mismatch") { $0.sale { $0.status = .pending } },
    Case("void but verified", "status_mismatch") { $0.order() },
    Case("void but refunded", "status_mismatch") { $0.order { $0.status = .refunded } },
    Case("void and pending", "nothing") { $0.order { $0.status = .pending } },
    Case("void and failed", "nothing") { $0.order { $0.status = .failed } },
    Case("not delivered and pending", "paid_not_delivered") { $0.paidOrder({ $0.status = .pending }) },
    Case("family access, verified", "status_mismatch") { scene in
      scene.amount = .of(0)
      scene.sale(bought: { $0.ownership = .familyShared })
    },
  ]

  static let rows: [Case<String>] = [
    Case("a payment without an order", "orphan_payment on T1") { $0.transaction() },
    Case("a payment on a receipt without an order", "orphan_payment on T1") {
      $0.signedProof(for: nil, of: $0.transaction())
    },
    Case("a renewal without an order", "renewal_without_order on T1") { $0.transaction { $0.isRenewal = true } },
    Case("a payment older than the lookback", "nothing") { $0.transaction { $0.purchaseDate = asOf - .days(121) } },
    Case("a payment as old as the lookback", "orphan_payment on T1") {
      $0.transaction { $0.purchaseDate = asOf - .days(120) }
    },
    Case("a payment whose order may still come", "nothing") { $0.transaction { $0.purchaseDate = asOf - .hours(1) } },
    Case("a payment whose order should be there", "orphan_payment on T1") {
      $0.transaction { $0.purchaseDate = asOf - .hours(1) - .microsecond }
    },
    Case("a payment in the future", "orphan_payment on T1") { $0.transaction { $0.purchaseDate = late } },
    Case("a refunded payment, no order", "nothing") { $0.transaction { $0.revocation = Revocation(date: ordered) } },
    Case("a partly refunded payment without an order", "orphan_payment on T1") {
      $0.transaction { $0.revocation = Revocation(date: ordered, percentage: 50_000) }
    },
    Case("a sandbox payment without an order", "nothing") { $0.transaction { $0.environment = .sandbox } },
    Case("a payment in another app", "nothing") { $0.foreign() },
    Case("a payment that an order of another app states", "orphan_payment on T1, wrong_bundle") { scene in
      scene.world.rules.bundleIds.append(otherApp)
      scene.transaction()
      scene.order(stating: "T1") { ($0.bundleId, $0.status) = (otherApp, .pending) }
    },
    Case("family access without an order", "nothing") { $0.transaction { $0.ownership = .familyShared } },
    Case("a restored purchase", "nothing") { $0.transaction { $0.originalTransactionId = "T0" } },
    Case("a delivery without an order", "orphan_delivery on delivery") { $0.stray { $0.orderId = nil } },
    Case("a delivery of an order that does not exist", "orphan_delivery on delivery") { $0.stray() },
    Case("a delivery whose order may still be written", "nothing") { $0.stray { $0.deliveredAt = asOf - .hours(1) } },
    Case("a delivery whose order should be there", "orphan_delivery on delivery") {
      $0.stray { $0.deliveredAt = asOf - .hours(1) - .microsecond }
    },
    Case("a delivery of this instant without an order ID", "orphan_delivery on delivery") {
      $0.stray { ($0.orderId, $0.deliveredAt) = (nil, asOf) }
    },
    Case("a delivery in the future", "orphan_delivery on delivery") { $0.stray { $0.deliveredAt = late } },
    Case("a delivery row of this instant that breaks the contract", "bad_row on delivery") {
      $0.stray { ($0.deliveredAt, $0.defect) = (asOf, "quantity below 1") }
    },
    Case("a forged receipt without an order", "signature_invalid on receipt") { $0.stray(.forged) },
    Case("a forged receipt whose order may come", "nothing") { $0.stray(.forged, of: "missing", at: asOf - .hours(1)) },
    Case("a forged receipt whose order should be there", "signature_invalid on receipt") {
      $0.stray(.forged, of: "missing", at: asOf - .hours(1) - .microsecond)
    },
    Case("an unanswered receipt without an order, older than the limit", "stuck_unconfirmed on receipt") {
      $0.stray(.unanswered, at: asOf - .hours(48) - .microsecond)
    },
    Case("an unanswered receipt without an order, as old as the limit", "nothing") {
      $0.stray(.init(.review(.systemic)), at: asOf - .hours(48))
    },
    Case("an old receipt without an order that has an answer", "nothing") {
      $0.stray(.init(.verified(.app)) { $0.state.unansweredSince = asOf - .days(9) }, at: asOf - .days(9))
    },
    Case("an old receipt without an order, while no roots are configured", "nothing") {
      $0.stray(.init(.unanswered(.noRoots)), at: asOf - .days(9))
    },
    Case("a mislabelled receipt without an order", "environment_mislabelled on receipt") { scene in
      let record = scene.transaction { $0.environment = .sandbox }
      scene.stray(.init(.verified(.app), of: [record]) { $0.claimedEnvironment = "Production" })
    },
    Case("a restore: a receipt without an order, with a known payment", "nothing") { scene in
      scene.sale()
      scene.receipt(for: nil, .verified(.app), containing: scene.world.transactions)
    },
    Case("an order row that breaks the contract", "bad_row") { scene in
      scene.order(isServed: true)
      scene.order(with: .forged)
      scene.world.orders = [.bad(.broken("order"))]
    },
    Case("the payment of a row that breaks the contract", "bad_row, orphan_payment on T1") { scene in
      scene.transaction()
      scene.world.orders = [.bad(.broken("order"))]
    },
    Case(
      "broken receipt and delivery rows of an order",
      "bad_row on delivery, bad_row on r1, bad_row on r2, status_mismatch"
    ) { scene in
      let order = scene.order(
        with: .init(.rejected(.signatureInvalid)) { $0.defect = "no such status" },
        .init(.rejected(.signatureInvalid)) { $0.defect = "no such status" })
      scene.delivery(of: order) { $0.defect = "quantity below 1" }
    },
    Case("broken receipt and delivery rows without an order", "bad_row on delivery, bad_row on r1") { scene in
      scene.delivery(of: scene.order(with: .init(.rejected(.signatureInvalid)) { $0.defect = "no such status" })) {
        $0.defect = "quantity below 1"
      }
      scene.world.orders = []
    },
  ]

  private static let ended = asOf - .days(1)
  private static let late = asOf + .minutes(5) + .microsecond
  private static let token = "7e3fb204-2d3a-4c5b-9f60-0a1b2c3d4e5f"
  private static let otherToken = "11111111-2d3a-4c5b-9f60-0a1b2c3d4e5f"
}

extension ShopFixture {
  /// A delivery of an order that does not exist.
  fileprivate mutating func stray(_ change: (inout Delivery) -> Void = { _ in }) {
    delivery(of: order(), change)
    world.orders = []
  }

  /// A receipt without an order, or of one that does not exist.
  fileprivate mutating func stray(_ proof: Proof, of orderId: Identifier? = nil, at received: Instant? = nil) {
    receipt(for: nil, proof.state, containing: proof.contained) { receipt in
      (receipt.orderId, receipt.receivedAt) = (orderId, received ?? receipt.receivedAt)
      proof.change(&receipt)
    }
  }
}
