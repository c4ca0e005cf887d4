import Postgres

/// Tables, functions, triggers, views, owners and rights of the schema, as the migrations define them. The server compares
/// them with its own definitions. Nothing about them is stored, so a change cannot hide itself.
package struct SchemaDefinitions {
  package struct Difference: Hashable, Sendable {
    package var object: String
    package var problem: String
    /// Statements that restore it; empty if a person has to decide.
    package var remedies: [String]
    /// True for a function that the migrations do not create.
    package var isForeignFunction = false

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

  /// By name: no two functions of the migrations have the same one.
  private var functions: [String: String] = [:]
  /// Statements that create and alter tables, except for partitions.
  private var tables = [Migrator.ledger]
  private var sequences: [String] = []
  private var triggers: [(trigger: Trigger, statement: String)] = []
  /// In the order of migrations: a view follows the views that it reads.
  private var views: [(name: String, query: String)] = []

  package init(_ migrations: [Migrator.Migration] = Migrator.migrations) {
    for statement in migrations.flatMap({ SQLScript.statements($0.sql) }) {
      if let match = statement.prefixMatch(of: /CREATE (?:OR REPLACE )?FUNCTION night_audit\.(\w+)/) {
        functions[String(match.1)] = statement
      } else if statement.prefixMatch(of: /(?:CREATE|ALTER) TABLE night_audit\./) != nil {
        if !statement.contains(" PARTITION OF ") { tables.append(statement) }
      } else if let match = statement.prefixMatch(of: /CREATE SEQUENCE night_audit\.(\w+)/) {
        sequences.append(String(match.1))
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

  func differencesInTransaction(
    _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [Difference] {
    let others = try triggerDifferences(connection) + privilegeDifferences(connection) + ownerDifferences(connection)
    // Without this right the comparison is skipped; the doctor reports that.
    let mayCompare = try connection.execute("SELECT has_database_privilege(current_database(), 'TEMPORARY')")
    guard try mayCompare.single().bool(0) else { return others }
    return try functionDifferences(connection) + viewDifferences(connection) + tableDifferences(connection) + others
  }

  /// Creates temporary objects, which the end of the savepoint `comparison` removes.
  private static func create(
    _ statements: [String], _ connection: borrowing BlockingConnection
  ) throws(PostgresError) {
    try connection.executeScript("SAVEPOINT comparison; SET LOCAL check_function_bodies = off")
    for statement in statements { try connection.executeScript(statement) }
  }

  // MARK: - Tables

  /// SQL: columns, defaults and constraints of the tables in a schema. Partitions follow their parents.
  private static func definitions(of schema: String) -> String {
    let tables = "c.relnamespace = \(schema) AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    return """
      SELECT c.relname::text AS relation, 'column' AS kind, quote_ident(a.attname) AS item,
        concat_ws(' ', format_type(a.atttypid, a.atttypmod), nullif(a.attcollation, 0::oid)::regcollation::text,
          CASE WHEN a.attnotnull THEN 'NOT NULL' END, nullif(a.attidentity::text, ''), nullif(a.attgenerated::text, ''))
          AS definition
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE \(tables)
      UNION ALL
      SELECT c.relname::text, 'default', quote_ident(a.attname), pg_get_expr(d.adbin, d.adrelid)
      FROM pg_class c JOIN pg_attrdef d ON d.adrelid = c.oid
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum WHERE \(tables)
      UNION ALL
      SELECT c.relname::text, 'constraint', quote_ident(k.conname),
        regexp_replace(pg_get_constraintdef(k.oid), '(night_audit|pg_temp[_0-9]*)[.]', '', 'g')
      FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype IN ('c', 'p', 'u', 'f', 'x') WHERE \(tables)
      """
  }

  private func tableDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    let known = views.map(\.name) + sequences
    let copies = tables.map { statement in
      statement.replacing(/(TABLE|EXISTS|REFERENCES) night_audit\./) { "\($0.1) pg_temp." }
    }
    try Self.create(copies, connection)
    let foreign = try connection.execute(
      """
      SELECT format('%I.%I', n.nspname, c.relname), CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
        WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_inherits h ON h.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = h.inhparent
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
        AND (n.nspname = 'night_audit' OR p.relnamespace = 'night_audit'::regnamespace)
        AND NOT (n.nspname = 'night_audit' AND (c.relname = ANY ($1)
          OR c.relispartition AND p.relname IN ('evidence', 'answers')
          OR c.relkind IN ('r', 'p') AND h.inhrelid IS NULL AND EXISTS (SELECT FROM pg_class w
            WHERE w.relnamespace = pg_my_temp_schema() AND w.relname = c.relname)
          OR c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
            AND d.objid = c.oid AND d.deptype = 'i')))
      ORDER BY 1
      """, [.textArray(known.map { $0 })])
    let changed = try connection.execute(
      """
      SELECT coalesce(f.relation, w.relation), coalesce(f.kind, w.kind), coalesce(f.item, w.item), f.definition,
        w.definition
      FROM (\(Self.definitions(of: "'night_audit'::regnamespace"))) f
      FULL JOIN (\(Self.definitions(of: "pg_my_temp_schema()"))) w
        ON w.relation = f.relation AND w.kind = f.kind AND w.item = f.item
      WHERE f.definition IS DISTINCT FROM w.definition AND coalesce(f.relation, w.relation) = ANY (ARRAY(
        SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = pg_my_temp_schema()))
      ORDER BY 1, 2, 3
      """)
    try connection.executeScript("ROLLBACK TO SAVEPOINT comparison")
    var differences: [Difference] = []
    for row in foreign {
      let (name, kind) = (try row.text(0), try row.text(1))
      differences.append(
        Difference(
          object: name,
          problem: "does not belong to night-audit; drop it if it is not needed: DROP \(kind) \(name)", remedies: []))
    }
    for row in changed { differences.append(try Self.difference(row)) }
    return differences
  }

  /// A column, default or constraint that differs. A person restores it, because rows may contradict it.
  private static func difference(_ row: PostgresRow) throws(PostgresError) -> Difference {
    let (table, kind, item) = ("night_audit.\(try row.text(0))", try row.text(1), try row.text(2))
    let (found, wanted) = (try row.optionalText(3), try row.optionalText(4))
    let isConstraint = kind == "constraint"
    let drop = isConstraint ? "DROP CONSTRAINT \(item)" : "ALTER COLUMN \(item) DROP DEFAULT"
    guard let wanted else {
      let remedy = kind == "column" ? "DROP COLUMN \(item)" : drop
      return Difference(
        object: table,
        problem: "its \(kind) \(item) does not belong to night-audit; run: ALTER TABLE \(table) \(remedy)", remedies: []
      )
    }
    if kind == "column" {
      return Difference(object: table, problem: "its column \(item) is missing, or is not \(wanted)", remedies: [])
    }
    let definition = wanted.replacing("REFERENCES ", with: "REFERENCES night_audit.")
    let restoring =
      isConstraint
      ? (found == nil ? "" : "\(drop), ") + "ADD CONSTRAINT \(item) \(definition)"
      : "ALTER COLUMN \(item) SET DEFAULT \(definition)"
    return Difference(
      object: table,
      problem: "its \(kind) \(item) is missing, or was changed; run: ALTER TABLE \(table) \(restoring)", remedies: [])
  }

  // MARK: - Owners

  private func ownerDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    try connection.execute(
      """
      SELECT o.object, format('belongs to %s instead of the owner of the schema; run: ALTER %s OWNER TO %s',
        o.owner::regrole, o.alter, n.nspowner::regrole)
      FROM pg_namespace n CROSS JOIN LATERAL (
        SELECT format('night_audit.%I', c.relname) AS object, c.relowner AS owner,
          format('%s night_audit.%I', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
            c.relname) AS alter
        FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'S')
        UNION ALL
        SELECT 'function ' || p.oid::regprocedure, p.proowner, 'ROUTINE ' || p.oid::regprocedure
        FROM pg_proc p WHERE p.pronamespace = n.oid) o
      WHERE n.nspname = 'night_audit' AND o.owner <> n.nspowner ORDER BY 1
      """
    ).map { row throws(PostgresError) in
      Difference(object: try row.text(0), problem: try row.text(1), remedies: [])
    }
  }

  // MARK: - Functions

  /// SQL: the functions in a schema, by name and types of arguments, with all that decides what they do.
  private static func functions(of schema: String) -> String {
    """
    SELECT p.oid, format('%I(%s)', p.proname, oidvectortypes(p.proargtypes)) AS signature,
      ROW(p.prosrc, p.prolang, p.prokind, p.prosecdef, p.proconfig, p.provolatile, p.proisstrict, p.proretset, p.prorettype,
        p.proleakproof, p.proparallel, pg_get_function_arguments(p.oid))::text AS definition
    FROM pg_proc p WHERE p.pronamespace = \(schema)
    """
  }

  private func functionDifferences(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    let header = /^CREATE (?:OR REPLACE )?FUNCTION night_audit\./
    let copies = functions.values.map { $0.replacing(header, with: "CREATE FUNCTION pg_temp.") }
    try Self.create(copies, connection)
    let rows = try connection.execute(
      """
      SELECT coalesce(f.signature, w.signature), f.oid::regprocedure::text, w.oid IS NULL
      FROM (\(Self.functions(of: "'night_audit'::regnamespace"))) f
      FULL JOIN (\(Self.functions(of: "pg_my_temp_schema()"))) w ON w.signature = f.signature
      WHERE f.definition IS DISTINCT FROM w.definition ORDER BY 1
      """)
    try connection.executeScript("ROLLBACK TO SAVEPOINT comparison")
    return try rows.map { row throws(PostgresError) -> Difference in
      let (signature, found) = (try row.text(0), try row.optionalText(1))
      let object = "function \(found ?? "night_audit.\(signature)")"
      if try row.bool(2) {
        return Difference(
          object: object,
          problem: "does not belong to night-audit; drop it if it is not needed: DROP ROUTINE \(found ?? signature)",
          remedies: [], isForeignFunction: true)
      }
      let statement = functions[String(signature.prefix { $0 != "(" })] ?? ""
      return Difference(
        object: object, problem: found == nil ? "is missing" : "was changed",
        remedies: [statement.replacing(header, with: "CREATE OR REPLACE FUNCTION night_audit.")])
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
    // Who may insert into `runs` is a writer, as in the script of the rights. Reading changes nothing, so that each role
    // may be granted it.
    let rows = try connection.execute(
      """
      WITH relations AS (
        SELECT c.oid, c.relname, c.relowner, c.relacl, c.relkind, c.relrowsecurity,
          c.relname IN ('runs', 'evidence', 'answers', 'finding_events', 'run_events') AS is_append_only,
          c.relkind IN ('r', 'p') AND NOT c.relispartition
            AND c.relname NOT IN ('runs', 'evidence', 'answers', 'finding_events', 'run_events', 'trail', 'retention',
              'schema_migrations') AS is_written
        FROM pg_class c WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')),
      columns AS (
        SELECT c.oid, c.relname, c.relowner, t.attname, t.attacl, c.is_written, c.is_append_only AND t.attidentity = ''
          AND t.attname <> 'recorded_at' AND (c.relname <> 'runs' OR t.attname IN ('run_id', 'command', 'as_of',
            'period_since', 'period_until', 'time_zone', 'configuration', 'is_nightly', 'host', 'version', 'process_id'))
            AS is_appended
        FROM relations c JOIN pg_attribute t ON t.attrelid = c.oid WHERE t.attacl IS NOT NULL),
      writers AS (
        SELECT a.grantee FROM relations c CROSS JOIN LATERAL aclexplode(c.relacl) a
        WHERE c.relname = 'runs' AND a.privilege_type = 'INSERT'
        UNION
        SELECT a.grantee FROM columns c CROSS JOIN LATERAL aclexplode(c.attacl) a
        WHERE c.relname = 'runs' AND a.privilege_type = 'INSERT'
        EXCEPT SELECT oid FROM pg_roles WHERE rolname = 'night_audit_reader'),
      granted AS (
        SELECT 1 AS place, format('night_audit.%I', c.relname) AS object, NULL::name AS attname, c.relkind = 'S' AS is_special,
          a.grantee, a.privilege_type, c.relowner AS owner,
          a.privilege_type = 'SELECT' OR a.grantee IN (SELECT grantee FROM writers)
            AND (c.is_written AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE')
              OR c.relkind = 'S' AND a.privilege_type = 'USAGE') AS is_due
        FROM relations c CROSS JOIN LATERAL aclexplode(c.relacl) a
        UNION ALL
        SELECT 2, format('night_audit.%I', c.relname), c.attname, false, a.grantee, a.privilege_type, c.relowner,
          a.privilege_type = 'SELECT' OR a.grantee IN (SELECT grantee FROM writers)
            AND (c.is_written AND a.privilege_type IN ('INSERT', 'UPDATE') OR c.is_appended AND a.privilege_type = 'INSERT')
        FROM columns c CROSS JOIN LATERAL aclexplode(c.attacl) a
        UNION ALL
        SELECT 3, p.oid::regprocedure::text, NULL, p.prorettype = 'trigger'::regtype, a.grantee, a.privilege_type, p.proowner,
          a.grantee IN (SELECT grantee FROM writers) AND p.prorettype <> 'trigger'::regtype
        FROM pg_proc p CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE p.pronamespace = 'night_audit'::regnamespace
        UNION ALL
        SELECT 4, 'night_audit', NULL, false, a.grantee, a.privilege_type, n.nspowner, a.privilege_type = 'USAGE'
        FROM pg_namespace n CROSS JOIN LATERAL aclexplode(n.nspacl) a WHERE n.nspname = 'night_audit'),
      surplus AS (
        SELECT place, object, attname, is_special, grantee,
          string_agg(privilege_type || coalesce(' (' || quote_ident(attname) || ')', ''), ', ' ORDER BY privilege_type)
            AS rights,
          CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS role
        FROM granted WHERE grantee <> owner AND (grantee = 0 OR NOT is_due)
        GROUP BY place, object, attname, is_special, grantee)
      SELECT CASE place WHEN 3 THEN 'function ' WHEN 4 THEN 'schema ' ELSE '' END || object,
        CASE WHEN grantee = 0 THEN format('everybody may use it (PUBLIC): %s', rights)
          WHEN place = 3 AND is_special THEN format('%s may make triggers of other tables run it', role)
          ELSE format('%s has rights that night-audit does not grant: %s', role, rights) END,
        format('REVOKE %s ON %s%s FROM %s', rights,
          CASE place WHEN 3 THEN 'FUNCTION ' WHEN 4 THEN 'SCHEMA ' ELSE CASE WHEN is_special THEN 'SEQUENCE ' ELSE '' END END,
          object, role)
      FROM surplus
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
