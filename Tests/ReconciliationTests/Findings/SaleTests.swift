import Reconciliation
import Testing

@testable import SampleWorlds

/// Sales, restores of earlier sales, and the catalogue.
@Suite struct SaleTests {
  @Test(arguments: sales + catalogue)
  func findings(row: Case<[String]>) {
    #expect(row.scene.world.findingNames == row.expected)
  }

  @Test func unknownProductsHaveNoCatalogueDates() {
    let catalogue = Catalogue([
      Catalogue.Product(productId: "gems", type: .consumable),
      Catalogue.Product(productId: "map", type: .nonConsumable),
    ])
    #expect(["gems", "map", "sword"].map { catalogue.isNonConsumable($0) } == [false, true, false])
    #expect(["gems", "map", "sword"].map { catalogue.knows($0) } == [true, true, false])
    #expect(catalogue.isOnSale("sword", at: ShopFixture.asOf) == nil)
  }

  static let sales: [Case<[String]>] = [
    Case("a stated restore by its IDs", ["restored_as_sale on order", "status_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: restored))
    },
    Case("a restore, the only one in its proof", ["restored_as_sale on order", "status_mismatch on order"]) { scene in
      scene.signedProof(for: scene.order(), of: scene.transaction("T1", restored))
    },
    Case("two restores of one purchase", ["restored_as_sale on order", "status_mismatch on order"]) { scene in
      let records = [scene.transaction("T1", restored), scene.transaction("T2", restored)]
      scene.receipt(for: scene.order(), .verified(.app), containing: records)
    },
    Case("restores of two purchases", []) { scene in
      let other = scene.transaction("T2") { record in
        restored(&record)
        record.originalTransactionId = "T9"
      }
      scene.receipt(
        for: scene.order { $0.createdAt = ShopFixture.asOf - .hours(47) }, .verified(.app),
        containing: [scene.transaction("T1", restored), other])
    },
    Case("a restore for the smallest amount", ["restored_as_sale on order", "status_mismatch on order"]) { scene in
      scene.amount = .of(1)
      scene.delivery(of: scene.paidOrder(transaction: restored))
    },
    Case("a restore that the shop never booked", []) { scene in
      scene.delivery(of: scene.paidOrder({ $0.status = .failed }, transaction: restored))
    },
    Case("a restore of amount 0", ["status_mismatch on order"]) { scene in
      scene.amount = .of(0)
      scene.delivery(of: scene.paidOrder(transaction: restored))
    },
    Case("a restore beside an unanswered receipt", []) { scene in
      let order = scene.order { order in
        order.createdAt = ShopFixture.asOf - .hours(47)
        order.transactionId = "T1"
      }
      scene.signedProof(for: order, of: scene.transaction("T1", restored))
      scene.receipt("silent", for: order, .unanswered(.unreachable))
    },
    Case("a restore by its dates only", ["restored_as_sale on order", "status_mismatch on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.originalPurchaseDate = ordered - .days(90) }))
    },
    Case("an original purchase at the edge of the window", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.originalPurchaseDate = ordered - .hours(72) }))
    },
    Case("a restore in the sandbox", ["restored_as_sale on order", "status_mismatch on order"]) { scene in
      scene.delivery(
        of: scene.paidOrder(transaction: { record in
          restored(&record)
          record.environment = .sandbox
        }))
    },
    Case("a purchase older than the order by more than the window", ["purchase_predates_order on order"]) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.purchaseDate = ordered - .hours(72) - .microsecond }))
    },
    Case("a purchase older than the order by the window", []) { scene in
      scene.delivery(of: scene.paidOrder(transaction: { $0.purchaseDate = ordered - .hours(72) }))
    },
    Case("a renewal older than the order", []) { scene in
      scene.delivery(
        of: scene.paidOrder(transaction: { record in
          record.purchaseDate = ordered - .days(20)
          record.originalTransactionId = "T0"
          record.expiresDate = ShopFixture.asOf + .days(10)
        }))
    },
    Case("an unclaimed payment with an earlier original date and its own ID", ["orphan_payment on T1"]) { scene in
      scene.transaction { $0.originalPurchaseDate = ordered - .days(30) }
    },
    Case("a restore with another id is no payment", []) { $0.transaction("T1", restored) },
    Case("the original of a restore that its order states is no orphan", []) { scene in
      let purchase = scene.transaction("T1")
      let restore = scene.transaction("T2") { record in
        record.originalTransactionId = "T1"
        record.originalPurchaseDate = record.purchaseDate
      }
      let order = scene.order { $0.transactionId = "T2" }
      scene.receipt(for: order, .verified(.app), containing: [purchase, restore])
      scene.delivery(of: order)
    },
    Case("the original of a restore without a stated ID is no orphan", []) { scene in
      let purchase = scene.transaction("T1")
      let restore = scene.transaction("T2") { record in
        record.originalTransactionId = "T1"
        record.originalPurchaseDate = record.purchaseDate
      }
      let order = scene.order()
      scene.receipt(for: order, .verified(.app), containing: [purchase, restore])
      scene.delivery(of: order)
    },
    Case("the original of a restore of another product is no orphan", ["product_mismatch on order"]) { scene in
      scene.transaction("T0")
      scene.paidOrder(
        { order in
          order.productId = "gems.500"
          order.status = .failed
        }, transaction: { $0.originalTransactionId = "T0" })
    },
    Case(
      "a later period by its IDs and its expiry, whatever the original date", ["renewal_without_order on T2"]
    ) {
      scene in
      scene.transaction("T2") { record in
        record.originalTransactionId = "T1"
        record.originalPurchaseDate = ordered + .days(1)
        record.expiresDate = ShopFixture.asOf + .days(20)
      }
    },
  ]

  static let catalogue: [Case<[String]>] = [
    Case("no catalogue", []) { $0.delivery(of: $0.paidOrder()) },
    Case("not in the catalogue", ["unknown_product on order"]) { scene in
      scene.world.products = []
      scene.delivery(of: scene.paidOrder())
    },
    Case("off sale since the purchase", ["sold_outside_catalogue on order"]) { scene in
      scene.world.products = [.init(productId: "gems.100", soldUntil: ordered)]
      scene.delivery(of: scene.paidOrder())
    },
    Case("on sale since the purchase", []) { scene in
      scene.world.products = [.init(productId: "gems.100", soldFrom: ordered)]
      scene.delivery(of: scene.paidOrder())
    },
    Case("off sale by one row, on sale by another", []) { scene in
      scene.world.products = [
        .init(productId: "gems.100", soldUntil: ordered), .init(productId: "gems.100", soldFrom: ordered),
      ]
      scene.delivery(of: scene.paidOrder())
    },
    Case("off sale, and never sold", []) { scene in
      scene.world.products = [.init(productId: "gems.100", soldUntil: ordered)]
      scene.order { $0.status = .cancelled }
    },
    Case("a consumable, twice", []) { scene in
      scene.world.products = [.init(productId: "gems.100", type: .consumable)]
      twice(&scene)
    },
    Case("a non-consumable, twice", ["bought_twice on second"]) { scene in
      scene.world.products = [.init(productId: "gems.100", type: .nonConsumable)]
      twice(&scene)
    },
    Case("a non-consumable, the first one refunded", []) { scene in
      scene.world.products = [.init(productId: "gems.100", type: .nonConsumable)]
      twice(&scene) { $0.revocation = Revocation(date: ShopFixture.asOf) }
      scene.world.orders = scene.world.orders.map { row in
        guard case .valid(var order) = row, order.orderId == "first" else { return row }
        order.status = .refunded
        return .valid(order)
      }
      scene.world.deliveries[0].revokedAt = ShopFixture.asOf
    },
    Case("a non-consumable, by a guest and their account", ["bought_twice on second"]) { scene in
      scene.world.products = [.init(productId: "gems.100", type: .nonConsumable)]
      scene.world.rules.people = People(aliases: [("guest", "user")])
      twice(&scene, by: "guest")
    },
    Case("a non-consumable, twice, beside an unanswered receipt without an order", ["bought_twice on second"]) {
      scene in
      scene.time = ShopFixture.asOf - .days(1)
      scene.world.products = [.init(productId: "gems.100", type: .nonConsumable)]
      twice(&scene)
      scene.receipt(for: nil, .unanswered(.unreachable))
    },
    Case("a non-consumable, by two users", []) { scene in
      scene.world.products = [.init(productId: "gems.100", type: .nonConsumable)]
      twice(&scene, by: "guest")
    },
  ]

  @Test("A payment is dated by the original purchase")
  func paidAt() {
    var scene = ShopFixture()
    scene.paidOrder(transaction: { $0.originalPurchaseDate = Self.ordered - .hours(5) })
    #expect(scene.world.audited().judgements["order"]?.paidAt == Self.ordered - .hours(5))
  }

  @Test("A restore is void although goods were delivered")
  func disposition() {
    var scene = ShopFixture()
    scene.delivery(of: scene.paidOrder(transaction: Self.restored))
    let judgement = scene.world.audited().judgements["order"]
    #expect(judgement?.payment == "unpaid restored")
    #expect(judgement?.disposition == .void)
    #expect(judgement?.findings.first?.atStake == .of(990))
  }

  private static let ordered = ShopFixture.asOf - .days(4)

  private static let restored: @Sendable (inout TransactionRecord) -> Void = { record in
    record.originalTransactionId = "T0"
    record.originalPurchaseDate = ShopFixture.asOf - .days(90)
  }

  /// Two orders of one product, paid and delivered.
  private static func twice(
    _ scene: inout ShopFixture, by other: String = "user", first change: (inout TransactionRecord) -> Void = { _ in }
  ) {
    for (text, id, user) in [("first", "T1", other), ("second", "T2", "user")] {
      let record = scene.transaction(id) { if text == "first" { change(&$0) } }
      let order = scene.order(text, by: user) { $0.transactionId = record.transactionId }
      scene.world.lookups[order.orderId] = .verified(nil)
      scene.delivery("d" + text, of: order)
      scene.time = scene.time + .hours(1)
    }
  }
}
