import Postgres

/// Functions, triggers, views and rights of the schema, as the migrations define them. The server compares them with
/// its own definitions. Nothing about them is stored, so a change cannot hide itself.
package struct SchemaDefinitions {
  package struct Difference: Hashable, Sendable {
    package var object: String
    package var problem: String
    /// Statements that restore it; empty if a person has to decide.
    package var remedies: [String]

    package var description: String {
      remedies.isEmpty ? problem : "\(problem); run as the owner of the schema: night-audit init"
    }
  }

  private struct Trigger: Hashable {
    var name: String
    var table: String
    /// Time, events in alphabetical order, and called function.
    var action: String

    init?(_ statement: String) {
      let pattern =
        /CREATE TRIGGER (\w+) (BEFORE|AFTER) (.+?) ON night_audit\.(\w+) FOR EACH (ROW|STATEMENT) (EXECUTE .+)/
      guard let match = statement.wholeMatch(of: pattern) else { return nil }
      (name, table) = (String(match.1), String(match.4))
      let events = match.3.split(separator: " OR ").sorted().joined(separator: " OR ")
      action = "\(match.2) \(events) \(match.5) \(match.6)"
    }

    var object: String { "trigger \(name) of night_audit.\(table)" }
  }

  private var functions: [String: String] = [:]
  private var triggers: [(trigger: Trigger, statement: String)] = []
  /// In the order of migrations: a view follows the views that it reads.
  private var views: [(name: String, query: String)] = []

  package init(_ migrations: [Migrator.Migration] = Migrator.migrations) {
    for statement in migrations.flatMap({ SQLScript.statements($0.sql) }) {
      if let match = statement.prefixMatch(of: /CREATE (?:OR REPLACE )?FUNCTION night_audit\.(\w+)/) {
        functions[String(match.1)] = statement
      } else if let trigger = Trigger(SQLScript.onOneLine(statement)) {
        triggers.append((trigger, statement))
      } else if let match = statement.prefixMatch(of: /CREATE (?:OR REPLACE )?VIEW night_audit\.(\w+) AS\s/) {
        let view = (name: String(match.1), query: String(statement[match.range.upperBound...]))
        if let place = views.firstIndex(where: { $0.name == view.name }) {
          views[place] = view
        } else {
          views.append(view)
        }
      }
    }
  }

  /// Definitions on the server that differ. Must not run in a transaction; its own is rolled back.
  package func differences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    try connection.begin(.readWrite)
    defer { connection.rollback() }
    return try differencesInTransaction(connection)
  }

  /// Restores definitions and returns the restored objects. Revokes rights that the migrations do not grant.
  func restore(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [String] {
    var restored: [String] = []
    // Repeated because DROP ... CASCADE of a view with other columns also drops views that read it.
    for _ in 0..<3 {
      let differences = try differencesInTransaction(connection).filter { !$0.remedies.isEmpty }
      if differences.isEmpty { break }
      for difference in differences {
        for remedy in difference.remedies { try connection.executeScript(remedy) }
        restored.append(difference.object)
      }
    }
    return Set(restored).sorted()
  }

  private func differencesInTransaction(
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Difference] {
    try functionDifferences(connection) + triggerDifferences(connection) + viewDifferences(connection)
      + privilegeDifferences(connection)
  }

  // MARK: - Functions

  private func functionDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    let rows = try connection.execute(
      """
      SELECT proname::text, prosrc, prosecdef, coalesce(proconfig::text[], '{}') @> ARRAY['search_path=pg_catalog, pg_temp']
      FROM pg_proc WHERE pronamespace = 'night_audit'::regnamespace
      """)
    var found: [String: (body: String, isDefiner: Bool, isPinned: Bool)] = [:]
    for row in rows { found[try row.text(0)] = (try row.text(1), try row.bool(2), try row.bool(3)) }
    return functions.sorted { $0.key < $1.key }.compactMap { name, statement in
      let parts = statement.split(separator: "$$", omittingEmptySubsequences: false)
      guard parts.count == 3 else { return nil }
      if let function = found[name], function.body == parts[1], function.isPinned,
        function.isDefiner == parts[0].contains("SECURITY DEFINER")
      {
        return nil
      }
      let remedy = statement.replacing(/^CREATE (?:OR REPLACE )?FUNCTION/, with: "CREATE OR REPLACE FUNCTION")
      return Difference(
        object: "function night_audit.\(name)", problem: found[name] == nil ? "is missing" : "was changed",
        remedies: [remedy])
    }
  }

  // MARK: - Triggers

  private func triggerDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    let rows = try connection.execute(
      """
      SELECT pg_get_triggerdef(t.oid), t.tgenabled::text, t.tgparentid <> 0, c.relname::text, t.tgname::text
      FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
      WHERE c.relnamespace = 'night_audit'::regnamespace AND NOT t.tgisinternal ORDER BY c.relname, t.tgname
      """)
    var found: Set<Trigger> = []
    var differences: [Difference] = []
    let wanted = try wantedTriggers(connection)
    let names = Set(wanted.map { "\($0.trigger.table) \($0.trigger.name)" })
    for row in rows {
      let (table, name) = (try row.text(3), try row.text(4))
      let object = "trigger \(name) of night_audit.\(table)"
      if try row.text(1) != "O" {
        differences.append(
          Difference(
            object: object, problem: "is switched off",
            remedies: ["ALTER TABLE night_audit.\(table) ENABLE TRIGGER \"\(name)\""]))
      }
      if try row.bool(2) { continue }
      if let trigger = Trigger(try row.text(0)) { found.insert(trigger) }
      if !names.contains("\(table) \(name)") {
        differences.append(
          Difference(
            object: object,
            problem:
              "does not belong to night-audit; drop it if it is not needed: DROP TRIGGER \(name) ON night_audit.\(table)",
            remedies: []))
      }
    }
    for (trigger, statement) in wanted where !found.contains(trigger) {
      differences.append(
        Difference(
          object: trigger.object, problem: "is missing, or was changed",
          remedies: ["DROP TRIGGER IF EXISTS \(trigger.name) ON night_audit.\(trigger.table)", statement]))
    }
    return differences
  }

  /// Triggers of existing tables, and one against TRUNCATE for each month.
  private func wantedTriggers(
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [(trigger: Trigger, statement: String)] {
    let rows = try connection.execute(
      """
      SELECT c.relname::text, h.inhrelid IS NOT NULL FROM pg_class c LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
      WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname
      """)
    var tables: Set<String> = []
    var wanted: [Trigger: String] = [:]
    for row in rows {
      let table = try row.text(0)
      tables.insert(table)
      let statement = """
        CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.\(table) FOR EACH STATEMENT EXECUTE FUNCTION \
        night_audit.refuse_change()
        """
      if try row.bool(1), let trigger = Trigger(statement) { wanted[trigger] = statement }
    }
    for (trigger, statement) in triggers where tables.contains(trigger.table) { wanted[trigger] = statement }
    return wanted.sorted { ($0.key.table, $0.key.name) < ($1.key.table, $1.key.name) }
      .map { (trigger: $0.key, statement: $0.value) }
  }

  // MARK: - Views

  private func viewDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    // Without this right the comparison is skipped; the doctor reports that.
    let mayCompare = try connection.execute("SELECT has_database_privilege(current_database(), 'TEMPORARY')")
    guard try mayCompare.single().bool(0) else { return [] }
    var differences: [Difference] = []
    for (name, query) in views {
      let before = try connection.execute(
        "SELECT pg_get_viewdef(to_regclass('night_audit.' || $1))", [.text(name)]
      ).single().optionalText(0)
      // A savepoint, because a view that it reads may be missing.
      try connection.executeScript("SAVEPOINT comparison")
      var wanted: String?
      var columns: [String?] = []
      do {
        try connection.executeScript("CREATE TEMPORARY VIEW expected_view AS \(query)")
        wanted = try connection.execute("SELECT pg_get_viewdef('pg_temp.expected_view'::regclass)").single().text(0)
        columns = try Self.columns(of: "pg_temp.expected_view", connection)
      } catch let error where error.kind != .server {
        throw error
      } catch {}
      try connection.executeScript("ROLLBACK TO SAVEPOINT comparison")
      if let wanted, before == wanted { continue }
      // OR REPLACE keeps granted rights but may only add columns.
      let present = before == nil ? [] : try Self.columns(of: "night_audit.\(name)", connection)
      let isReplaceable = columns.starts(with: present)
      differences.append(
        Difference(
          object: "view night_audit.\(name)", problem: before == nil ? "is missing" : "was defined otherwise",
          remedies: (isReplaceable ? [] : ["DROP VIEW night_audit.\(name) CASCADE"])
            + ["CREATE OR REPLACE VIEW night_audit.\(name) AS \(query)"]))
    }
    return differences
  }

  private static func columns(
    of view: String, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String?] {
    try connection.execute(
      """
      SELECT attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attcollation FROM pg_attribute
      WHERE attrelid = $1::text::regclass AND attnum > 0 ORDER BY attnum
      """, [.text(view)]
    ).map { row throws(PostgresError) in try row.text(0) }
  }

  // MARK: - Rights

  private func privilegeDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    let rows = try connection.execute(
      """
      WITH relations AS (
        SELECT c.oid, c.relname, c.relowner, c.relacl, c.relkind, c.relrowsecurity FROM pg_class c
        WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S'))
      SELECT DISTINCT format('night_audit.%I', c.relname), 'everybody may use it (PUBLIC)',
        format('REVOKE ALL ON %s night_audit.%I FROM PUBLIC', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
          c.relname)
      FROM relations c CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE a.grantee = 0
      UNION
      SELECT format('night_audit.%I', c.relname), 'everybody may use its column ' || t.attname || ' (PUBLIC)',
        format('REVOKE ALL (%I) ON night_audit.%I FROM PUBLIC', t.attname, c.relname)
      FROM relations c JOIN pg_attribute t ON t.attrelid = c.oid CROSS JOIN LATERAL aclexplode(t.attacl) a
      WHERE a.grantee = 0
      UNION
      SELECT 'function ' || p.oid::regprocedure, 'everybody may call it (PUBLIC)',
        format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', p.oid::regprocedure)
      FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
      WHERE p.pronamespace = 'night_audit'::regnamespace AND a.grantee = 0
      UNION
      SELECT 'function ' || p.oid::regprocedure,
        format('%s may make triggers of other tables run it', a.grantee::regrole),
        format('REVOKE EXECUTE ON FUNCTION %s FROM %s', p.oid::regprocedure, a.grantee::regrole)
      FROM pg_proc p CROSS JOIN LATERAL aclexplode(p.proacl) a
      WHERE p.pronamespace = 'night_audit'::regnamespace AND p.prorettype = 'trigger'::regtype
        AND a.grantee NOT IN (0, p.proowner)
      UNION
      SELECT 'schema night_audit', 'everybody may use it (PUBLIC)', 'REVOKE ALL ON SCHEMA night_audit FROM PUBLIC'
      FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a WHERE n.nspname = 'night_audit' AND a.grantee = 0
      UNION
      SELECT format('night_audit.%I', c.relname),
        format('%s may change what is only appended to', a.grantee::regrole),
        format('REVOKE UPDATE, DELETE, TRUNCATE, TRIGGER ON night_audit.%I FROM %s', c.relname, a.grantee::regrole)
      FROM relations c CROSS JOIN LATERAL aclexplode(c.relacl) a
      WHERE c.relname IN ('runs', 'evidence', 'answers', 'finding_events', 'run_events', 'trail', 'retention',
          'schema_migrations')
        AND a.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER') AND a.grantee NOT IN (0, c.relowner)
      UNION
      SELECT format('night_audit.%I', c.relname), format('%s may write it', a.grantee::regrole),
        format('REVOKE INSERT ON night_audit.%I FROM %s', c.relname, a.grantee::regrole)
      FROM relations c CROSS JOIN LATERAL aclexplode(c.relacl) a
      WHERE c.relname IN ('trail', 'retention', 'schema_migrations') AND a.privilege_type = 'INSERT'
        AND a.grantee NOT IN (0, c.relowner)
      UNION
      SELECT format('night_audit.%I', c.relname), 'row-level security may hide rows of it',
        format('ALTER TABLE night_audit.%I DISABLE ROW LEVEL SECURITY', c.relname)
      FROM relations c WHERE c.relrowsecurity
      UNION
      SELECT format('night_audit.%I', c.relname),
        format('the rule %s rewrites its statements; drop it: DROP RULE %1$I ON night_audit.%I', r.rulename, c.relname), NULL
      FROM relations c JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'
      ORDER BY 1, 2
      """)
    return try rows.map { row throws(PostgresError) in
      Difference(
        object: try row.text(0), problem: try row.text(1), remedies: try row.optionalText(2).map { [$0] } ?? [])
    }
  }
}

