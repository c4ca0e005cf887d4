import Foundation
import Reporting
import TestSupport
import Testing

/// Compares every number of the first sheet with the CSV files, read by an independent program.
@Suite struct FirstSheetTests {
  @Test func theMailOfANightWithoutSheetsNamesFiveFindings() async throws {
    let shop = try await Rehearsal.auditedShop()
    let out = shop.directory.file("out")
    try await shop.nightAudit("reconcile", "--as-of", Rehearsal.asOf, "--out", out, exits: [3])
    let files = try shop.files(out)
    #expect(files["report.html"] == nil && !files.keys.contains { $0.hasSuffix(".xlsx") })
    let summary = try #require(SummaryDocument(json: [UInt8](files["summary.json"] ?? Data())))
    let lines = SummaryMail(summary, folder: "reports", attachment: nil).body.text.split(
      separator: "\n", omittingEmptySubsequences: false)
    let place = try #require(lines.firstIndex(of: "What to do first"))
    #expect(lines[(place + 1)...].prefix { !$0.isEmpty }.count == 5)
  }

  @Test func theFirstSheetAgreesWithTheFiles() async throws {
    let shop = try await Rehearsal.auditedShop(asOf: "2026-11-19T03:00:00Z")
    // People accept an overdue finding and close another.
    let decided = try await shop.value(
      """
      SELECT string_agg(finding_id, ' ') FROM (SELECT finding_id FROM night_audit.findings
        WHERE kind = 'delivered_not_paid' ORDER BY at_stake DESC NULLS LAST, finding_id LIMIT 2) f
      """
    ).split(separator: " ").map(String.init)
    try #require(decided.count == 2)
    for arguments in [
      ["due", decided[0], "--on", "2026-11-01"], ["accept", decided[0], "--until", "2027-12-31"],
      ["close", decided[1]],
    ] { try await shop.nightAudit("findings", more: arguments, exits: [0]) }
    // Changes since the night before: late goods, returned goods, an unrecorded order.
    try await shop.execute(
      """
      INSERT INTO sales.deliveries SELECT 'late-' || order_id, order_id, user_id, product_id, quantity,
        '2026-11-19T12:00:00Z', NULL
      FROM sales.orders WHERE order_id IN (SELECT order_id FROM night_audit.findings WHERE kind = 'paid_not_delivered');
      UPDATE sales.deliveries SET revoked_at = '2026-11-19T13:00:00Z' WHERE order_id IN (
        SELECT order_id FROM sales.orders WHERE created_at >= '2026-11-18T00:00:00Z'
          AND created_at < '2026-11-19T00:00:00Z' ORDER BY order_id LIMIT 3);
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
      VALUES ('late', 'u', 'gems', 1, 7.77, 'USD', 'pending', '2026-11-18T10:00:00Z', '2026-11-19T10:00:00Z');
      """)
    try await shop.nightAudit(
      "run", "--as-of", Rehearsal.asOf, environment: ["NIGHT_AUDIT_REPORT_FORMATS": "csv,xlsx"], exits: [0, 3])
    let day = shop.directory.file("day")
    try await shop.nightAudit(
      "reconcile", "--as-of", Rehearsal.asOf, "--date", "2026-11-18", "--out", day, exits: [0, 3])
    let found = try await Program.runScript(
      "first_sheet", shop.reports + "/2026-11-18", shop.reports + "/2026-11-19", day
    ).json()
    #expect(found["wrong"] as? [String] == [])
    #expect(found["unread"] as? [String] == [], "numbers without a comparison")
    #expect(found["controls"] as? Int ?? 0 >= 12)
    #expect(found["compared"] as? Int ?? 0 > 200)
    #expect(found["adjustments"] as? Int ?? 0 > 0)
    let named = try await shop.nightAudit(
      "reconcile", "--as-of", Rehearsal.asOf, "--since", "yesterday", "--until", "today", "--json", exits: [0, 3])
    let period = try named.json()["period"] as? [String: Any]
    #expect(period?["since"] as? String == "2026-11-19" && period?["until"] as? String == "2026-11-20")
  }
}
