import Reconciliation
import Testing

@testable import SampleWorlds

/// Sales, restores of earlier sales, and the catalogue.
@Suite struct SaleTests {
  @Test(arguments: sales + catalogue)
  func findings(row: Case<String>) {
    #expect(row.findings == row.expected)
  }

  @Test func unknownProductsHaveNoCatalogueDates() {
    let catalogue = Catalogue([
      Catalogue.Product(productId: "gems", type: .consumable),
      Catalogue.Product(productId: "map", type: .nonConsumable),
    ])
    #expect(["gems", "map", "sword"].map { catalogue.isNonConsumable($0) } == [false, true, false])
    #expect(["gems", "map", "sword"].map { catalogue.knows($0) } == [true, true, false])
    #expect(catalogue.isOnSale("sword", at: asOf) == nil)
  }

  static let sales: [Case<String>] = [
    Case("a stated restore by its IDs", "restored_as_sale, status_mismatch") { $0.sale(bought: restored) },
    Case("a restore, the only one in its proof", "restored_as_sale, status_mismatch") {
      $0.order(with: .signed($0.transaction("T1", restored)))
    },
    Case("two restores of one purchase", "restored_as_sale, status_mismatch") { scene in
      let records = [scene.transaction("T1", restored), scene.transaction("T2", restored)]
      scene.order(with: .init(.verified(.app), of: records))
    },
    Case("restores of two purchases", "nothing") { scene in
      let other = scene.transaction("T2") {
        ($0.originalTransactionId, $0.originalPurchaseDate) = ("T9", ordered - .days(90))
      }
      scene.order(with: .list(scene.transaction("T1", restored), other)) { $0.createdAt = asOf - .hours(47) }
    },
    Case("a restore for the smallest amount", "restored_as_sale, status_mismatch") { scene in
      scene.amount = .of(1)
      scene.sale(bought: restored)
    },
    Case("a restore that the shop never booked", "nothing") { $0.sale({ $0.status = .failed }, bought: restored) },
    Case("a restore of amount 0", "status_mismatch") { scene in
      scene.amount = .of(0)
      scene.sale(bought: restored)
    },
    Case("a restore beside an unanswered receipt", "nothing") {
      $0.order(stating: "T1", with: .signed($0.transaction("T1", restored)), .unanswered) {
        $0.createdAt = asOf - .hours(47)
      }
    },
    Case("a restore by its dates only", "restored_as_sale, status_mismatch") {
      $0.bought { $0.originalPurchaseDate = ordered - .days(90) }
    },
    Case("an original purchase at the edge of the window", "nothing") {
      $0.bought { $0.originalPurchaseDate = ordered - .hours(72) }
    },
    Case("a restore in the sandbox", "restored_as_sale, status_mismatch") {
      $0.sale(bought: {
        ($0.originalTransactionId, $0.originalPurchaseDate, $0.environment) = ("T0", ordered - .days(90), .sandbox)
      })
    },
    Case("a purchase older than the order by more than the window", "purchase_predates_order") {
      $0.bought { $0.purchaseDate = ordered - .hours(72) - .microsecond }
    },
    Case("a purchase at the edge of the window", "nothing") { $0.bought { $0.purchaseDate = ordered - .hours(72) } },
    Case("a renewal older than the order", "nothing") {
      $0.sale(bought: {
        ($0.purchaseDate, $0.originalTransactionId, $0.expiresDate) = (ordered - .days(20), "T0", asOf + .days(10))
      })
    },
    Case("an unclaimed payment with an earlier original date and its own ID", "orphan_payment on T1") {
      $0.transaction { $0.originalPurchaseDate = ordered - .days(30) }
    },
    Case("a restore with another id is no payment", "nothing") { $0.transaction("T1", restored) },
    Case("the original of a restore that its order states is no orphan", "nothing") { scene in
      let purchase = scene.transaction("T1")
      let restore = scene.transaction("T2") {
        ($0.originalTransactionId, $0.originalPurchaseDate) = ("T1", $0.purchaseDate)
      }
      scene.order(stating: "T2", with: .list(purchase, restore), isServed: true)
    },
    Case("the original of a restore without a stated ID is no orphan", "nothing") { scene in
      let purchase = scene.transaction("T1")
      let restore = scene.transaction("T2") {
        ($0.originalTransactionId, $0.originalPurchaseDate) = ("T1", $0.purchaseDate)
      }
      scene.order(with: .list(purchase, restore), isServed: true)
    },
    Case("the original of a restore of another product is no orphan", "product_mismatch") { scene in
      scene.transaction("T0")
      scene.paidOrder(
        { ($0.productId, $0.status) = ("gems.500", .failed) }, transaction: { $0.originalTransactionId = "T0" })
    },
    Case("a later period by its IDs and its expiry, whatever the original date", "renewal_without_order on T2") {
      $0.transaction("T2") {
        ($0.originalTransactionId, $0.originalPurchaseDate, $0.expiresDate) = (
          "T1", ordered + .days(1), asOf + .days(20)
        )
      }
    },
  ]

