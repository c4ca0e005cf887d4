import Foundation
import Postgres
import Reconciliation
import SalesStore
import TestSupport
import Testing

/// Tests the page Views and the comments of the plain tables.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct ViewsPageTests {
  static let page: String = {
    let page = Repository.root.appending(path: "Sources/night-audit/Documentation.docc/Views.md")
    return (try? String(contentsOf: page, encoding: .utf8)) ?? ""
  }()

  struct Example: CustomTestStringConvertible {
    let name: String
    let script: String
    var testDescription: String { name }

    /// The relations that the example defines.
    var views: [String] { script.matches(of: /CREATE VIEW sales\.([a-z_]+)/).map { String($0.1) } }
    /// The number of rows that the example states, by relation.
    var counts: [String: Int] {
      Dictionary(
        uniqueKeysWithValues: (script.split(separator: "\n").last { $0.hasPrefix("-- ") && !$0.contains("\"") } ?? "")
          .matches(of: /([a-z_]+): ([0-9]+)/).map { (String($0.1), Int($0.2) ?? -1) })
    }
    /// The rows that the example states, as JSON, with their relations.
    var rows: [(relation: String, json: String)] {
      script.replacing("\n--  ", with: "").matches(of: /-- ([a-z_]+) has (\{.*\})/)
        .map { (String($0.1), String($0.2)) }
    }
  }

  /// The example at the top of the page, in two blocks.
  static let first = Example(
    name: "Tables of the shop",
    script: page.components(separatedBy: "```sql\n").dropFirst().prefix(2)
      .map { $0.components(separatedBy: "```")[0] }.joined())

  static let examples = [first] + shapes

  private static let shapes: [Example] = page.components(separatedBy: "\n### ").dropFirst().compactMap { section in
    let parts = section.components(separatedBy: "```")
    guard parts.count >= 3, parts[1].hasPrefix("sql\n") else { return nil }
    return Example(name: section.components(separatedBy: "\n")[0], script: String(parts[1].dropFirst(4)))
  }

  /// Columns that a wrong unit or zone changes.
  private static let shown = ["orders": ["amount", "created_at"], "deliveries": ["delivered_at"]]

  @Test("each example satisfies the sales contract and has the rows that it states", arguments: examples)
  func exampleKeepsContract(_ example: Example) async throws {
    #expect(!example.views.isEmpty && Set(example.views) == Set(example.counts.keys))
    let drops = example.views.map { "DROP TABLE IF EXISTS sales.\($0);" }.joined()
    let isWhole = example.script.contains("CREATE SCHEMA sales;")
    let shop = try await TestShop.make(isPlain: !isWhole, (isWhole ? "" : drops) + example.script)
    #expect(try await shop.orders().compactMap(\.defect) == [])
    #expect(try await shop.deliveries().compactMap(\.defect) == [])
    for (relation, count) in example.counts {
      let found = try await shop.reading {
        try $0.execute("SELECT count(*)::text FROM sales.\(relation)")[0].text("count")
      }
      #expect(found == "\(count)", "\(relation)")
    }
    #expect(Set(example.rows.map { $0.relation }) == Set(example.views))
    for (relation, json) in example.rows {
      #expect(Self.shown[relation, default: []].allSatisfy { json.contains("\"\($0)\": ") }, "\(json)")
      let isFound = try await shop.reading {
        try $0.execute(
          "SELECT EXISTS (SELECT FROM sales.\(relation) v WHERE to_jsonb(v) @> $1::jsonb)", [.text(json)]
        ).single().bool(0)
      }
      #expect(isFound, "\(json)")
    }
  }

  /// Without a usable index the server scans a table, although a setting makes it avoid that.
  @Test("the indexes of the first example find single rows and new rows through its views")
  func indexesServeViews() async throws {
    let shop = try await TestShop.make(isPlain: false, Self.first.script)
    let plans = try await shop.connected { connection in
      try connection.execute("SET enable_seqscan = off")
      var conditions = [SalesRows.namedTransaction + " = '2000000001'", "o.updated_at >= now()"]
      conditions += ["r.received_at >= now()"]
      for column in ["o.order_id", "r.receipt_id", "r.order_id", "d.order_id"] {
        conditions += [try SalesRows.equals(column, "4711"), "\(column) = '4711'"]
      }
      for column in ["o.user_id", "r.user_id", "d.delivery_id", "d.user_id"] {
        conditions += [try SalesRows.equals(column, "4711")]
      }
      var plans: [String] = []
      for condition in conditions {
        let relation =
          condition.hasPrefix("r.") ? "receipts r" : condition.hasPrefix("d.") ? "deliveries d" : "orders o"
        let lines = try connection.execute("EXPLAIN SELECT * FROM sales.\(relation) WHERE \(condition)")
        plans.append(condition + "\n" + (try lines.map { try $0.text(0) }.joined(separator: "\n")))
      }
      return plans
    }
    for plan in plans { #expect(!plan.contains("Seq Scan"), "\(plan)") }
  }

  @Test("the page has twelve examples, and explains the columns as the comments of the plain tables do")
  func comments() async throws {
    let shop = try await TestShop.make()
    let comments = try await shop.connected { connection in
      try connection.execute(
        """
        SELECT format('| `%s.%s` | %s |', c.relname, a.attname, col_description(c.oid, a.attnum)) AS line
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'sales'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
        """
      ).map { try $0.text("line") }
    }
    let lines = Self.page.components(separatedBy: "\n")
    #expect(Self.examples.count == 12 && comments.count == 28 && comments.filter { !lines.contains($0) } == [])
  }
}
