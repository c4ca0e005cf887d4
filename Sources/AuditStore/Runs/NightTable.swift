import Postgres
import Reconciliation

/// Rows that runs leave for later ones.
package enum NightTable {
  /// Inserts the values as rows of a run.
  static func insert<Row>(
    _ rows: [Row], _ columns: [TableColumn<Row>], into table: String, of run: RunRecord,
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    let (relation, parameters) = TableColumn.relation(columns, of: rows)
    try connection.execute(
      """
      INSERT INTO night_audit.\(table) (\(columns.map(\.name).joined(separator: ", ")), run_id)
      SELECT *, $\(parameters.count + 1)::uuid FROM \(relation)
      """, parameters + [.text(run.runId)])
  }

  /// Inserts rows of a run by COPY, in place of rows of earlier runs of the same as-of and of those with the `condition`.
  package static func replace<Row>(
    _ table: String, or condition: String = "false", _ columns: [TableColumn<Row>], of run: RunRecord,
    on connection: borrowing BlockingConnection, next: () throws -> Row?
  ) throws {
    try connection.execute(
      """
      DELETE FROM night_audit.\(table)
      WHERE run_id IN (SELECT run_id FROM night_audit.runs WHERE as_of = $1) OR \(condition)
      """, [.timestamp(run.asOf.microseconds)])
    try append(table, columns, of: run, on: connection, next: next)
  }

  /// Inserts rows of a run by COPY.
  static func append<Row>(
    _ table: String, _ columns: [TableColumn<Row>], of run: RunRecord, on connection: borrowing BlockingConnection,
    next: () throws -> Row?
  ) throws {
    // By a table without types of its own, because COPY takes no dates as text.
    let sent = columns.map(\.selection).joined(separator: ", ")
    try connection.executeScript(
      "CREATE TEMPORARY TABLE arriving ON COMMIT DROP AS SELECT \(sent) FROM night_audit.\(table) WITH NO DATA")
    let names = columns.map(\.name)
    try connection.copyIn(into: try PostgresIdentifier("arriving"), columns: names) { writer in
      while let row = try next() {
        try writer.row { writer throws(PostgresError) in for column in columns { try column.write(row, to: &writer) } }
      }
    }
    let stored = columns.map { column in column.castType.map { "\(column.name)::\($0)" } ?? column.name }
    try connection.execute(
      """
      INSERT INTO night_audit.\(table) (\(names.joined(separator: ", ")), as_of, run_id)
      SELECT \(stored.joined(separator: ", ")), $1, $2::uuid FROM arriving
      """, [.timestamp(run.asOf.microseconds), .text(run.runId)])
    try connection.executeScript("DROP TABLE arriving")
  }
}
