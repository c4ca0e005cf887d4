import Foundation
import TestSupport
import Testing

/// The reports of several days, compared with those of their nights.
@Suite struct MonthTests {
  private static let (start, hour) = (SignedShop.start, Int64(3_600_000))

  @Test func thePeriodRollsForwardAndListsItsDays() async throws {
    let shop = try await Rehearsal.auditedShop(asOf: "2026-11-18T03:00:00Z")
    try await shop.nightAudit("run", "--as-of", "2026-11-19T03:00:00Z", exits: [0, 3])
    try await shop.execute(
      """
      INSERT INTO sales.deliveries SELECT 'late-' || order_id, order_id, user_id, product_id, quantity,
        '2026-11-19T12:00:00Z', NULL
      FROM sales.orders WHERE order_id IN (SELECT order_id FROM night_audit.findings WHERE kind = 'paid_not_delivered');
      UPDATE sales.deliveries SET revoked_at = '2026-11-19T13:00:00Z' WHERE order_id IN (
        SELECT order_id FROM sales.orders WHERE created_at >= '2026-11-18T00:00:00Z'
          AND created_at < '2026-11-19T00:00:00Z' ORDER BY order_id LIMIT 3);
      """)
    let month = shop.directory.file("month")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [0, 3])
    try await shop.nightAudit(
      "reconcile", "--as-of", Rehearsal.asOf, "--since", "2026-11-18", "--until", "2026-11-19", "--out", month,
      environment: ["NIGHT_AUDIT_REPORT_FORMATS": "csv,xlsx"], exits: [0, 3])
    let found = try await Program.runScript("month_workbook", shop.reports, month).json()
    #expect(found["wrong"] as? [String] == [])
    #expect(found["days"] as? Int ?? 0 > 4)
    #expect(found["differing"] as? Int ?? 0 > 0)
    #expect(found["closed"] as? Int ?? 0 > 0)
  }

  /// The source, account, debit and credit of each line, sorted.
  private func lines(_ journal: [[String: String]]) -> [String] {
    journal.map { "\($0["source"] ?? "") \($0["account"] ?? "") \($0["debit"] ?? "")/\($0["credit"] ?? "")" }.sorted()
  }

  /// A refund and late orders make new lines and adjustments; no line is edited. A night without answers posts nothing.
  @Test func theJournalsOfNightsAddUpToTheJournalOfTheMonth() async throws {
    let (start, hour) = (Self.start, Self.hour)
    let shop = try await SignedShop(
      sales: [
        ["transactionId": "1001", "purchaseDate": start - 15 * hour, "revocationDate": start + 12 * hour],
        ["transactionId": "1002", "purchaseDate": start + 9 * hour],
        [
          "transactionId": "1003", "purchaseDate": start + 33 * hour, "productId": "gold",
          "type": "Auto-Renewable Subscription", "expiresDate": start + 33 * hour + 30 * SignedShop.day,
        ],
        ["transactionId": "1004", "purchaseDate": start + 58 * hour],
      ], formats: "csv, xlsx, stripe-import")
    let accounts = ["sale", "refund", "adjustment", "commission", "tax", "payout", "receivable"]
    try shop.configure("journal:\n  accounts:\n" + accounts.map { "    \($0): \"4-\($0)\"" }.joined(separator: "\n"))
    try await shop.sell("o1", naming: "1001", at: start - 15 * hour)
    for number: Int64 in [0, 1] { try await shop.night(number, exits: [0]) }
    try await shop.sell("o2", naming: "1002", at: start + 9 * hour)
    try await shop.sell("o3", naming: "1003", at: start + 33 * hour, product: "gold")
    try await shop.night(2, exits: [0])

    // The sample query has the amounts of the journal's accounts.
    let query = try #require(try BusinessIntelligenceTests.queries()["the journal by kind and day"])
    let posted = try await shop.value(
      """
      SELECT string_agg(concat_ws(' ', posted_for, app, kind, currency, amount), ', ' ORDER BY posted_for, kind)
      FROM (\(query)) q
      """)
    #expect(
      posted == "2026-11-19 game sale USD 1.99, 2026-11-20 game refund USD 1.99, 2026-11-21 game sale USD 3.98")
    let days = ["2026-11-19", "2026-11-20", "2026-11-21"]
    let nights = try days.map { try shop.table("journal", $0) }
    #expect(
      nights.map(lines) == [
        ["o1 4-receivable 1.99/", "o1 4-sale /1.99"], ["o1 4-receivable /1.99", "o1 4-refund 1.99/"],
        ["o2 4-adjustment /1.99", "o2 4-receivable 1.99/", "o3 4-receivable 1.99/", "o3 4-sale /1.99"],
      ])
    #expect(zip(nights, days).allSatisfy { lines, day in lines.allSatisfy { $0["posted_for"] == day } })

    let month = shop.directory.file("month")
    try await shop.nightAudit(
      "reconcile", "--as-of", SignedShop.asOf(2), "--since", days[0], "--until", days[2], "--out", month, exits: [0])
    func sorted(_ lines: [[String: String]]) -> [[String: String]] {
      lines.sorted { ($0["line_id"] ?? "") < ($1["line_id"] ?? "") }
    }
    #expect(try shop.table("journal", month) == sorted(nights.flatMap { $0 }))

    // The file for Stripe has calendar dates and decimal amounts, and a service period for a subscription.
    let imported = try shop.table("stripe-import", month)
    for row in imported {
      #expect(row["source"] == "App Store" && row["currency"] == "USD")
      for column in ["booked_date", "recognition_start_date", "recognition_end_date"] {
        #expect(row[column]?.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil, "\(row)")
      }
    }
    #expect(
      imported.map { "\($0["transaction_id"] ?? "") \($0["amount"] ?? "") \($0["recognition_end_date"] ?? "")" } == [
        "1001 1.99 2026-11-19", "1001 -1.99 2026-11-20", "1002 1.99 2026-11-20", "1003 1.99 2026-12-21",
      ])
    #expect(Set(imported.map { "\($0["transaction_id"] ?? "") \($0["split_transaction_id"] ?? "")" }).count == 4)

    // The next complete night posts the sale of an incomplete one.
    try await shop.sell("o4", naming: "1004", at: start + 58 * hour)
    try await shop.night(3, "--offline", exits: [3])
    #expect(try shop.table("journal", "2026-11-22").isEmpty)
    #expect(try await shop.value("SELECT count(*) FROM night_audit.journal_entries WHERE subject = 'o4'") == "0")
    try await shop.night(4, exits: [0])
    let last = try shop.table("journal", "2026-11-23")
    #expect(lines(last) == ["o4 4-adjustment /1.99", "o4 4-receivable 1.99/"])

    // The same night made again keeps its lines, and corrects on top of them.
    try await shop.execute("UPDATE sales.orders SET amount = 2.99 WHERE order_id = 'o2'")
    try await shop.night(4, exits: [0])
    let again = try shop.table("journal", "2026-11-23")
    #expect(last.allSatisfy(again.contains))
    #expect(
      lines(again.filter { !last.contains($0) }) == [
        "o2 4-adjustment /2.99", "o2 4-adjustment 1.99/", "o2 4-receivable /1.99", "o2 4-receivable 2.99/",
      ])
    // The night of an earlier day made again neither posts nor reverses anything.
    try await shop.execute("UPDATE sales.orders SET amount = 1.99 WHERE order_id = 'o2'")
    try await shop.nightAudit("run", "--date", days[1], "--as-of", "2026-11-24T05:00:00Z", exits: [0])
    #expect(try shop.table("journal", days[1]) == nights[1])
    #expect(try await shop.value("SELECT count(*) FROM night_audit.journal_entries") == "7")
    try await shop.nightAudit("verify", exits: [0])
  }

  /// The night of the next day has the adjustment.
  @Test func aReportListsARefundThatWasWithdrawnAfterItsPeriod() async throws {
    let (start, hour) = (Self.start, Self.hour)
    let shop = try await SignedShop(
      sales: [
        [
          "transactionId": "1001", "purchaseDate": start + 2 * hour, "revocationDate": start + 3 * hour,
          "refundReversedDate": start + 27 * hour,
        ]
      ])
    try await shop.night(0, exits: [0, 3])
    try await shop.sell("reversed", naming: "1001", at: start + 2 * hour)
    for number: Int64 in [1, 2] { try await shop.night(number, exits: [0, 3]) }
    func refunds(_ folder: String) throws -> [String?] {
      try shop.table("refunds", folder).map { $0["transaction_id"] }
    }
    let days = ["2026-11-20", "2026-11-21"]
    #expect(try days.map(refunds) == [["1001"], []])
    let adjusted = try shop.table("changes", days[1]).filter { $0["kind"] == "refund" }
    #expect(adjusted.map { $0["after"] } == ["0.00"])
    for (until, expected) in [(days[0], ["1001"]), (days[1], [])] {
      let out = shop.directory.file("until-\(until)")
      try await shop.nightAudit(
        "reconcile", "--as-of", SignedShop.asOf(2), "--since", days[0], "--until", until, "--out", out, exits: [0, 3])
      #expect(try refunds(out) == expected, "until \(until)")
    }
  }

  /// Apple reports the refund after the night of its day.
  @Test func aRefundKeepsThePeriodThatReportedItFirst() async throws {
    let (start, hour) = (Self.start, Self.hour)
    let shop = try await SignedShop(
      sales: [["transactionId": "1001", "purchaseDate": start + 2 * hour, "revocationDate": start + 3 * hour]],
      sendsNotifications: false)
    func refunds(_ folder: String) throws -> [String?] {
      try shop.table("refunds", folder).map { $0["transaction_id"] }
    }
    for number: Int64 in [0, 1] { try await shop.night(number, exits: [0, 3]) }
    try await shop.sell("late", naming: "1001", at: start + 2 * hour)
    for number: Int64 in [2, 3] { try await shop.night(number, exits: [0, 3]) }
    let days = ["2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22"]
    #expect(try days.map(refunds) == [[], [], ["1001"], []])
    // Neither a repeated day nor a report of both days lists the refund twice.
    for (since, until, expected) in [
      (days[1], days[1], []), (days[1], days[2], ["1001"]), (days[0], days[3], ["1001"]),
    ] {
      let out = shop.directory.file("\(since)-\(until)")
      try await shop.nightAudit(
        "reconcile", "--as-of", SignedShop.asOf(3), "--since", since, "--until", until, "--out", out, exits: [0, 3])
      #expect(try refunds(out) == expected, "\(since) to \(until)")
    }
  }
}
