import Foundation
import Postgres
import Settings

/// Checks that rows are found by ID without sequential scans: a night looks up thousands of batches.
///
/// The planner is asked (EXPLAIN), because views have no indexes of their own.
struct SalesIndexes {
  let settings: Settings
  /// Row counts by relation; small relations need no index.
  let rows: [String: Int]

  private static let minimumRowCount = 10_000
  /// An ID that matches nothing; it separates our condition from a view's own.
  private static let absentID = "night-audit:nobody"

  private static let lookups = [
    ("orders", "order_id"), ("receipts", "receipt_id"), ("receipts", "order_id"), ("deliveries", "order_id"),
  ]

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let schema = try PostgresIdentifier(settings.salesSchema).sql
    var found: [Diagnosis] = []
    // Without this the planner may prefer a sequential scan although there is an index.
    try connection.execute("SET enable_seqscan = off")
    for (relation, column) in SalesIndexes.lookups where rows[relation, default: 0] >= SalesIndexes.minimumRowCount {
      let plan = try connection.execute(
        """
        EXPLAIN (FORMAT JSON) SELECT 1 FROM \(schema).\(relation) r WHERE r.\(column)::text = '\(SalesIndexes.absentID)'
        """
      ).single().text(0)
      guard let scan = SalesIndexes.scans(in: try JSONSerialization.jsonObject(with: Data(plan.utf8))).first else {
        continue
      }
      found.append(
        .warning(
          "\(settings.salesSchema).\(relation).\(column)",
          """
          is not indexed, so that each look-up reads \(rows[relation] ?? 0) rows; run: \
          CREATE INDEX CONCURRENTLY ON \(try scan.table(connection)) ((\(scan.expression)))
          """))
    }
    try connection.execute("RESET enable_seqscan")
    return found
  }

  struct Scan: Equatable {
    var table: String
    var expression: String

    func table(_ connection: borrowing BlockingConnection) throws -> String {
      let name = try PostgresIdentifier(table).sql
      let rows = try connection.execute(
        """
        SELECT quote_ident(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'm') AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1
        """, [.text(table)])
      // The plan does not tell which of several tables of that name it reads.
      guard rows.count == 1, let row = rows.first else { return name }
      return "\(try row.text(0)).\(name)"
    }
  }

  static func scans(in node: Any) -> [Scan] {
    if let list = node as? [Any] { return list.flatMap(scans) }
    guard let fields = node as? [String: Any] else { return [] }
    var found = fields.values.filter { $0 is [Any] || $0 is [String: Any] }.flatMap(scans)
    if fields["Node Type"] as? String == "Seq Scan", let table = fields["Relation Name"] as? String,
      let filter = fields["Filter"] as? String, let end = filter.range(of: " = '\(absentID)'")
    {
      found.append(Scan(table: table, expression: operand(String(filter[..<end.lowerBound]))))
    }
    return found
  }

  /// The last balanced expression of a text: `(a AND ((id)::text` ends with `(id)::text`.
  private static func operand(_ text: String) -> String {
    var depth = 0
    for index in text.indices.reversed() {
      switch text[index] {
      case ")": depth += 1
      case "(" where depth == 0: return String(text[text.index(after: index)...])
      case "(": depth -= 1
      default: break
      }
    }
    return text
  }
}
