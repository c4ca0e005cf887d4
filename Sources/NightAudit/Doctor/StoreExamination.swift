import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import Settings

struct StoreExamination {
  let settings: Settings
  /// True for the server of `night_audit`, false for that of the shop's relations.
  let isOwn: Bool

  private var key: String { isOwn ? "database.url" : "database.salesUrl" }

  private static let connections: Int64 = 8

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let version = connection.serverVersion
    var found = [Diagnosis.fine("\(key) (PostgreSQL \(version / 10_000).\(version % 10_000))")]
    if version < 130_000 { found[0].problem = "is older than PostgreSQL 13; upgrade the server" }
    let row = try connection.execute(
      """
      SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',
        r.rolsuper, r.rolconnlimit::bigint, quote_ident(current_user),
        current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
          - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        coalesce(s.ssl, false), inet_server_addr() IS NOT NULL AND NOT inet_server_addr() <<= '127.0.0.0/8'::inet
          AND inet_server_addr() <> '::1'::inet,
        has_database_privilege(current_database(), 'TEMPORARY'), quote_ident(current_database()), clock_timestamp(),
        r.rolcreatedb OR r.rolcreaterole OR r.rolreplication,
        (SELECT datconnlimit::bigint FROM pg_database WHERE datname = current_database())
      FROM pg_roles r LEFT JOIN pg_stat_ssl s ON s.pid = pg_backend_pid() WHERE r.rolname = current_user
      """
    ).single()
    let now = Instant.now
    let role = try row.text(4)
    func problem(_ subject: String, _ text: String) { found.append(.problem(subject, text)) }
    func warning(_ subject: String, _ text: String) { found.append(.warning(subject, text)) }
    if isOwn {
      if try row.bool(0) {
        problem(key, "is a standby, which cannot be written; name the primary (a standby will do as database.salesUrl)")
      } else if try row.bool(1) {
        let (reset, database) = ("RESET default_transaction_read_only", try row.text(9))
        problem(
          key,
          """
          is read-only; run the one of these that names the place of the setting: ALTER ROLE \(role) \(reset), \
          ALTER ROLE \(role) IN DATABASE \(database) \(reset), or ALTER DATABASE \(database) \(reset)
          """)
      }
      if try !row.bool(8) {
        problem(key, "needs the right TEMPORARY; run: GRANT TEMPORARY ON DATABASE \(try row.text(9)) TO \(role)")
      }
    }
    if try row.bool(2) {
      warning("role \(role)", "is a superuser; use a role that only reads sales and writes night_audit")
    }
    if try !row.bool(2), try row.bool(11) {
      warning(
        "role \(role)",
        "may create databases or roles, or replicate; run: ALTER ROLE \(role) NOCREATEDB NOCREATEROLE NOREPLICATION")
    }
    let ofDatabase = try row.int64(12)
    if (0..<Self.connections).contains(ofDatabase) {
      problem(
        key,
        """
        the database takes \(ofDatabase) connections, a night needs \(Self.connections); run: \
        ALTER DATABASE \(try row.text(9)) CONNECTION LIMIT -1
        """)
    }
    let limit = try row.int64(3)
    if (0..<Self.connections).contains(limit) {
      problem(
        "role \(role)",
        "may have \(limit) connections, a night needs \(Self.connections); run: ALTER ROLE \(role) CONNECTION LIMIT -1")
    }
    let free = try row.int64(5)
    if free < Self.connections {
      warning(key, "the server has \(max(0, free)) connections left, a night needs \(Self.connections)")
    }
    let isEncrypted = try row.bool(6)
    if try row.bool(7), !isEncrypted {
      warning(key, "is reached over the network without encryption; set sslmode=verify-full and sslrootcert")
    } else if isEncrypted, connection.option("sslmode") != "verify-full" {
      warning(key, "is encrypted, but the server is not verified; set sslmode=verify-full and sslrootcert")
    }
    let clocks = Clocks(host: now, server: Instant(microseconds: try row.timestamp(10)))
    if (clocks.host - clocks.server).magnitude > settings.clockSkew {
      problem("clock", "\(clocks.lead(over: "the server of \(key)")); set both by NTP (chronyc tracking)")
    }
    return found
  }
}

