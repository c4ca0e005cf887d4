import Reconciliation
import Testing

@testable import SampleWorlds

/// Dispositions by payment and goods, the delivery grace, sandbox purchases, family access and bad rows.
@Suite struct DispositionTests {
  enum Payment: CaseIterable { case paid, reversed, unpaid, unconfirmed }
  enum DeliveredGoods: CaseIterable { case inFull, partly, takenBack, nothing }

  static let table: [(Payment, DeliveredGoods, Disposition)] = [
    (.paid, .inFull, .settled), (.paid, .partly, .partlyDelivered),
    (.paid, .takenBack, .paidNotDelivered), (.paid, .nothing, .paidNotDelivered),
    (.reversed, .inFull, .refundedStillDelivered), (.reversed, .partly, .refundedStillDelivered),
    (.reversed, .takenBack, .refunded), (.reversed, .nothing, .refunded),
    (.unpaid, .inFull, .deliveredNotPaid), (.unpaid, .partly, .deliveredNotPaid),
    (.unpaid, .takenBack, .void), (.unpaid, .nothing, .void),
    (.unconfirmed, .inFull, .unconfirmed), (.unconfirmed, .partly, .unconfirmed),
    (.unconfirmed, .takenBack, .unconfirmed), (.unconfirmed, .nothing, .unconfirmed),
  ]

  @Test("The table is complete")
  func complete() { #expect(Self.table.count == Payment.allCases.count * DeliveredGoods.allCases.count) }

  @Test(arguments: table)
  func cell(payment: Payment, goods: DeliveredGoods, expected: Disposition) {
    var scene = ShopFixture()
    let two: (inout Order) -> Void = { $0.quantity = 2 }
    let order =
      switch payment {
      case .paid: scene.paidOrder(two)
      case .reversed: scene.paidOrder(two, transaction: { $0.revocation = Revocation(date: asOf) })
      case .unpaid, .unconfirmed: scene.order("order", two)
      }
    if payment == .unconfirmed { scene.receipt(for: order, .neverChecked) }
    switch goods {
    case .inFull:
      scene.delivery("d1", of: order) { $0.quantity = 1 }
      scene.delivery("d2", of: order) { $0.quantity = 1 }
    case .partly:
      scene.delivery("d1", of: order) { $0.quantity = 1 }
      scene.delivery("d2", of: order) { delivery in
        delivery.quantity = 1
        delivery.revokedAt = asOf
      }
    case .takenBack: scene.delivery(of: order) { $0.revokedAt = asOf }
    case .nothing: break
    }
    #expect(scene.world.audited().judgements["order"]?.disposition == expected)
  }

  @Test(arguments: rows)
  func disposition(row: Case<Disposition>) {
    #expect(row.judgement?.disposition == row.expected)
  }

  static let rows: [Case<Disposition>] = [
    Case("paid as long ago as the delivery grace", .inFlight) { $0.paid { $0.purchaseDate = asOf - .hours(1) } },
    Case("paid one microsecond longer ago", .paidNotDelivered) {
      $0.paid { $0.purchaseDate = asOf - .hours(1) - .microsecond }
    },
    Case("without a purchase date, the grace starts at the verification", .inFlight) {
      $0.paidOrder({ $0.verifiedAt = asOf - .hours(1) }, transaction: { $0.purchaseDate = nil })
    },
    Case("a late verification does not extend the grace", .paidNotDelivered) { $0.paidOrder({ $0.verifiedAt = asOf }) },
    Case("without purchase date and verification, the grace starts at the creation", .inFlight) { scene in
      scene.time = asOf - .minutes(30)
      scene.paidOrder(transaction: { $0.purchaseDate = nil })
    },
    Case("without purchase date, created long ago", .paidNotDelivered) { $0.paid { $0.purchaseDate = nil } },
    Case("a partly delivered order has no grace", .partlyDelivered) { scene in
      scene.time = asOf - .minutes(30)
      scene.sale({ $0.quantity = 2 }, goods: { $0.quantity = 1 })
    },
    Case("goods that another user received count", .settled) { $0.delivered { $0.userId = "stranger" } },
    Case("goods of another order do not count", .paidNotDelivered) { scene in
      let other = scene.order("other")
      scene.paidOrder()
      scene.delivery(of: other)
    },
    Case("a broken delivery row does not count", .paidNotDelivered) { $0.delivered { $0.defect = "quantity below 1" } },
    Case("family access in the sandbox by another user", .void) { scene in
      scene.world.rules.testUsers = ["somebody"]
      scene.sale(bought: sharedInSandbox)
    },
    Case("a sandbox purchase by another user, delivered", .deliveredNotPaid) { scene in
      scene.world.rules.testUsers = ["somebody"]
      scene.sale(bought: { $0.environment = .sandbox })
    },
    Case("a sandbox purchase by another user, nothing delivered", .void) { $0.paid { $0.environment = .sandbox } },
    Case("family access is void although goods were delivered", .void) { $0.bought { $0.ownership = .familyShared } },
    Case("an order without proofs and goods", .void) { $0.order() },
  ]

  @Test("The orders of test users are no sales", arguments: testUserRows)
  func dispositionOfATestUsersOrder(row: Case<Disposition>) {
    var world = row.scene.world
    world.rules.testUsers = ["user"]
    #expect(world.judged()?.disposition == row.expected)
  }

  static let testUserRows: [Case<Disposition>] = [
    Case("a sandbox purchase by a test user", .sandbox) { $0.bought { $0.environment = .sandbox } },
    Case("a sandbox purchase by a test user, nothing delivered", .sandbox) { $0.paid { $0.environment = .sandbox } },
    Case("family access in the sandbox by a test user", .sandbox) { $0.sale(bought: sharedInSandbox) },
    Case("a restore in the sandbox by a test user", .sandbox) { scene in
      scene.sale(bought: {
        ($0.environment, $0.originalTransactionId, $0.originalPurchaseDate) = (.sandbox, "T0", asOf - .days(90))
      })
    },
    Case("another product in the sandbox by a test user", .sandbox) {
      $0.sale({ $0.productId = "gems.500" }, bought: { $0.environment = .sandbox })
    },
    Case("another app in the sandbox by a test user", .sandbox) {
      $0.bought { ($0.environment, $0.bundleId) = (.sandbox, ShopFixture.otherBundle) }
    },
    Case("a sandbox purchase that another order owns, by a test user", .sandbox) { scene in
      let record = scene.transaction { $0.environment = .sandbox }
      let owner = scene.order("owner")
      let order = scene.order { $0.createdAt = asOf - .days(1) }
      scene.signedProof("r1", for: owner, of: record)
      scene.signedProof("r2", for: order, of: record)
      scene.delivery(of: order)
    },
    Case("a production purchase by a test user", .settled) { $0.sale() },
    Case("an order without a proof by a test user", .deliveredNotPaid) { $0.order(isServed: true) },
    Case("a purchase in Xcode is never sandbox", .deliveredNotPaid) { $0.bought { $0.environment = .xcode } },
  ]

  private static func sharedInSandbox(_ record: inout TransactionRecord) {
    record.environment = .sandbox
    record.ownership = .familyShared
  }

  @Test("A row that breaks the contract is a bad_row and nothing else")
  func badRow() throws {
    var scene = ShopFixture()
    scene.world.orders = [.bad(.broken("order"))]
    scene.transaction()
    let outcome = scene.world.audited()
    let judgement = try #require(outcome.judgements["order"])
    #expect(judgement.disposition == .badRow)
    #expect(judgement.verdict == nil)
    #expect(judgement.findings.map(\.kind) == [.badRow])
  }
}
