import Foundation
import TestSupport
import Testing

/// Views for BI tools: their columns have comments, and the sample queries work.
@Suite struct BusinessIntelligenceTests {
  @Test func viewsAreDescribedAndTheSampleQueriesRun() async throws {
    let shop = try await Rehearsal.sampleShop()
    let night = try await shop.nightAudit("run", "--quiet", "--as-of", Rehearsal.asOf)
    #expect([0, 3].contains(night.status), "\(night.errors)")
    let silent = try await shop.value(
      """
      SELECT coalesce(string_agg(c.relname || '.' || a.attname, ', ' ORDER BY c.relname, a.attname), '')
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname LIKE 'bi\\_%'
        AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)
      """)
    #expect(silent == "")

    let orders = rows(try shop.files(shop.reports + "/2026-11-19")["orders.csv"] ?? Data())
    #expect(!orders.isEmpty)
    for order in orders where order["order_id"] != nil && order["disposition"] != "bad_row" {
      let id = order["order_id"] ?? ""
      let disposition = try await shop.value(
        "SELECT disposition FROM night_audit.bi_orders WHERE order_id = '\(id.replacing("'", with: "''"))'", as: .reader
      )
      #expect(disposition == order["disposition"], "\(id)")
    }
    let summary = try #require(
      try JSONSerialization.jsonObject(with: shop.files(shop.reports + "/2026-11-19")["summary.json"] ?? Data())
        as? [String: Any])
    let findings = try #require(summary["findings"] as? [String: Any])
    #expect(
      try await shop.value("SELECT sum(findings) FROM night_audit.bi_findings_by_night", as: .reader)
        == String(findings["closing"] as? Int ?? -1))
    #expect(
      try await shop.value("SELECT sum(at_stake_unknown) FROM night_audit.bi_findings_by_night", as: .reader)
        == String(findings["at_stake_unknown"] as? Int ?? -1))

    let file = Repository.root.appending(path: "cron/bi-queries.sql")
    let queries = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "-- name: ").dropFirst()
    #expect(queries.count == 10)
    for query in queries {
      let lines = query.split(separator: "\n", maxSplits: 1)
      let statement = lines[1].trimmingCharacters(in: .whitespacesAndNewlines.union(CharacterSet(charactersIn: ";")))
      // Fails for a missing column.
      _ = try await shop.value("SELECT count(*)::text FROM (\(statement)) q", as: .reader)
    }
  }

  @Test func aDaysOrdersAddUpToTheReportOfThatDayInItsTimeZone() async throws {
    let shop = try await Rehearsal.sampleShop()
    let night = try await shop.nightAudit(
      "run", "--quiet", "--as-of", Rehearsal.asOf,
      environment: ["NIGHT_AUDIT_REPORT_TIME_ZONE": "Asia/Tokyo"])
    #expect([0, 3].contains(night.status), "\(night.errors)")
    let file = Repository.root.appending(path: "cron/bi-queries.sql")
    let query = try #require(
      try String(contentsOf: file, encoding: .utf8).components(separatedBy: "-- name: ")
        .first { $0.hasPrefix("what became of each day's orders") })
    let statement = query.split(separator: "\n", maxSplits: 1)[1]
      .trimmingCharacters(in: .whitespacesAndNewlines.union(CharacterSet(charactersIn: ";")))
    let found = try FileManager.default.contentsOfDirectory(atPath: shop.reports).filter { $0.hasPrefix("2026-") }
    let day = try #require(found.first)
    let orders = rows(try shop.files(shop.reports + "/" + day)["orders.csv"] ?? Data())
    #expect(!orders.isEmpty)
    for (disposition, group) in Dictionary(grouping: orders, by: { $0["disposition"] ?? "" })
    where disposition != "bad_row" {
      let sum = try await shop.value(
        """
        SELECT coalesce(sum(q.orders), 0)::text FROM (\(statement)) q
        WHERE q.business_day = '\(day)' AND q.disposition = '\(disposition)'
        """, as: .reader)
      #expect(sum == String(group.count), "\(disposition)")
    }
    // So do the columns by which both are grouped.
    for order in orders where order["disposition"] != "bad_row" {
      let told = try await shop.value(
        """
        SELECT concat_ws(',', app, coalesce(country, ''), business_day) FROM night_audit.bi_orders
        WHERE order_id = '\(order["order_id"] ?? "")'
        """, as: .reader)
      #expect(told == ["app", "country", "business_day"].map { order[$0] ?? "" }.joined(separator: ","))
    }
    for finding in rows(try shop.files(shop.reports + "/" + day)["findings.csv"] ?? Data()) {
      let told = try await shop.value(
        """
        SELECT concat_ws(',', coalesce(app, ''), coalesce(country, ''), coalesce(business_day::text, ''))
        FROM night_audit.bi_findings WHERE finding_id = '\(finding["finding_id"] ?? "")'
        """, as: .reader)
      #expect(told == ["app", "country", "business_day"].map { finding[$0] ?? "" }.joined(separator: ","))
    }
  }
}
