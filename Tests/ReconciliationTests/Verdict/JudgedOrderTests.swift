import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// What an order says to the tie-out: a question without an answer may be what Apple has counted, and no other.
@Suite struct JudgedOrderTests {
  @Test(arguments: rows)
  func order(row: Case<String>) throws {
    let judgement = try #require(row.judgement)
    #expect(Self.words(JudgedOrder(judgement)) == row.expected, "\(judgement.payment)")
  }

  private static func words(_ order: JudgedOrder?) -> String {
    guard let order else { return "nothing" }
    let words = [order.isBooked ? "booked" : nil, order.isAwaited ? "awaited" : nil].compactMap { $0 }
    return (words + order.renewals.map { "owns \($0)" }).joined(separator: ", ")
  }

  static let rows: [Case<String>] = [
    Case("paid", "booked") { $0.paidOrder() },
    Case("reversed", "booked") { scene in
      scene.paidOrder(transaction: { $0.revocation = Revocation(date: ShopFixture.asOf - .days(1)) })
    },
    Case("a receipt that is not answered", "booked, awaited") { scene in
      scene.receipt(for: scene.order(), .unanswered(.unreachable))
    },
    Case("the same, of an order that the shop calls failed", "awaited") { scene in
      scene.receipt(for: scene.order { $0.status = .failed }, .unanswered(.unreachable))
    },
    Case("the same, of one that it calls cancelled", "awaited") { scene in
      scene.receipt(for: scene.order { $0.status = .cancelled }, .unanswered(.unreachable))
    },
    Case("a receipt that is not answered beside one that was refused", "booked, awaited") { scene in
      let order = scene.order()
      scene.receipt("forged", for: order, .rejected(.signatureInvalid))
      scene.receipt("silent", for: order, .unanswered(.unreachable))
    },
    Case("a receipt that verified and does not list it", "booked, awaited") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, .verified(.app), bringing: [scene.transaction("T2") { $0.productId = "gems.500" }])
    },
    Case("a look-up that nobody made", "booked, awaited") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.world.lookups[order.orderId] = .neverChecked
    },
    Case("a receipt that was refused", "booked") { scene in
      scene.receipt(for: scene.order(), .rejected(.signatureInvalid))
    },
    Case("no proof at all", "") { scene in scene.order { $0.status = .pending } },
    Case("bought in the sandbox", "") { $0.paidOrder(transaction: { $0.environment = .sandbox }) },
    Case("made in Xcode", "") { $0.paidOrder(transaction: { $0.environment = .xcode }) },
    Case("a renewal that it names", "booked, owns T1") { scene in
      scene.paidOrder(transaction: { record in
        record.isRenewal = true
        record.expiresDate = ShopFixture.asOf + .days(28)
      })
    },
    Case("a row that breaks the contract", "nothing") { $0.world.orders.append(.bad(.broken("order"))) },
  ]

  @Test func ordersAreBookedAtTheirVerificationDate() throws {
    var scene = ShopFixture()
    let order = scene.paidOrder { ($0.quantity, $0.verifiedAt) = (2, $0.createdAt + .hours(1)) }
    let judgement = try #require(scene.world.audited().judgements["order"])
    let said = try #require(JudgedOrder(judgement))
    #expect(said.bookedAt == order.createdAt + .hours(1) && said.quantity == 2 && said.amount == order.amount)
    scene = ShopFixture()
    scene.paidOrder()
    let never = try #require(scene.world.audited().judgements["order"])
    #expect(JudgedOrder(never)?.bookedAt == order.createdAt)
  }
}
