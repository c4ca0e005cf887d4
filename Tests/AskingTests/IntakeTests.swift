import Postgres
import Reconciliation
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// What the queue takes in of the shop's relations, in a real database.
@Suite struct IntakeTests {
  private static let asOf = RecheckRehearsal.asOf

  /// An order that names an id, and one with a receipt.
  private func fill(_ shop: RecheckRehearsal, age: Reconciliation.Span) async throws {
    try await shop.order("naming", transaction: "1", age: age)
    try await shop.order("proven", transaction: nil, age: age)
    try await shop.receipt("r", for: "proven")
    try await shop.session.execute(
      "UPDATE sales.receipts SET received_at = $1", [.timestamp((Self.asOf - age).microseconds)])
  }

  @Test(arguments: [true, false])
  func whatALongerSpanTakesInIsKnownAtOnce(isLookback: Bool) async throws {
    try await RecheckRehearsal.run { shop in
      var shop = shop
      try await fill(shop, age: .days(150))
      #expect(try await shop.queue().enqueue() == 0)
      if isLookback { shop.settings.lookback = .days(200) } else { shop.settings.refundWindow = .days(200) }
      #expect(try await shop.queue(asOf: Self.asOf + .hours(1)).enqueue() == 2)
      #expect(try await shop.queue(asOf: Self.asOf + .hours(2)).enqueue() == 0)
    }
  }

  @Test func whatAnAuditOfThePastTakesInIsKnown() async throws {
    try await RecheckRehearsal.run { shop in
      try await fill(shop, age: .days(150))
      #expect(try await shop.queue().enqueue() == 0)
      #expect(try await shop.queue(asOf: Self.asOf - .days(60)).enqueue() == 2)
    }
  }
}
