import Postgres
import Run
import Settings

/// A deviation of the shop's relations from the contract, with its remedy.
package struct SalesDefect: Hashable, Sendable, CustomStringConvertible {
  /// `sales.orders.amount`, or the relation or schema.
  package var subject: String
  package var problem: String

  package var description: String { "\(subject) \(problem)" }
}

package struct SalesContractError: RunEndingError, CustomStringConvertible {
  package var defects: [SalesDefect]
  package var exitStatus: ExitStatus { .configuration }

  package var description: String { defects.map(\.description).joined(separator: "\n") }
}

/// Compares the shop's relations with the contract by the server's catalogue, without reading rows.
package struct SalesExamination {
  private let schema: String
  /// The advice to create plain tables; empty for a database that is only read.
  private let making: String

  package init(_ settings: Settings) {
    schema = settings.salesSchema
    making = settings.salesURL == nil ? ", or run: night-audit init --with-sales-schema" : ""
  }

  package func require(_ connection: borrowing BlockingConnection) throws {
    let defects = try defects(connection)
    if !defects.isEmpty { throw SalesContractError(defects: defects) }
  }

  package func defects(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [SalesDefect] {
    let usage = try connection.execute(
      "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1", [.text(schema)])
    guard let row = usage.first else {
      return [
        SalesDefect(
          subject: "schema \(schema)",
          problem: """
            does not exist; create it with the views orders, receipts and deliveries, or name another in \
            database.salesSchema\(making)
            """)
      ]
    }
    if try !row.bool(0) {
      return [
        SalesDefect(
          subject: "schema \(schema)",
          problem: "may not be used; run: GRANT USAGE ON SCHEMA \(quoted(schema)) TO \(try role(connection))")
      ]
    }
    var defects: [SalesDefect] = []
    for relation in SalesContract.relations { defects += try self.defects(of: relation, connection) }
    return try defects + foreignServers(connection)
  }

  /// The servers of postgres_fdw that could hide rows. It reads in a session of its own, where the server's `options`
  /// must set what `SessionProfile` sets here.
  private func foreignServers(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [SalesDefect] {
    let rows = try connection.execute(
      SnapshotScope.used + """
        SELECT DISTINCT quote_ident(s.srvname), CASE WHEN o.value IS NULL THEN 'ADD' ELSE 'SET' END,
          quote_literal(concat_ws(' ', o.value, '-c row_security=off'))
        FROM used u JOIN pg_foreign_table f ON f.ftrelid = u.oid JOIN pg_foreign_server s ON s.oid = f.ftserver
        JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw JOIN pg_proc p ON p.oid = w.fdwhandler
        LEFT JOIN LATERAL (
          SELECT option_value AS value FROM pg_options_to_table(s.srvoptions) WHERE option_name = 'options') o ON true
        WHERE p.proname = 'postgres_fdw_handler'
          -- The last setting counts.
          AND coalesce(lower(substring(o.value FROM '.*row[_-]security=([A-Za-z0-9]+)')), 'on')
            NOT IN ('off', 'false', 'no', '0')
        ORDER BY 1
        """, [.text(schema), .textArray(SalesContract.relations.map { $0.name })])
    return try rows.map { row throws(PostgresError) in
      SalesDefect(
        subject: "foreign server \(try row.text(0))",
        problem: """
          could hide rows by row-level security, and so payments; run as its owner: \
          ALTER SERVER \(try row.text(0)) OPTIONS (\(try row.text(1)) options \(try row.text(2)))
          """)
    }
  }

  private struct Found {
    var name: String
    /// The type as the server prints it, such as `character varying(40)`.
    var shown: String
    /// The name of the base type under any domains; nil outside `pg_catalog`.
    var typeName: String?
    var isEnum: Bool
    var isReadable: Bool
  }

  private func columns(
    of relation: SalesContract.Relation, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Found] {
    let rows = try connection.execute(
      """
      WITH RECURSIVE resolved AS (
        SELECT a.attnum, a.attname, a.attrelid, format_type(a.atttypid, a.atttypmod) AS shown, a.atttypid AS type
        FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = $1
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relname = $2 AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
        UNION ALL
        SELECT r.attnum, r.attname, r.attrelid, r.shown, t.typbasetype
        FROM resolved r JOIN pg_type t ON t.oid = r.type WHERE t.typtype = 'd')
      SELECT r.attname::text, r.shown, CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname::text END,
        t.typtype = 'e',
        has_table_privilege(r.attrelid, 'SELECT') OR has_column_privilege(r.attrelid, r.attnum, 'SELECT')
      FROM resolved r JOIN pg_type t ON t.oid = r.type WHERE t.typtype <> 'd' ORDER BY r.attnum
      """, [.text(schema), .text(relation.name)])
    var found: [Found] = []
    for row in rows {
      found.append(
        Found(
          name: try row.text(0), shown: try row.text(1), typeName: try row.optionalText(2), isEnum: try row.bool(3),
          isReadable: try row.bool(4)))
    }
    return found
  }

  private func defects(
    of relation: SalesContract.Relation, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [SalesDefect] {
    let name = "\(schema).\(relation.name)"
    let found = try columns(of: relation, connection)
    if found.isEmpty {
      if relation.isOptional { return [] }
      return [
        SalesDefect(
          subject: name,
          problem: """
            does not exist; create a view (or table) of that name with the columns \(relation.columnList)\(making)
            """)
      ]
    }
    let grant = "GRANT SELECT ON \(quoted(schema)).\(quoted(relation.name)) TO \(try role(connection))"
    if !found.contains(where: \.isReadable) {
      return [SalesDefect(subject: name, problem: "may not be read; run: \(grant)")]
    }
    var defects: [SalesDefect] = []
    for column in relation.columns {
      let subject = "\(name).\(column.name)"
      guard let present = found.first(where: { $0.name == column.name }) else {
        let way = column.isRequired ? "" : " (NULL::\(column.kind.rawValue) AS \(column.name) will do)"
        defects.append(SalesDefect(subject: subject, problem: "does not exist; add the column to the view\(way)"))
        continue
      }
      if !present.isReadable {
        defects.append(SalesDefect(subject: subject, problem: "may not be read; run: \(grant)"))
      } else if !column.kind.accepts(typeName: present.typeName, isEnum: present.isEnum) {
        var remedy = "no cast gives that, so select other values as \(column.name) in the view"
        if let cast = column.kind.cast(column.name, from: present.typeName) {
          remedy = "cast it in the view: \(cast) AS \(column.name)"
          remedy += column.kind.choice(column.name, from: present.typeName)
        }
        defects.append(
          SalesDefect(
            subject: subject,
            problem: "is of type \(present.shown), but must be \(column.kind.expectation); \(remedy)"))
      }
    }
    if defects.isEmpty, let refusal = try refusal(relation, connection, role: role(connection)) {
      defects.append(SalesDefect(subject: name, problem: refusal))
    }
    return defects
  }

  /// Selects no rows, to detect missing rights of a view's owner and row-level security.
  private func refusal(
    _ relation: SalesContract.Relation, _ connection: borrowing BlockingConnection, role: String
  ) throws(PostgresError) -> String? {
    do {
      try connection.execute(
        "SELECT \(relation.columnList) FROM \(PostgresIdentifier(schema, relation.name).sql) LIMIT 0")
      return nil
    } catch  where error.sqlState == SQLState.insufficientPrivilege && error.message.contains("row-level security") {
      return """
        has row-level security, which would hide rows and so payments; let the role that reads the table (behind a \
        foreign table, that of the user mapping) see all rows, as the owner or by: ALTER ROLE \(role) BYPASSRLS
        """
    } catch  where error.sqlState == SQLState.insufficientPrivilege {
      return """
        cannot be read: \(error.message); a view reads with its owner's rights (or, with security_invoker, with those of \
        \(role)), so grant SELECT on the tables that it reads
        """
    } catch  where error.kind == .server {
      return "cannot be read: \(error.message); correct the view"
    }
  }

  private func role(_ connection: borrowing BlockingConnection) throws(PostgresError) -> String {
    try connection.execute("SELECT quote_ident(current_user)").single().text(0)
  }

  private func quoted(_ name: String) -> String { (try? PostgresIdentifier(name).sql) ?? name }
}
