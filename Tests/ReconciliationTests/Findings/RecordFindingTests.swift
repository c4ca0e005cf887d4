import Reconciliation
import Testing

@testable import SampleWorlds

/// Findings about differing records, dates, rows, and records without an order.
@Suite struct RecordFindingTests {
  @Test(arguments: users + comparison + dates + statuses + rows)
  func findings(row: Case<[String]>) {
    #expect(row.scene.world.findingNames == row.expected)
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

  static let users: [Case<[String]>] = [
    Case("goods to another user", ["wrong_user on order"]) { scene in
      scene.delivery(of: scene.paidOrder()) { $0.userId = "stranger" }
    },
    Case("goods to another user, taken back", []) { scene in
      let order = scene.paidOrder()
      scene.delivery("d1", of: order) { delivery in
        delivery.userId = "stranger"
        delivery.revokedAt = ShopFixture.asOf
      }
      scene.delivery("d2", of: order)
    },
    Case("another account token", ["wrong_user on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder({ $0.appAccountToken = token }, transaction: { $0.appAccountToken = .stated(otherToken) }))
    },
    Case("the same token in capitals", []) { scene in
      scene.delivery(
        of: scene.paidOrder(
          { $0.appAccountToken = token }, transaction: { $0.appAccountToken = .stated(token.uppercased()) }))
    },
    Case("the same token without hyphens", []) { scene in
      let bare = token.filter { $0 != "-" }
      scene.delivery(
        of: scene.paidOrder({ $0.appAccountToken = bare }, transaction: { $0.appAccountToken = .stated(token) }))
    },
    Case("the same token in braces, as a URN for Apple", []) { scene in
      scene.delivery(
        of: scene.paidOrder(
          { $0.appAccountToken = "{\(token.uppercased())}" },
          transaction: { $0.appAccountToken = .stated("urn:uuid:\(token)") }))
    },
    Case("another token in braces", ["wrong_user on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder(
          { $0.appAccountToken = "{\(token)}" }, transaction: { $0.appAccountToken = .stated(otherToken) }))
    },
    Case("the order's account token is no UUID", []) { scene in
      scene.delivery(
        of: scene.paidOrder({ $0.appAccountToken = "player 17" }, transaction: { $0.appAccountToken = .stated(token) }))
    },
    Case("the order's account token is no UUID, and Apple's is another user's", ["wrong_user on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder({ $0.appAccountToken = "player 17" }, transaction: { $0.appAccountToken = .stated(token) }))
      scene.order("other", by: "stranger") { order in
        order.appAccountToken = token
        order.productId = "gems.500"
        order.status = .failed
      }
    },
    Case("the order has no token, and Apple's is another user's", ["wrong_user on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.appAccountToken = .stated(token.uppercased()) }))
      scene.order("other", by: "stranger") { order in
        order.appAccountToken = token
        order.productId = "gems.500"
        order.status = .failed
      }
    },
    Case("the order has no token, and Apple's is the same user's", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.appAccountToken = .stated(token) }))
      scene.order("other") { order in
        order.appAccountToken = token
        order.productId = "gems.500"
        order.status = .failed
      }
    },
    Case("the order has no token, and Apple's belongs to no known user", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.appAccountToken = .stated(token) }))
    },
    Case("the transaction has no token", ["account_token_missing on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder({ $0.appAccountToken = token }, transaction: { $0.appAccountToken = .stated(nil) }))
    },
    Case("the channel cannot state a token", []) { scene in
      scene.delivery(of: scene.paidOrder({ $0.appAccountToken = token }, transaction: { $0.appAccountToken = .absent }))
    },
    Case("neither has a token", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.appAccountToken = .stated(nil) }))
    },
  ]

  static let comparison: [Case<[String]>] = [
    Case("an ID that its own proof does not contain", ["transaction_id_mismatch on order"]) { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.world.lookups[order.orderId] = .notFound()
      scene.signedProof("r1", for: order, of: scene.transaction("T1"))
      scene.delivery(of: order)
    },
    Case("another quantity", ["quantity_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.quantity = 2 }))
    },
    Case("no quantity stated", []) { scene in
      scene.delivery(of: scene.paidOrder({ $0.quantity = 2 }, transaction: { $0.quantity = nil }))
    },
    Case("a milliunit dearer", ["amount_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.priceMilliunits = 9_901 }))
    },
    Case("cheaper", ["amount_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.priceMilliunits = 4_900 }))
    },
    Case("cheaper by an offer", ["amount_mismatch on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder(transaction: { record in
          record.priceMilliunits = 4_900
          record.hasOffer = true
        }))
    },
    Case("within the tolerance", []) { scene in
      scene.world.rules.amountToleranceMillionths = 10_000
      scene.delivery(of: scene.paidOrder(transaction: { $0.priceMilliunits = 9_910 }))
    },
    Case("outside the tolerance", ["amount_mismatch on order"]) { scene in
      scene.world.rules.amountToleranceMillionths = 10_000
      scene.delivery(of: scene.paidOrder(transaction: { $0.priceMilliunits = 9_911 }))
    },
    Case("yen", []) { scene in
      scene.amount = .of(300, "JPY")
      scene.delivery(of: scene.paidOrder())
    },
    Case("no price stated", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.priceMilliunits = nil }))
    },
    Case("another currency", ["currency_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.currency = "EUR" }))
    },
    Case("no currency stated", []) { scene in
      scene.delivery(
        of: scene.paidOrder(transaction: { record in
          record.currency = nil
          record.priceMilliunits = nil
        }))
    },
    Case("access past the grace", ["lapsed_still_served on T1 user"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.expiresDate = ShopFixture.asOf - .days(16) - .microsecond }))
    },
    Case("access within the grace", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.expiresDate = ShopFixture.asOf - .days(16) }))
    },
    Case("lapsed and taken back", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.expiresDate = ended })) { $0.revokedAt = ended }
    },
    Case("taken back before the period was over", ["paid_not_delivered on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.expiresDate = ended })) {
        $0.revokedAt = ended - .microsecond
      }
    },
    Case("taken back at its end, and given again", []) { scene in
      let order = scene.paidOrder(transaction: { $0.expiresDate = ended })
      scene.delivery("d1", of: order) { $0.revokedAt = ended }
      scene.delivery("d2", of: order)
    },
    Case("refunded, and taken back after the end", []) { scene in
      let order = scene.paidOrder(
        { $0.status = .refunded },
        transaction: { record in
          record.expiresDate = ended
          record.revocation = Revocation(date: ordered + .hours(1))
        })
      scene.delivery(of: order) { $0.revokedAt = ShopFixture.asOf }
    },
    Case("renewed by a later period", ["renewal_without_order on T2"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.expiresDate = ShopFixture.asOf - .days(30) }))
      scene.transaction("T2") { record in
        record.originalTransactionId = "T1"
        record.purchaseDate = ordered - .days(30)
        record.expiresDate = ShopFixture.asOf
        record.isRenewal = true
      }
    },
  ]

  static let dates: [Case<[String]>] = [
    Case("delivered before the purchase", ["delivered_before_paid on order"]) { scene in
      scene.delivery(of: scene.paidOrder()) { $0.deliveredAt = ordered - .minutes(5) - .microsecond }
    },
    Case("one of two delivered before the purchase", ["delivered_before_paid on order"]) { scene in
      let order = scene.paidOrder({ $0.quantity = 2 }, transaction: { $0.quantity = 2 })
      for (id, minutes) in [("d1", 5), ("d2", -60)] as [(String, Int64)] {
        scene.delivery(id, of: order) { delivery in
          delivery.quantity = 1
          delivery.deliveredAt = ordered + .minutes(minutes)
        }
      }
    },
    Case("delivered before the purchase, within the clock skew", []) { scene in
      scene.delivery(of: scene.paidOrder()) { $0.deliveredAt = ordered - .minutes(5) }
    },
    Case("delivered before the purchase, taken back, delivered again", []) { scene in
      let order = scene.paidOrder()
      scene.delivery("d1", of: order) { delivery in
        delivery.deliveredAt = ordered - .hours(1)
        delivery.revokedAt = ordered
      }
      scene.delivery("d2", of: order)
    },
    Case("created in the future", ["future_dated on order"]) { $0.order { $0.createdAt = late } },
    Case("created within the clock skew", []) { $0.order { $0.createdAt = ShopFixture.asOf + .minutes(5) } },
    Case("verified in the future", ["future_dated on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.verifiedAt = late }))
    },
    Case("delivered in the future, and counted", ["future_dated on order"]) { scene in
      scene.delivery(of: scene.paidOrder()) { $0.deliveredAt = late }
    },
    Case(
      "taken back in the future, and counted",
      [
        "future_dated on order", "paid_not_delivered on order",
      ]
    ) { scene in
      scene.delivery(of: scene.paidOrder()) { $0.revokedAt = late }
    },
    Case("bought in the future", ["delivered_before_paid on order", "future_dated on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.purchaseDate = late }))
    },
    Case("bought after the as-of, and before the facts were read", ["delivered_before_paid on order"]) { scene in
      scene.world.rules.readAt = late
      scene.delivery(of: scene.paidOrder(transaction: { $0.purchaseDate = late }))
    },
  ]

  static let statuses: [Case<[String]>] = [
    Case("settled but pending", ["status_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .pending }))
    },
    Case("void but verified", ["status_mismatch on order"]) { $0.order() },
    Case("void but refunded", ["status_mismatch on order"]) { $0.order { $0.status = .refunded } },
    Case("void and pending", []) { $0.order { $0.status = .pending } },
    Case("void and failed", []) { $0.order { $0.status = .failed } },
    Case("not delivered and pending", ["paid_not_delivered on order"]) { scene in
      scene.paidOrder({ $0.status = .pending })
    },
    Case("family access, verified", ["status_mismatch on order"]) { scene in
      scene.amount = .of(0)
      scene.delivery(of: scene.paidOrder(transaction: { $0.ownership = .familyShared }))
    },
  ]

  static let rows: [Case<[String]>] = [
    Case("a payment without an order", ["orphan_payment on T1"]) { $0.transaction() },
    Case("a payment on a receipt without an order", ["orphan_payment on T1"]) { scene in
      scene.signedProof(for: nil, of: scene.transaction())
    },
    Case("a renewal without an order", ["renewal_without_order on T1"]) { $0.transaction { $0.isRenewal = true } },
    Case("a payment older than the lookback", []) {
      $0.transaction { $0.purchaseDate = ShopFixture.asOf - .days(121) }
    },
    Case("a payment as old as the lookback", ["orphan_payment on T1"]) { scene in
      scene.transaction { $0.purchaseDate = ShopFixture.asOf - .days(120) }
    },
    Case("a payment whose order may still be written", []) { scene in
      scene.transaction { $0.purchaseDate = ShopFixture.asOf - .hours(1) }
    },
    Case("a payment whose order should be there", ["orphan_payment on T1"]) { scene in
      scene.transaction { $0.purchaseDate = ShopFixture.asOf - .hours(1) - .microsecond }
    },
    Case("a payment in the future", ["orphan_payment on T1"]) { scene in scene.transaction { $0.purchaseDate = late } },
    Case("a refunded payment without an order", []) { $0.transaction { $0.revocation = Revocation(date: ordered) } },
    Case("a partly refunded payment without an order", ["orphan_payment on T1"]) { scene in
      scene.transaction { $0.revocation = Revocation(date: ordered, percentage: 50_000) }
    },
    Case("a sandbox payment without an order", []) { $0.transaction { $0.environment = .sandbox } },
    Case("a payment in another app", []) { $0.transaction { $0.bundleId = "com.example.other" } },
    Case("family access without an order", []) { $0.transaction { $0.ownership = .familyShared } },
    Case("a restored purchase", []) { $0.transaction { $0.originalTransactionId = "T0" } },
    Case("a delivery without an order", ["orphan_delivery on delivery"]) { scene in
      scene.world.deliveries.append(
        Delivery(
          deliveryId: "delivery", orderId: nil, userId: "user", productId: "gems.100", deliveredAt: ordered))
    },
    Case("a delivery of an order that does not exist", ["orphan_delivery on delivery"]) { scene in
      scene.delivery(of: scene.order())
      scene.world.orders = []
    },
    Case("a delivery whose order may still be written", []) { scene in
      scene.delivery(of: scene.order()) { $0.deliveredAt = ShopFixture.asOf - .hours(1) }
      scene.world.orders = []
    },
    Case("a delivery whose order should be there", ["orphan_delivery on delivery"]) { scene in
      scene.delivery(of: scene.order()) { $0.deliveredAt = ShopFixture.asOf - .hours(1) - .microsecond }
      scene.world.orders = []
    },
    Case("a delivery of this instant without an order ID", ["orphan_delivery on delivery"]) { scene in
      scene.delivery(of: scene.order()) { delivery in
        delivery.orderId = nil
        delivery.deliveredAt = ShopFixture.asOf
      }
      scene.world.orders = []
    },
    Case("a delivery in the future", ["orphan_delivery on delivery"]) { scene in
      scene.delivery(of: scene.order()) { $0.deliveredAt = late }
      scene.world.orders = []
    },
    Case("a delivery row of this instant that breaks the contract", ["bad_row on delivery"]) { scene in
      scene.delivery(of: scene.order()) { delivery in
        delivery.deliveredAt = ShopFixture.asOf
        delivery.defect = "quantity below 1"
      }
      scene.world.orders = []
    },
    Case("a forged receipt without an order", ["signature_invalid on receipt"]) { scene in
      scene.receipt(for: nil, .rejected(.signatureInvalid))
    },
    Case("a forged receipt whose order may still be written", []) { scene in
      scene.receipt(for: scene.order(), .rejected(.signatureInvalid)) { $0.receivedAt = ShopFixture.asOf - .hours(1) }
      scene.world.orders = []
    },
    Case("a forged receipt whose order should be there", ["signature_invalid on receipt"]) { scene in
      scene.receipt(for: scene.order(), .rejected(.signatureInvalid)) { receipt in
        receipt.receivedAt = ShopFixture.asOf - .hours(1) - .microsecond
      }
      scene.world.orders = []
    },
    Case("an unanswered receipt without an order, older than the limit", ["stuck_unconfirmed on receipt"]) { scene in
      scene.receipt(for: nil, .unanswered(.unreachable)) {
        $0.receivedAt = ShopFixture.asOf - .hours(48) - .microsecond
      }
    },
    Case("an unanswered receipt without an order, as old as the limit", []) { scene in
      scene.receipt(for: nil, .review(.systemic)) { $0.receivedAt = ShopFixture.asOf - .hours(48) }
    },
    Case("an old receipt without an order that has an answer", []) { scene in
      scene.receipt(for: nil, .verified(.app)) { receipt in
        receipt.receivedAt = ShopFixture.asOf - .days(9)
        receipt.state.unansweredSince = ShopFixture.asOf - .days(9)
      }
    },
    Case("an old receipt without an order, while no roots are configured", []) { scene in
      scene.receipt(for: nil, .unanswered(.noRoots)) { $0.receivedAt = ShopFixture.asOf - .days(9) }
    },
    Case("a mislabelled receipt without an order", ["environment_mislabelled on receipt"]) { scene in
      let record = scene.transaction { $0.environment = .sandbox }
      scene.receipt(for: nil, .verified(.app), containing: [record]) { $0.claimedEnvironment = "Production" }
    },
    Case("a restore: a receipt without an order, with a known payment", []) { scene in
      scene.delivery(of: scene.paidOrder())
      let known = scene.world.transactions
      scene.receipt(for: nil, .verified(.app), containing: known)
    },
    Case("an order row that breaks the contract", ["bad_row on order"]) { scene in
      scene.delivery(of: scene.order())
      scene.receipt(for: scene.order(), .rejected(.signatureInvalid))
      scene.world.orders = [.bad(.broken("order"))]
    },
    Case("the payment of a row that breaks the contract", ["bad_row on order", "orphan_payment on T1"]) { scene in
      scene.transaction()
      scene.world.orders = [.bad(.broken("order"))]
    },
    Case(
      "broken receipt and delivery rows of an order",
      [
        "bad_row on delivery", "bad_row on r1", "bad_row on r2", "status_mismatch on order",
      ]
    ) { scene in
      let order = scene.order()
      scene.receipt("r1", for: order, .rejected(.signatureInvalid)) { $0.defect = "no such status" }
      scene.receipt("r2", for: order, .rejected(.signatureInvalid)) { $0.defect = "no such status" }
      scene.delivery(of: order) { $0.defect = "quantity below 1" }
    },
    Case("broken receipt and delivery rows without an order", ["bad_row on delivery", "bad_row on receipt"]) { scene in
      let order = scene.order()
      scene.receipt(for: order, .rejected(.signatureInvalid)) { $0.defect = "no such status" }
      scene.delivery(of: order) { $0.defect = "quantity below 1" }
      scene.world.orders = []
    },
  ]

  private static let ordered = ShopFixture.asOf - .days(4)
  private static let ended = ShopFixture.asOf - .days(1)
  private static let late = ShopFixture.asOf + .minutes(5) + .microsecond
  private static let token = "7e3fb204-2d3a-4c5b-9f60-0a1b2c3d4e5f"
  private static let otherToken = "11111111-2d3a-4c5b-9f60-0a1b2c3d4e5f"
}