  static let catalogue: [Case<String>] = [
    Case("no catalogue", "nothing") { $0.sale() },
    Case("not in the catalogue", "unknown_product") { $0.sale(of: []) },
    Case("off sale since the purchase", "sold_outside_catalogue") { $0.sale(of: [offSale]) },
    Case("on sale since the purchase", "nothing") { $0.sale(of: [onSale]) },
    Case("off sale by one row, on sale by another", "nothing") { $0.sale(of: [offSale, onSale]) },
    Case("off sale, and never sold", "nothing") { scene in
      scene.world.products = [offSale]
      scene.order { $0.status = .cancelled }
    },
    Case("a consumable, twice", "nothing") { twice(&$0, .consumable) },
    Case("a non-consumable, twice", "bought_twice on second") { twice(&$0) },
    Case("a non-consumable, the first one refunded", "nothing") { scene in
      twice(&scene, status: .refunded) { $0.revocation = Revocation(date: asOf) }
      scene.world.deliveries[0].revokedAt = asOf
    },
    Case("a non-consumable, by a guest and their account", "bought_twice on second") { scene in
      scene.world.rules.people = People(aliases: [("guest", "user")])
      twice(&scene, by: "guest")
    },
    Case("a non-consumable, twice, beside an unanswered receipt without an order", "bought_twice on second") { scene in
      scene.time = asOf - .days(1)
      twice(&scene)
      scene.receipt(for: nil, .unanswered(.unreachable))
    },
    Case("a non-consumable, by two users", "nothing") { twice(&$0, by: "guest") },
  ]

  private static let offSale = Catalogue.Product(productId: "gems.100", soldUntil: ordered)
  private static let onSale = Catalogue.Product(productId: "gems.100", soldFrom: ordered)

  @Test("A payment is dated by the original purchase")
  func paidAt() {
    let world = shop { $0.paidOrder(transaction: { $0.originalPurchaseDate = ordered - .hours(5) }) }
    #expect(world.judged()?.paidAt == ordered - .hours(5))
  }

  @Test("A restore is void although goods were delivered, and its amount is at risk")
  func disposition() {
    let restore = Case("a restore", "unpaid restored") { $0.sale(bought: Self.restored) }.judgement
    #expect(restore?.payment == "unpaid restored" && restore?.disposition == .void)
    #expect(restore?.findings.first?.atStake == .of(990))
  }

  private static let restored: @Sendable (inout TransactionRecord) -> Void = { record in
    record.originalTransactionId = "T0"
    record.originalPurchaseDate = asOf - .days(90)
  }

  /// Two orders of one product, paid and delivered.
  private static func twice(
    _ scene: inout ShopFixture, _ type: ProductType = .nonConsumable, by other: String = "user",
    status: OrderStatus = .verified, first change: (inout TransactionRecord) -> Void = { _ in }
  ) {
    scene.world.products = [.init(productId: "gems.100", type: type)]
    scene.transaction("T1", change)
    scene.order("first", by: other, stating: "T1", lookup: .verified(nil), isServed: true) { $0.status = status }
    scene.time = scene.time + .hours(1)
    scene.transaction("T2")
    scene.order("second", stating: "T2", lookup: .verified(nil), isServed: true)
  }
}

extension ShopFixture {
  fileprivate mutating func sale(of products: [Catalogue.Product]) {
    world.products = products
    sale()
  }
}
