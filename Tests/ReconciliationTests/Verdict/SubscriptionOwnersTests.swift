import Reconciliation
import Testing

@testable import SampleWorlds

/// Orders that own periods of one subscription.
@Suite struct SubscriptionOwnersTests {
  private let people = ShopFixture().world.rules.people
  private let start = ShopFixture.asOf - .days(100)

  private func period(
    _ number: Int64, of orderId: Identifier, by userId: Identifier, after: Span = .minutes(5), isFinal: Bool = true
  ) -> OwnedPeriod {
    OwnedPeriod(
      subscription: "S1", orderId: orderId, userId: userId, date: start + .days(30 * (number - 1)), distance: after,
      isFinal: isFinal)
  }

  @Test("An order has a later one if another order owns a later period")
  func laterOrders() {
    let neighbors = SubscriptionOwners(
      [period(1, of: "o1", by: "ann"), period(2, of: "o2", by: "ann"), period(3, of: "o3", by: "ann")], people: people
    ).neighbors
    #expect(neighbors["o1"]?.hasLaterOrder == true && neighbors["o2"]?.hasLaterOrder == true)
    #expect(neighbors["o3"]?.hasLaterOrder == false)
    #expect(neighbors.values.allSatisfy { $0.earlierUser == nil })
    let single = SubscriptionOwners([period(1, of: "o1", by: "ann"), period(2, of: "o1", by: "ann")], people: people)
    #expect(single.neighbors.isEmpty)
  }

  @Test("An order of several periods counts for the nearest of them")
  func severalPeriods() {
    let neighbors = SubscriptionOwners(
      [
        period(1, of: "o1", by: "ann", after: .days(40)), period(2, of: "o1", by: "ann", after: .days(10)),
        period(1, of: "o2", by: "bob"), period(3, of: "o3", by: "bob"),
      ], people: people
    ).neighbors
    #expect(neighbors["o1"]?.earlierUser == "bob")
    #expect(neighbors["o2"]?.earlierUser == nil && neighbors["o3"]?.earlierUser == nil)
  }

  @Test("A period after those of one other person has an earlier user, unless its own person owns the first one")
  func earlierUsers() {
    let neighbors = SubscriptionOwners(
      [
        period(1, of: "o1", by: "ann"), period(2, of: "o2", by: "bob"), period(3, of: "o3", by: "ann"),
        period(4, of: "o4", by: "cid"),
      ], people: people
    ).neighbors
    #expect(neighbors["o2"]?.earlierUser == "ann")
    #expect(neighbors["o3"]?.earlierUser == nil && neighbors["o4"]?.earlierUser == nil)
  }

  @Test("While a missing answer could move an earlier period to another order, no later one has an earlier user")
  func provisionalOwners() {
    let neighbors = SubscriptionOwners(
      [
        period(1, of: "o1", by: "ann", isFinal: false), period(2, of: "o2", by: "bob"),
        period(3, of: "o3", by: "bob", isFinal: false),
      ], people: people
    ).neighbors
    #expect(neighbors.values.allSatisfy { $0.earlierUser == nil })
    #expect(neighbors["o1"]?.hasLaterOrder == true && neighbors["o2"]?.hasLaterOrder == true)
  }
}
