import Reconciliation
import Testing

@testable import SampleWorlds

/// Reasons why rules do not apply.
@Suite struct ReasonTextTests {
  private static let declined: [(kind: FindingKind, expected: Case<String>)] = [
    (.quantityMismatch, Case("the same quantity", "Ordered and charged 1.") { $0.paidOrder() }),
    (
      .quantityMismatch,
      Case("no quantity stated", "Apple stated no quantity.") { $0.paid { $0.quantity = nil } }
    ),
    (.accountTokenMissing, Case("no token", "The order has no account token.") { $0.paidOrder() }),
    (
      .accountTokenMissing,
      Case("no statement about it", "Apple did not say that the transaction has none.") {
        $0.paidOrder({ $0.appAccountToken = "A1" }, transaction: { $0.appAccountToken = .absent })
      }
    ),
    (
      .amountMismatch,
      Case("no price stated", "Apple stated no price.") { $0.paid { $0.priceMilliunits = nil } }
    ),
    (
      .lapsedStillServed,
      Case("active", "Apple says that the subscription gives access.") { lapsed(&$0, .active) }
    ),
    (
      .lapsedStillServed,
      Case(
        "no answer",
        "Apple was not asked about the subscription since its access ended, or has not answered."
      ) {
        lapsed(&$0, nil)
      }
    ),
  ]

  private static func lapsed(_ scene: inout ShopFixture, _ status: SubscriptionState?) {
    scene.time = asOf - .days(50)
    let order = scene.paidOrder(transaction: { record in
      record.expiresDate = asOf - .days(20)
      record.subscriptionStatus = status
    })
    scene.delivery(of: order)
  }

  private static func reasoning(_ scene: ShopFixture) throws -> Reasoning {
    let world = scene.world
    let facts = try #require(world.matchedFacts().orders["order"])
    return Judgement.explained(facts, rules: world.rules).reasoning
  }

  @Test(arguments: declined.indices) func declinedRulesStateTheirFacts(_ row: Int) throws {
    let (kind, expected) = Self.declined[row]
    #expect(try Self.reasoning(expected.scene).declined[kind] == expected.expected, "\(expected.name)")
  }

  @Test func partialRefundsHaveAReason() throws {
    var whole = ShopFixture()
    whole.paidOrder()
    #expect(try Self.reasoning(whole).steps.last?.because.hasSuffix("Apple has reported no refund.") == true)
    var part = ShopFixture()
    part.paidOrder(transaction: { record in
      record.revocation = Revocation(date: asOf - .hours(2), percentage: 30_000, type: "REFUND_PRORATED")
    })
    #expect(try Self.reasoning(part).steps.last?.because.hasSuffix("has refunded only a part of it.") == true)
  }

  @Test func claimsWithoutAStatedIDHaveAReason() {
    var scene = ShopFixture()
    let record = scene.transaction()
    let order = scene.order()
    let claimant = Claimant(order: order, proven: VerifiedTransactions([record]))
    #expect(claimant.explanationOfUnstatedClaim(record, rules: scene.world.rules).hasSuffix("."))
  }
}