struct OwnSchemaExamination {
  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    do { try Migrator.requireCurrent(connection) } catch let error as SchemaError {
      return [.problem("schema night_audit", "\(error)")]
    } catch let error as PostgresError where error.sqlState == SQLState.insufficientPrivilege {
      return [.problem("schema night_audit", "may not be used; \(try remedy(connection))")]
    }
    // A standby, which `StoreExamination` reports, cannot create the copies that are compared.
    let isStandby = try connection.execute("SELECT pg_is_in_recovery()").single().bool(0)
    let differences = isStandby ? [] : try SchemaDefinitions().differences(connection)
    let missing = try rights(connection, except: differences.filter(\.isForeignFunction).map(\.object))
    if !missing.isEmpty { return missing }
    let indexes = try SchemaIndex.missing(connection).map {
      Diagnosis.warning(
        "night_audit.\($0.name)", "is missing, and nights take long without this index; run: \($0.statement)")
    }
    let definitions = differences.map { Diagnosis.problem($0.object, $0.description) }
    let state = try InterNightState.problems(on: connection).map {
      Diagnosis.problem("state between nights", "\($0); run: night-audit rebuild --write")
    }
    return [Diagnosis.fine("schema night_audit")] + indexes + definitions + state
      + (try rightsBeyondNeed(connection))
      + [try lastNight(connection)] + (try coverage(connection))
  }

  /// Apps whose notifications reported too few sales in the last night.
  private func coverage(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    try FeedCoverage.ofLastNight(on: connection).sorted { $0.key < $1.key }.map { app, coverage in
      let sentence = coverage.sentence(app)
      return coverage.isInsufficient
        ? Diagnosis.warning("app.\(app)", sentence) : Diagnosis.fine("app.\(app) (\(sentence))")
    }
  }

  /// Tables that nights only append to.
  private static let appendOnly = ["runs", "evidence", "answers", "finding_events", "run_events"]
  /// Tables that only the schema's functions write.
  private static let onlyRead = ["schema_migrations", "trail", "retention"]
  private static var kept: [PostgresValue] { [appendOnly, onlyRead].map { .textArray($0.map { $0 }) } }

  /// Warns about rights to change append-only tables, which only the schema's owner needs.
  private func rightsBeyondNeed(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let rows = try connection.execute(
      """
      SELECT rights, string_agg('night_audit.' || c.relname, ', ' ORDER BY c.relname)
      FROM pg_class c CROSS JOIN LATERAL (
        SELECT CASE WHEN c.relname = ANY ($1) THEN 'UPDATE, DELETE, TRUNCATE'
          WHEN c.relname = ANY ($2) THEN 'INSERT, UPDATE, DELETE, TRUNCATE' END AS rights) beyond
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND CASE WHEN rights IS NOT NULL THEN has_table_privilege(c.oid, rights) ELSE false END
        AND NOT pg_has_role(c.relowner, 'USAGE')
      GROUP BY rights ORDER BY rights
      """, Self.kept)
    if rows.isEmpty { return [] }
    let role = try role(connection)
    let remedies = try rows.map { row throws(PostgresError) in
      "REVOKE \(try row.text(0)) ON \(try row.text(1)) FROM \(role)"
    }
    let warning = "this role may change append-only tables; run: \(remedies.joined(separator: "; "))"
    return [.warning("schema night_audit", warning)]
  }

  /// Checks rights one by one, because `has_table_privilege` with a list is true for any of them. Nobody has to be granted
  /// `foreign` functions.
  private func rights(_ connection: borrowing BlockingConnection, except foreign: [String]) throws -> [Diagnosis] {
    let rows = try connection.execute(
      """
      SELECT c.relname::text, string_agg(p.privilege, ', ' ORDER BY p.place)
      FROM pg_class c CROSS JOIN (VALUES (1, 'SELECT'), (2, 'INSERT'), (3, 'UPDATE'), (4, 'DELETE')) p (place, privilege)
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND NOT CASE p.privilege WHEN 'INSERT' THEN has_any_column_privilege(c.oid, 'INSERT')
          ELSE has_table_privilege(c.oid, p.privilege) END
        AND NOT (c.relname = ANY ($2) AND p.privilege <> 'SELECT')
        AND NOT (c.relname = ANY ($1) AND p.privilege IN ('UPDATE', 'DELETE'))
      GROUP BY c.relname
      UNION ALL
      SELECT min(f.proname::text), 'EXECUTE ' || string_agg(f.oid::regprocedure::text, ', ' ORDER BY f.oid::regprocedure::text)
      FROM pg_proc f
      WHERE f.pronamespace = 'night_audit'::regnamespace AND f.prorettype <> 'trigger'::regtype
        AND NOT has_function_privilege(f.oid, 'EXECUTE') AND 'function ' || f.oid::regprocedure <> ALL ($3)
      HAVING count(*) > 0
      UNION ALL
      SELECT c.relname::text, 'USAGE' FROM pg_class c
      WHERE c.relnamespace = 'night_audit'::regnamespace
        AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE, UPDATE') ELSE FALSE END
      ORDER BY 1
      """, Self.kept + [.textArray(foreign.map { $0 })])
    let role = try role(connection)
    var found: [Diagnosis] = []
    for row in rows {
      let (name, privileges) = (try row.text(0), try row.text(1))
      if privileges.hasPrefix("EXECUTE ") {
        let functions = privileges.dropFirst("EXECUTE ".count)
        found.append(
          .problem("night_audit.\(name)", "may not be called; run: GRANT EXECUTE ON FUNCTION \(functions) TO \(role)"))
        continue
      }
      let kind = privileges == "USAGE" ? "SEQUENCE " : ""
      found.append(
        .problem(
          "night_audit.\(name)",
          "the right \(privileges) is missing; run: GRANT \(privileges) ON \(kind)night_audit.\(name) TO \(role)"))
    }
    return found
  }

  private func lastNight(_ connection: borrowing BlockingConnection) throws -> Diagnosis {
    let row = try connection.execute(
      """
      SELECT to_char(max(finished_at) FILTER (WHERE complete), 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        max(finished_at) FILTER (WHERE complete) < clock_timestamp() - interval '26 hours', count(DISTINCT period_until)
      FROM night_audit.runs WHERE is_nightly AND publication IS DISTINCT FROM 'forgotten'
      """
    ).single()
    guard let last = try row.optionalText(0) else {
      let nights = try row.int64(2)
      let remark =
        switch nights {
        case 0: "there was none yet; run: night-audit run"
        case 1: "the one night so far was not complete; see: night-audit runs"
        default: "none of the \(nights) nights so far was complete; see: night-audit runs"
        }
      return .warning("last complete night", remark)
    }
    var diagnosis = Diagnosis(subject: "last complete night \(last)")
    if try row.bool(1) {
      diagnosis.warning = "is more than 26 hours ago; see: night-audit runs, and the mails of cron or journalctl"
    }
    return diagnosis
  }

  private func remedy(_ connection: borrowing BlockingConnection) throws -> String {
    let role = try role(connection)
    if try isKept(connection) { return "run: GRANT night_audit_writer TO \(role)" }
    return """
      run: GRANT USAGE ON SCHEMA night_audit TO \(role); GRANT SELECT ON night_audit.schema_migrations TO \(role); then \
      run night-audit doctor again, which names the other missing rights
      """
  }

  /// True if `night_audit_owner` owns the schema and this role is not a member of `night_audit_writer`.
  private func isKept(_ connection: borrowing BlockingConnection) throws -> Bool {
    try connection.execute(
      """
      SELECT coalesce(pg_get_userbyid(n.nspowner) = 'night_audit_owner'
        AND NOT pg_has_role(to_regrole('night_audit_writer'), 'USAGE'), false)
      FROM pg_namespace n WHERE n.nspname = 'night_audit'
      """
    ).single().bool(0)
  }

  private func role(_ connection: borrowing BlockingConnection) throws -> String {
    try connection.execute("SELECT quote_ident(current_user)").single().text(0)
  }
}
