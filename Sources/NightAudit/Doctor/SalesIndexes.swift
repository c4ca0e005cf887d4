import Foundation
import Postgres
import Run

/// Whether the server can find the shop's rows by their ids without reading a whole table: a night asks about receipts in
/// thousands of small portions.
///
/// Views have no indexes, so the server's own plan is asked: which table would be read through, and by what expression.
struct SalesIndexes {
  let settings: Settings
  /// Rows of each relation. Reading few of them through costs nothing.
  let rows: [String: Int]

  /// From so many rows on a table is worth an index.
  private static let worth = 10_000
  /// Nobody's id; it tells the condition that is asked about from a view's own.
  private static let nobody = "night-audit:nobody"

  /// What a night, or `explain`, looks rows up by.
  private static let lookups = [
    ("orders", "order_id"), ("receipts", "receipt_id"), ("receipts", "order_id"), ("deliveries", "order_id"),
  ]

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let schema = try PostgresIdentifier(settings.salesSchema).sql
    var found: [Diagnosis] = []
    // A server that may read a table through does so whatever there is, as long as that seems cheaper.
    try connection.execute("SET enable_seqscan = off")
    for (relation, column) in SalesIndexes.lookups where rows[relation, default: 0] >= SalesIndexes.worth {
      let plan = try connection.execute(
        """
        EXPLAIN (FORMAT JSON) SELECT 1 FROM \(schema).\(relation) r WHERE r.\(column)::text = '\(SalesIndexes.nobody)'
        """
      ).single().text(0)
      guard let scan = SalesIndexes.scans(in: try JSONSerialization.jsonObject(with: Data(plan.utf8))).first else {
        continue
      }
      found.append(
        Diagnosis(
          subject: "\(settings.salesSchema).\(relation).\(column)",
          warning: """
            is not indexed, so that each look-up reads \(rows[relation] ?? 0) rows; run: \
            CREATE INDEX CONCURRENTLY ON \(try scan.table(connection)) ((\(scan.expression)))
            """))
    }
    try connection.execute("RESET enable_seqscan")
    return found
  }

  /// A table that is read through, and the expression that is compared with each of its rows.
  struct Scan: Equatable {
    var table: String
    var expression: String

    /// The table with its schema, as a statement names it.
    func table(_ connection: borrowing BlockingConnection) throws -> String {
      let name = try PostgresIdentifier(table).sql
      let rows = try connection.execute(
        """
        SELECT quote_ident(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'm') AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1
        """, [.text(table)])
      // Of several tables of that name nobody can tell from the plan which one it is.
      guard rows.count == 1, let row = rows.first else { return name }
      return "\(try row.text(0)).\(name)"
    }
  }

  /// Every place of a plan where rows are compared with nobody's id one by one.
  static func scans(in node: Any) -> [Scan] {
    if let list = node as? [Any] { return list.flatMap(scans) }
    guard let fields = node as? [String: Any] else { return [] }
    var found = fields.values.filter { $0 is [Any] || $0 is [String: Any] }.flatMap(scans)
    if fields["Node Type"] as? String == "Seq Scan", let table = fields["Relation Name"] as? String,
      let filter = fields["Filter"] as? String, let end = filter.range(of: " = '\(nobody)'")
    {
      found.append(Scan(table: table, expression: operand(String(filter[..<end.lowerBound]))))
    }
    return found
  }

  /// The last balanced expression of a text: `(a AND ((id)::text` is compared with `(id)::text`.
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
