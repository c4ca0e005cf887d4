import Reconciliation
import Testing

@testable import SampleWorlds

/// Orders beside each other in one subscription.
@Suite struct SubscriptionClaimsTests {
  private let rules = ShopFixture().world.rules
  private let start = asOf - .days(100)

  /// The first period of the subscription, or a later one.
  private func period(_ number: Int64) -> TransactionRecord {
    var contents = TransactionRecord.Contents(
      environment: .production, transactionId: number == 1 ? "O" : Identifier("P\(number)"), productId: "gold")
    contents.originalTransactionId = "O"
    contents.purchaseDate = start + .days(30 * (number - 1))
    contents.expiresDate = start + .days(30 * number)
    return TransactionRecord(contents)
  }

  private func claim(
    _ orderId: Identifier, _ userId: Identifier, on number: Int64, month: Int64, after: Span = .minutes(5)
  ) -> PeriodClaim? {
    PeriodClaim(
      on: period(number), product: "gold", orderId: orderId, userId: userId,
      createdAt: start + .days(30 * (month - 1)) + after, rules: rules)
  }

  @Test("Orders that state the original ID alone each claim the period near their creation")
  func originalIDAlone() {
    let claims = [
      claim("o1", "ann", on: 1, month: 1), claim("o2", "ann", on: 1, month: 2), claim("o3", "ann", on: 1, month: 3),
    ]
    let neighbors = SubscriptionClaims(claims.compactMap(\.self), people: rules.people).neighbors
    #expect(neighbors["o1"]?.hasLaterOrder == true && neighbors["o2"]?.hasLaterOrder == true)
    #expect(neighbors["o3"]?.hasLaterOrder == false)
    #expect(neighbors.values.allSatisfy { $0.earlierUser == nil })
  }

  @Test("An order that states the original ID shortly before the first period ends claims the next one")
  func renewedEarly() {
    let first = claim("o1", "ann", on: 1, month: 1)
    for (hours, isLater) in [(72, true), (1, true), (73, false)] as [(Int64, Bool)] {
      let claims = [first, claim("o2", "ann", on: 1, month: 2, after: .hours(-hours))]
      let neighbors = SubscriptionClaims(claims.compactMap(\.self), people: rules.people).neighbors
      #expect((neighbors["o1"]?.hasLaterOrder ?? false) == isLater, "\(hours) hours")
    }
  }

  @Test("Another person who states the original ID later continues the subscription; the owner beside does not")
  func originalIDOfAnother() {
    let claims = [
      claim("o1", "ann", on: 1, month: 1), claim("o2", "ann", on: 2, month: 2), claim("b2", "bob", on: 1, month: 2),
    ]
    let neighbors = SubscriptionClaims(claims.compactMap(\.self), people: rules.people).neighbors
    #expect(neighbors["b2"]?.earlierUser == "ann")
    #expect(neighbors["o2"]?.earlierUser == nil)
  }
}
