import Foundation
import TestSupport
import Testing

/// Views for BI tools: their columns have comments, and the sample queries work.
@Suite struct BusinessIntelligenceTests {
  @Test func viewsAreDescribedAndTheSampleQueriesRun() async throws {
    let shop = try await Rehearsal.auditedShop()
    let silent = try await shop.value(
      """
      SELECT coalesce(string_agg(c.relname || '.' || a.attname, ', ' ORDER BY c.relname, a.attname), '')
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname LIKE 'bi\\_%'
        AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)
      """)
    #expect(silent == "")
    // The page Business intelligence has each view in its GRANT.
    let page = try String(
      contentsOf: Repository.root.appending(path: "Sources/night-audit/Documentation.docc/BusinessIntelligence.md"),
      encoding: .utf8)
    let views = try await shop.value(
      #"""
      SELECT string_agg(relname, ' ') FROM pg_class
      WHERE relnamespace = 'night_audit'::regnamespace AND relname LIKE 'bi\_%'
      """#)
    for view in views.split(separator: " ") {
      #expect(page.contains("night_audit.\(view),") || page.contains("night_audit.\(view) "), "\(view)")
    }
    // The words of the glossary: facts are reported and stored, not told or said.
    let vague = try await shop.value(
      #"""
      SELECT coalesce(string_agg(d.description, '; '), '')
      FROM pg_class c JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname LIKE 'bi\_%'
        AND d.description ~* '\m(told|tells?|said|says|spoken|brought|whoever|of whom|any more)\M'
      """#)
    #expect(vague == "")

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

    let queries = try Self.queries()
    #expect(queries.count == 10)
    for statement in queries.values {
      // Fails for a missing column.
      _ = try await shop.value("SELECT count(*)::text FROM (\(statement)) q", as: .reader)
    }
  }

  static func queries() throws -> [String: String] {
    let file = Repository.root.appending(path: "cron/bi-queries.sql")
    let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "-- name: ").dropFirst()
    return parts.reduce(into: [:]) { queries, part in
      let lines = part.split(separator: "\n", maxSplits: 1)
      queries[String(lines[0])] = lines[1].trimmingCharacters(
        in: .whitespacesAndNewlines.union(CharacterSet(charactersIn: ";")))
    }
  }

  /// Each sample query returns the values of the file or sheet that the page Business intelligence names for it.
  @Test func theSampleQueriesTieToTheReport() async throws {
    let shop = try await Rehearsal.sampleShop()
    let environment = ["NIGHT_AUDIT_REPORT_TIME_ZONE": "Asia/Tokyo"]
    func run(_ asOf: String) async throws {
      let night = try await shop.nightAudit("run", "--quiet", "--as-of", asOf, environment: environment)
      #expect([0, 3].contains(night.status), "\(night.errors)")
    }
    try await run("2026-11-19T03:00:00Z")
    // Of two findings that are due, a person closes one; a third is due later. Some goods are delivered late.
    let due = try await shop.value(
      """
      SELECT string_agg(finding_id, ' ') FROM (SELECT finding_id FROM night_audit.findings
        WHERE kind = 'delivered_not_paid' ORDER BY finding_id LIMIT 3) f
      """
    ).split(separator: " ").map(String.init)
    try #require(due.count == 3)
    for arguments in [
      ["due", due[0], "--on", "2026-11-19"], ["due", due[1], "--on", "2026-11-19"], ["close", due[1]],
      ["due", due[2], "--on", "2026-11-20"],
    ] {
      let result = try await shop.nightAudit("findings", more: arguments)
      #expect(result.status == 0, "\(result.errors)")
    }
    try await shop.execute(
      """
      INSERT INTO sales.deliveries SELECT 'late-' || order_id, order_id, user_id, product_id, quantity,
        '2026-11-19T12:00:00Z', NULL
      FROM sales.orders WHERE order_id IN (
        SELECT order_id FROM night_audit.findings WHERE kind = 'paid_not_delivered' ORDER BY order_id LIMIT 3);
      """)
    try await run("2026-11-20T03:00:00Z")
    let day = "2026-11-19"
    let files = try shop.files(shop.reports + "/" + day)
    func file(_ name: String) -> [[String: String]] { rows(files[name] ?? Data()) }
    let queries = try Self.queries()
    /// The lines of a query, one text each, in byte order.
    func lines(_ name: String, _ columns: String, where condition: String = "true") async throws -> [String] {
      let statement = try #require(queries[name], "\(name)")
      let text = try await shop.value(
        """
        SELECT coalesce(string_agg(line, E'\\n' ORDER BY line COLLATE "C"), '')
        FROM (SELECT concat_ws('|', \(columns)) AS line FROM (\(statement)) q WHERE \(condition)) l
        """, as: .reader)
      return text.isEmpty ? [] : text.split(separator: "\n").map(String.init)
    }
    func grouped(_ rows: [[String: String]], by keys: [String], sum column: String) -> [String] {
      Dictionary(grouping: rows) { row in keys.map { row[$0] ?? "" } }.map { key, rows in
        let sum = rows.reduce(Decimal(0)) { $0 + (Decimal(string: $1[column] ?? "") ?? 0) }
        return (key + ["\(rows.count)", "\(sum)"]).joined(separator: "|")
      }.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    }
    let money = { (column: String) in "trim_scale(coalesce(\(column), 0))" }
    let (findings, orders) = (file("findings.csv"), file("orders.csv"))
    let found = try await lines(
      "open findings and amount at risk, newest night",
      "kind, severity, coalesce(currency, ''), findings, \(money("at_stake"))")
    #expect(found == grouped(findings, by: ["kind", "severity", "currency"], sum: "at_stake"))
    let nights = try await lines(
      "amount at risk by currency over the last 30 nights", "coalesce(currency, ''), findings, \(money("at_stake"))",
      where: "night = '\(day)'")
    #expect(nights == grouped(findings, by: ["currency"], sum: "at_stake"))
    let unowned = try await lines("critical findings without an owner, oldest first", "finding_id")
    #expect(
      unowned
        == findings.filter {
          $0["severity"] == "critical" && $0["owner"] == "" && ["open", "acknowledged"].contains($0["status"])
        }.compactMap { $0["finding_id"] }
        .sorted())
    let overdue = findings.filter { row in
      ["open", "acknowledged"].contains(row["status"]) && row["due"] != "" && row["due"] ?? "" <= day
    }
    #expect(overdue.map { $0["finding_id"] } == [due[0]])
    #expect(try await lines("findings past their due day", "finding_id, due") == ["\(due[0])|2026-11-19"])
    let closed = Dictionary(grouping: file("changes.csv").filter { $0["change"] == "closed" }) { $0["kind"] ?? "" }
    #expect(closed["paid_not_delivered"]?.isEmpty == false)
    #expect(
      try await lines(
        "how long findings stay open, by kind", "kind, closed, extract(epoch FROM mean_time_open)::bigint")
        == closed.map { "\($0)|\($1.count)|86400" }.sorted())
    let whole = shop.directory.file("whole")
    let made = try await shop.nightAudit(
      "reconcile", "--as-of", "2026-11-20T03:00:00Z", "--since", "2026-07-24", "--until", "2026-11-20", "--out", whole,
      environment: environment)
    #expect([0, 3].contains(made.status), "\(made.errors)")
    let owing = rows(try shop.files(whole)["orders.csv"] ?? Data()).filter {
      ["paid_not_delivered", "partly_delivered"].contains($0["disposition"])
    }
    // Night and report over the lookback have the same refunds. The night's period ends at midnight in Tokyo.
    let refunds = rows(try shop.files(whole)["refunds.csv"] ?? Data()).filter {
      $0["refunded_at"] ?? "" < "2026-11-19T15:00:00Z"
    }
    #expect(!refunds.isEmpty)
    let storedRefunds = try await shop.value(
      """
      SELECT string_agg(concat_ws('|', transaction_id, coalesce(order_id, ''), coalesce(currency, ''),
        coalesce(trim_scale(amount)::text, ''), coalesce(app, '')), E'\\n')
      FROM night_audit.bi_refunds WHERE business_day >= '2026-07-24'
      """, as: .reader
    ).split(separator: "\n").map(String.init)
    let listedRefunds = refunds.map { row -> String in
      let amount = Decimal(string: row["amount"] ?? "").map { "\($0)" } ?? ""
      let cells = ["transaction_id", "order_id", "currency"].map { row[$0] ?? "" }
      return (cells + [amount, row["app"] ?? ""]).joined(separator: "|")
    }
    #expect(storedRefunds.sorted() == listedRefunds.sorted())
    let sandbox = try await shop.value(
      """
      SELECT coalesce(string_agg(concat_ws('|', user_id, product_id, currency, orders, trim_scale(amount)), E'\\n'), '')
      FROM night_audit.bi_sandbox WHERE business_day = '\(day)'
      """, as: .reader
    ).split(separator: "\n").map(String.init)
    let listedSandbox = file("sandbox.csv").map { row -> String in
      let cells = ["user_id", "product_id", "currency", "orders"].map { row[$0] ?? "" }
      return (cells + ["\(Decimal(string: row["amount"] ?? "") ?? 0)"]).joined(separator: "|")
    }
    #expect(sandbox.sorted() == listedSandbox.sorted())
    let differing = try await shop.value(
      """
      SELECT (SELECT count(*) FROM night_audit.bi_transactions t JOIN night_audit.bi_claims USING (environment, transaction_id)
          JOIN night_audit.bi_orders o USING (order_id)
          WHERE (t.app, t.country) IS DISTINCT FROM (o.app, o.country)
            OR t.business_day IS DISTINCT FROM (t.purchased_at AT TIME ZONE 'Asia/Tokyo')::date)
        + (SELECT count(*) FROM night_audit.bi_refunds
          WHERE business_day IS DISTINCT FROM (refunded_at AT TIME ZONE 'Asia/Tokyo')::date)
        + (SELECT count(*) FROM night_audit.bi_receipt_checks c JOIN night_audit.bi_orders o USING (order_id)
          WHERE c.country IS DISTINCT FROM o.country
            OR c.business_day IS DISTINCT FROM (c.received_at AT TIME ZONE 'Asia/Tokyo')::date)
      """, as: .reader)
    #expect(differing == "0")
    let users = grouped(owing, by: ["user_id", "currency"], sum: "amount")
    try #require((1...50).contains(users.count))
    #expect(
      try await lines(
        "users with the largest amounts paid and not delivered", "user_id, currency, orders, \(money("amount"))")
        == users)
    let sold = orders.filter { !["sandbox", "bad_row"].contains($0["disposition"]) }
    let outcomes = try await lines(
      "what became of each day's orders", "currency, disposition, orders, \(money("amount"))",
      where: "business_day = '\(day)' AND disposition <> 'bad_row'")
    #expect(
      outcomes
        == grouped(
          orders.filter { $0["disposition"] != "bad_row" }, by: ["currency", "disposition"], sum: "amount"))
    let products = try await lines(
      "sales by app, product and country",
      "app, product_id, coalesce(country, ''), currency, orders, \(money("ordered")), \(money("settled"))",
      where: "business_day = '\(day)'")
    #expect(
      products
        == file("products.csv").map { row in
          let sums = ["ordered", "settled"].map { "\(Decimal(string: row[$0] ?? "") ?? 0)" }
          return (["app", "product_id", "country", "currency", "orders"].map { row[$0] ?? "" } + sums)
            .joined(separator: "|")
        }.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) })
    #expect(!products.isEmpty && !sold.isEmpty)
    let signed = try await lines(
      "nights with their completeness and sign-offs", "night, findings_closing, coalesce(signed, '')",
      where: "night = '\(day)'")
    #expect(signed == ["\(day)|\(findings.count)|"])
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
    // The columns by which both are grouped agree, too.
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
