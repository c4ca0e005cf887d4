import Foundation
import Testing

/// What becomes known later is told honestly: a day made again shows what is known now, under its own as-of.
@Suite struct LateFactsTests {
  @Test func aPastDayMadeAgainGivesTheUpdatedPictureWithItsOwnAsOf() async throws {
    let shop = try await SignedShop(transactions: [SignedShop.gems("201"), SignedShop.gems("202")])
    try await shop.order("kept", transaction: "201")
    try await shop.order("late", transaction: "202")
    func night(_ asOf: String) async throws -> (orders: [[String: String]], summary: [String: Any]) {
      let result = try await shop.nightAudit("run", "--date", "2026-11-18", "--as-of", asOf)
      #expect(result.status == 0, "\(result.errors)")
      func file(_ name: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: shop.directory.file("reports/2026-11-18/" + name)))
      }
      let summary = try JSONSerialization.jsonObject(with: file("summary.json")) as? [String: Any]
      return (rows(try file("orders.csv")), summary ?? [:])
    }
    let first = try await night(SignedShop.asOf)
    #expect(first.orders.map { $0["disposition"] } == ["settled", "settled"])
    #expect(first.summary["as_of"] as? String == SignedShop.asOf)

    // Days later the shop learns that goods of one order were taken back long ago.
    try await shop.execute(
      "UPDATE sales.deliveries SET revoked_at = '2026-11-19T10:00:00Z' WHERE order_id = 'late'")
    let later = try await night("2026-11-23T03:00:00Z")
    #expect(later.orders.map { $0["disposition"] } == ["settled", "paid_not_delivered"])
    #expect(later.summary["as_of"] as? String == "2026-11-23T03:00:00Z")
    // Both nights stand in the history of runs.
    #expect(
      try await shop.value("SELECT string_agg(period_until || ' ' || orders_read, ', ') FROM night_audit.runs")
        == "2026-11-18 2, 2026-11-18 2")
  }

  /// An audit of the past knows what was there then: not the orders, goods and payments that came since, which are no
  /// wrong dates and no lost payments either.
  @Test func anAuditOfThePastKnowsNothingOfWhatCameLater() async throws {
    let shop = try await SignedShop(transactions: [
      SignedShop.gems("201", purchased: "2026-11-16T12:00:00Z"),
      SignedShop.gems("202", purchased: "2026-11-18T12:00:00Z"),
    ])
    try await shop.order("then", transaction: "201", created: "2026-11-16T12:00:00Z")
    try await shop.order("since", transaction: "202")
    // Everything is known, and stored.
    #expect(try await shop.night().result.status == 0)
    let past = try await shop.night(asOf: "2026-11-17T03:00:00Z")
    #expect(past.dispositions == ["then": "settled"])
    #expect(past.findings.isEmpty, "\(past.findings)")
    try await shop.execute("UPDATE sales.deliveries SET revoked_at = '2026-11-19T10:00:00Z' WHERE order_id = 'then'")
    #expect(try await shop.night(asOf: "2026-11-17T03:00:00Z").dispositions == ["then": "settled"])
    let missing = try await shop.nightAudit("explain", "since", "--as-of", "2026-11-17T03:00:00Z")
    #expect(missing.status == 1 && missing.errors.contains("created 2026-11-18"), "\(missing)")
    let explained = try await shop.nightAudit("explain", "then", "--as-of", "2026-11-17T03:00:00Z")
    #expect(explained.status == 0 && explained.output.contains("\nsettled: "), "\(explained)")
  }
}