enum SQLScript {
  /// The statements of a script, without semicolons and comments. Dollar-quoted text is kept unchanged.
  static func statements(_ script: String) -> [String] {
    var statements: [String] = []
    var statement: [UInt8] = []
    var rest = Array(script.utf8)[...]
    func take(through end: String, isKept: Bool) {
      while !rest.isEmpty, !rest.starts(with: end.utf8) {
        let byte = rest.removeFirst()
        if isKept { statement.append(byte) }
      }
      let last = rest.prefix(end.utf8.count)
      if isKept { statement += last }
      rest = rest.dropFirst(end.utf8.count)
    }
    func end() {
      let text = String(decoding: statement, as: UTF8.self)
      let trimmed = text.drop(while: \.isWhitespace)
      if !trimmed.isEmpty { statements.append(String(trimmed)) }
      statement = []
    }
    while let byte = rest.first {
      if rest.starts(with: "--".utf8) {
        take(through: "\n", isKept: false)
        statement.append(UInt8(ascii: "\n"))
      } else if rest.starts(with: "$$".utf8) {
        statement += rest.prefix(2)
        rest = rest.dropFirst(2)
        take(through: "$$", isKept: true)
      } else if byte == UInt8(ascii: "'") {
        statement.append(rest.removeFirst())
        take(through: "'", isKept: true)
      } else if byte == UInt8(ascii: ";") {
        rest = rest.dropFirst()
        end()
      } else {
        statement.append(rest.removeFirst())
      }
    }
    end()
    return statements
  }

  static func onOneLine(_ statement: String) -> String {
    statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
}
