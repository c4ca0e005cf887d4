import Reconciliation
import Testing

@testable import SampleWorlds

/// Reasons about goods agree with the deliveries.
@Suite struct DeliveryReasonTests {
  @Test("No reason contradicts the deliveries", arguments: Effort.blocks)
  func truth(block: UInt64) {
    var said: Set<String> = []
    forEachWorld(block, worldsOfAScenario: 10) { world in
      let deliveries = Dictionary(grouping: world.deliveries) { $0.orderId ?? "" }
      for finding in world.audited().judgements.values.flatMap(\.findings) {
        let own = deliveries[finding.orderId ?? ""] ?? []
        let unrevoked = own.filter { $0.stands && $0.defect == nil }
        let isWithUser = unrevoked.contains { world.rules.people.isSame($0.userId, finding.userId ?? "") }
        let claims: [(words: String, isTrue: Bool)] = [
          ("Neither paid nor delivered", own.isEmpty), ("no user has goods", unrevoked.isEmpty),
          ("Refunded and taken back", !own.isEmpty && unrevoked.isEmpty), ("Paid and delivered", !own.isEmpty),
          ("Not paid (", !unrevoked.isEmpty), ("the user still has", isWithUser), ("The user has goods", isWithUser),
        ]
        for (words, isTrue) in claims where finding.reason.text.contains(words) {
          #expect(isTrue, "\(finding.reason) on \(finding.subject.id)")
          said.insert(words)
        }
      }
    }
    #expect(said.count >= 6, "\(said)")
  }

  @Test("The reason of a status mismatch depends on payment, refund and goods")
  func statusMismatch() throws {
    let rows: [(status: OrderStatus, hasGoods: Bool?, reason: Reason)] = [
      (.verified, nil, "Neither paid nor delivered, but the shop says verified."),
      (.refunded, false, "Not paid, and no user has goods, but the shop says refunded."),
      (.verified, true, "Not paid (access comes from a family member's purchase), but the shop says verified."),
      (.pending, nil, "Refunded, and no user has goods, but the shop still says pending."),
      (.pending, false, "Refunded and taken back, but the shop still says pending."),
    ]
    for (status, hasGoods, reason) in rows {
      var scene = ShopFixture()
      let order: Order
      if status == .pending {
        let refund = Revocation(date: asOf - .hours(1))
        order = scene.paidOrder({ $0.status = status }, transaction: { $0.revocation = refund })
      } else if hasGoods == true {
        order = scene.paidOrder({ $0.status = status }, transaction: { $0.ownership = .familyShared })
      } else {
        order = scene.order { $0.status = status }
      }
      if let hasGoods { scene.delivery(of: order) { $0.revokedAt = hasGoods ? nil : asOf - .minutes(5) } }
      let finding = try #require(scene.world.audited().findings.first { $0.kind == .statusMismatch })
      #expect(finding.reason == reason)
    }
  }
}
