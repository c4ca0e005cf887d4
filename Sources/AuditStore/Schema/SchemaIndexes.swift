import Postgres

/// An index that the migrations create. Commands work without it, but a night takes hours.
package struct SchemaIndex: Hashable, Sendable {
  package var name: String
  package var statement: String

  package static let all = Migrator.migrations.flatMap { SQLScript.statements($0.sql) }.compactMap { text in
    let statement = SQLScript.onOneLine(text)
    return statement.firstMatch(of: /^CREATE (?:UNIQUE )?INDEX (\w+) ON night_audit\./)
      .map { SchemaIndex(name: String($0.1), statement: statement) }
  }

  /// Indexes that the server does not have or did not finish.
  package static func missing(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [SchemaIndex] {
    let rows = try connection.execute(
      """
      SELECT c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
      WHERE c.relnamespace = 'night_audit'::regnamespace AND i.indisvalid
      """)
    let present = Set(try rows.texts())
    return all.filter { !present.contains($0.name) }
  }
}
