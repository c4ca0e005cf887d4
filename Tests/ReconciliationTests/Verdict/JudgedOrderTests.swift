import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Orders as the tie-out counts them. An order with a missing answer may be one that Apple's reports count.
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
    Case("reversed", "booked") { $0.paid { $0.revocation = Revocation(date: asOf - .days(1)) } },
    Case("an unanswered receipt", "booked, awaited") { $0.order(with: .unanswered) },
    Case("an unanswered receipt of an order with status failed", "awaited") {
      $0.order(with: .unanswered) { $0.status = .failed }
    },
    Case("an unanswered receipt of an order with status cancelled", "awaited") {
      $0.order(with: .unanswered) { $0.status = .cancelled }
    },
    Case("an unanswered receipt beside a rejected one", "booked, awaited") { $0.order(with: .forged, .unanswered) },
    Case("a verified receipt without the stated transaction", "booked, awaited") {
      $0.order(stating: "T1", with: .list($0.different("T2")))
    },
    Case("a look-up that was never made", "booked, awaited") { $0.order(stating: "T1", lookup: .neverChecked) },
    Case("a rejected receipt", "booked") { $0.order(with: .forged) },
    Case("no proof", "") { $0.order { $0.status = .pending } },
    Case("bought in the sandbox", "") { $0.paid { $0.environment = .sandbox } },
    Case("made in Xcode", "") { $0.paid { $0.environment = .xcode } },
    Case("a renewal that the order states", "booked, owns T1") {
      $0.paid { ($0.isRenewal, $0.expiresDate) = (true, asOf + .days(28)) }
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
