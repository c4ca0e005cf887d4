import Reconciliation
import Testing

@Suite struct UnusualShareTests {
  /// Orders with the finding, all orders, the same two for the earlier nights, the number of these nights, and the
  /// expectation.
  @Test(arguments: [
    (11, 100, 10, 1_000, 28, true), (10, 100, 10, 1_000, 28, false), (11, 100, 37, 1_000, 28, false),
    (11, 100, 36, 1_000, 28, true), (4, 10, 0, 1_000, 28, false), (5, 10, 0, 1_000, 28, true),
    (11, 100, 0, 1_000, 1, false), (11, 100, 0, 1_000, 2, true), (11, 100, 0, 0, 28, false),
    (5, 0, 0, 1_000, 28, false),
  ])
  func aShareIsUnusualAboveAllThreeLimits(
    _ count: Int, _ orders: Int, _ before: Int, _ ordersBefore: Int, _ nights: Int, _ isUnusual: Bool
  ) {
    var kinds = [Int](repeating: 0, count: FindingKind.allCases.count)
    kinds[FindingKind.chargedTwice.index] = count
    let none = Totals()
    var totals = Totals(
      ordersRead: orders, ordersByDisposition: none.ordersByDisposition, ordersByCurrency: none.ordersByCurrency,
      amountByDisposition: none.amountByDisposition, ordered: none.ordered, ordersByKind: kinds)
    let precedent = UnusualShare.EarlierNights(
      nights: nights, orders: ordersBefore, counts: ["charged_twice": before, "refunds": before])
    #expect(UnusualShare.all(totals, since: precedent).map(\.subject) == (isUnusual ? [.kind(.chargedTwice)] : []))
    totals.refunds = count
    #expect(UnusualShare.all(totals, since: precedent).count == (isUnusual ? 2 : 0))
  }
}
