import Foundation
import TestSupport
import Testing

/// Views for BI tools: their columns have comments, and the sample queries return the report's figures.
@Suite struct BusinessIntelligenceTests {
  @Test func viewsAreDescribedAndThePageGrantsEachOfThem() async throws {
    let shop = try await Rehearsal.auditedShop()
    let silent = try await shop.value(
      """
      SELECT coalesce(string_agg(c.relname || '.' || a.attname, ', ' ORDER BY c.relname, a.attname), '')
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname LIKE 'bi\\_%'
        AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)
      """)
    #expect(silent == "")
    // The words of the glossary: facts are reported and stored, not told or said.
    let vague = try await shop.value(
      #"""
      SELECT coalesce(string_agg(d.description, '; '), '')
      FROM pg_class c JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname LIKE 'bi\_%'
        AND d.description ~* '\m(told|tells?|said|says|spoken|brought|whoever|of whom|any more)\M'
      """#)
    #expect(vague == "")

    let findings = try #require(try shop.summary("2026-11-19")["findings"] as? [String: Any])
    for (column, figure) in [("findings", "closing"), ("at_stake_unknown", "at_stake_unknown")] {
      let sum = try await shop.value("SELECT sum(\(column)) FROM night_audit.bi_findings_by_night", as: .reader)
      #expect(sum == String(findings[figure] as? Int ?? -1))
    }

    let role = "finance_\(UUID().uuidString.lowercased().prefix(8))"
    let page = try DatabaseRole.pageStatements("BusinessIntelligence.md")[0].replacing("finance_read", with: role)
    try await shop.execute(page)
    let withheld = try await shop.value(
      """
      SELECT coalesce(string_agg(relname, ' '), '') FROM pg_class
      WHERE relnamespace = 'night_audit'::regnamespace AND relkind IN ('v', 'r', 'p')
        AND starts_with(relname, 'bi_') <> has_table_privilege('\(role)', oid, 'SELECT')
      """)
    #expect(withheld == "", "views without a grant, or grants beyond the views")
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
      try await shop.nightAudit("run", "--quiet", "--as-of", asOf, environment: environment, exits: [0, 3])
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
      try await shop.nightAudit("findings", more: arguments, exits: [0])
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
    let files = try shop.files(day)
    func file(_ name: String) -> [[String: String]] { rows(files[name] ?? Data()) }
    // MonthTests compare the journal.
    let queries = try Self.queries()
    #expect(queries.count == 10)
    /// The lines of a statement in byte order.
    func lines(of statement: String) async throws -> [String] {
      let text = try await shop.value(
        """
        SELECT coalesce(string_agg(line, E'\\n' ORDER BY line COLLATE "C"), '') FROM (\(statement)) l (line)
        """, as: .reader)
      return text.isEmpty ? [] : text.split(separator: "\n").map(String.init)
    }
    /// The lines of a query, one text each, in byte order.
    func lines(_ name: String, _ columns: String, where condition: String = "true") async throws -> [String] {
      let statement = try #require(queries[name], "\(name)")
      return try await lines(of: "SELECT concat_ws('|', \(columns)) FROM (\(statement)) q WHERE \(condition)")
    }
    func sorted(_ lines: [String]) -> [String] {
      lines.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
    }
    /// The cells of each row, then its amounts without trailing zeros.
    func cells(_ rows: [[String: String]], _ columns: [String], amounts: [String] = [], unknown: String = "0")
      -> [String]
    {
      sorted(
        rows.map { row in
          let sums = amounts.map { Decimal(string: row[$0] ?? "").map { "\($0)" } ?? unknown }
          return (columns.map { row[$0] ?? "" } + sums).joined(separator: "|")
        })
    }
    func grouped(_ rows: [[String: String]], by keys: [String], sum column: String) -> [String] {
      sorted(
        Dictionary(grouping: rows) { row in keys.map { row[$0] ?? "" } }.map { key, rows in
          let sum = rows.reduce(Decimal(0)) { $0 + (Decimal(string: $1[column] ?? "") ?? 0) }
          return (key + ["\(rows.count)", "\(sum)"]).joined(separator: "|")
        })
    }
    let money = { (column: String) in "trim_scale(coalesce(\(column), 0))" }
    let (findings, orders) = (file("findings.csv"), file("orders.csv").filter { $0["disposition"] != "bad_row" })
    let open = findings.filter { ["open", "acknowledged"].contains($0["status"]) }
    let closed = Dictionary(grouping: file("changes.csv").filter { $0["change"] == "closed" }) { $0["kind"] ?? "" }
    #expect(closed["paid_not_delivered"]?.isEmpty == false)
    let overdue = open.filter { $0["due"] != "" && $0["due"] ?? "" <= day }
    #expect(overdue.map { $0["finding_id"] } == [due[0]])
    let whole = shop.directory.file("whole")
    try await shop.nightAudit(
      "reconcile", "--as-of", Rehearsal.asOf, "--since", "2026-07-24", "--until", "2026-11-20", "--out", whole,
      environment: environment, exits: [0, 3])
    let owing = try shop.table("orders", whole).filter {
      ["paid_not_delivered", "partly_delivered"].contains($0["disposition"])
    }
    let users = grouped(owing, by: ["user_id", "currency"], sum: "amount")
    try #require((1...50).contains(users.count))
    let products = cells(
      file("products.csv"), ["app", "product_id", "country", "currency", "orders"], amounts: ["ordered", "settled"])
    #expect(!products.isEmpty && orders.contains { $0["disposition"] != "sandbox" })
    for (name, columns, condition, expected) in [
      (
        "open findings and amount at risk, newest night",
        "kind, severity, coalesce(currency, ''), findings, \(money("at_stake"))", "true",
        grouped(findings, by: ["kind", "severity", "currency"], sum: "at_stake")
      ),
      (
        "amount at risk by currency over the last 30 nights", "coalesce(currency, ''), findings, \(money("at_stake"))",
        "night = '\(day)'", grouped(findings, by: ["currency"], sum: "at_stake")
      ),
      (
        "critical findings without an owner, oldest first", "finding_id", "true",
        cells(open.filter { $0["severity"] == "critical" && $0["owner"] == "" }, ["finding_id"])
      ),
      ("findings past their due day", "finding_id, due", "true", ["\(due[0])|2026-11-19"]),
      (
        "how long findings stay open, by kind", "kind, closed, extract(epoch FROM mean_time_open)::bigint", "true",
        closed.map { "\($0)|\($1.count)|86400" }.sorted()
      ),
      (
        "users with the largest amounts paid and not delivered", "user_id, currency, orders, \(money("amount"))",
        "true", users
      ),
      (
        "what became of each day's orders", "currency, disposition, orders, \(money("amount"))",
        "business_day = '\(day)' AND disposition <> 'bad_row'",
        grouped(orders, by: ["currency", "disposition"], sum: "amount")
      ),
      (
        "sales by app, product and country",
        "app, product_id, coalesce(country, ''), currency, orders, \(money("ordered")), \(money("settled"))",
        "business_day = '\(day)'", products
      ),
      (
        "nights with their completeness and sign-offs", "night, findings_closing, coalesce(signed, '')",
        "night = '\(day)'", ["\(day)|\(findings.count)|"]
      ),
    ] as [(String, String, String, [String])] {
      #expect(try await lines(name, columns, where: condition) == expected, "\(name)")
    }

    // The rows of the views. Night and report over the lookback have the same refunds. The night's period ends at
    // midnight in Tokyo.
    let refunds = try shop.table("refunds", whole).filter { $0["refunded_at"] ?? "" < "2026-11-19T15:00:00Z" }
    #expect(!refunds.isEmpty)
    for (statement, expected) in [
      (
        """
        SELECT concat_ws('|', order_id, disposition, app, coalesce(country, ''), business_day) FROM night_audit.bi_orders
        WHERE business_day = '\(day)' AND disposition <> 'bad_row'
        """, cells(orders, ["order_id", "disposition", "app", "country", "business_day"])
      ),
      (
        """
        SELECT concat_ws('|', finding_id, coalesce(app, ''), coalesce(country, ''), coalesce(business_day::text, ''))
        FROM night_audit.bi_findings WHERE finding_id = ANY ('{\(findings.map { $0["finding_id"] ?? "" }.joined(separator: ","))}')
        """, cells(findings, ["finding_id", "app", "country", "business_day"])
      ),
      (
        """
        SELECT concat_ws('|', transaction_id, coalesce(order_id, ''), coalesce(currency, ''), coalesce(app, ''),
          coalesce(trim_scale(amount)::text, '')) FROM night_audit.bi_refunds WHERE business_day >= '2026-07-24'
        """, cells(refunds, ["transaction_id", "order_id", "currency", "app"], amounts: ["amount"], unknown: "")
      ),
      (
        """
        SELECT concat_ws('|', user_id, product_id, currency, orders, trim_scale(amount)) FROM night_audit.bi_sandbox
        WHERE business_day = '\(day)'
        """, cells(file("sandbox.csv"), ["user_id", "product_id", "currency", "orders"], amounts: ["amount"])
      ),
    ] as [(String, [String])] {
      #expect(try await lines(of: statement) == expected, "\(statement)")
    }
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
  }
}
