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

  /// Statements that restore functions and views by kind and name. No two functions of the migrations have the same name.
  private var statements: [String: String] = [:]
  /// Statements that create the same objects in the temporary schema, except for partitions.
  private var copies: [String] = []

  package init(_ migrations: [Migrator.Migration] = Migrator.migrations) {
    for statement in [Migrator.ledger] + migrations.flatMap({ SQLScript.statements($0.sql) }) {
      if let match = statement.prefixMatch(of: /CREATE (?:OR REPLACE )?(FUNCTION|VIEW) night_audit\.(\w+)/) {
        let (kind, name) = (match.1, match.2)
        let rest = statement[match.range.upperBound...]
        statements["\(kind.lowercased()) \(name)"] = "CREATE OR REPLACE \(kind) night_audit.\(name)\(rest)"
        // The body of a function stays, because its text is compared.
        copies.append(
          kind == "VIEW"
            ? "CREATE OR REPLACE TEMPORARY VIEW \(name)\(rest.replacing("night_audit.", with: "pg_temp."))"
            : "CREATE OR REPLACE FUNCTION pg_temp.\(name)\(rest)")
      } else if statement.contains(/^(CREATE|ALTER) (TABLE|SEQUENCE) |CREATE TRIGGER/),
        !statement.contains(" PARTITION OF ")
      {
        copies.append(statement.replacing("night_audit.", with: "pg_temp."))
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

  func differencesInTransaction(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Difference] {
    // Without this right the definitions are not compared; the doctor reports that.
    let mayCompare = try connection.execute("SELECT has_database_privilege(current_database(), 'TEMPORARY')")
    var rows: [PostgresRow] = []
    if try mayCompare.single().bool(0) {
      try connection.executeScript("SAVEPOINT comparison; SET LOCAL check_function_bodies = off")
      try connection.executeScript(copies.joined(separator: ";\n"))
      rows += try connection.execute(Self.comparison)
      try connection.executeScript("ROLLBACK TO SAVEPOINT comparison")
    }
    rows += try connection.execute(Self.ownersAndRights)
    return try rows.map { row throws(PostgresError) -> Difference in
      let key = try row.optionalText(3)
      let remedies = [try row.optionalText(2), key.flatMap { statements[$0] }].compactMap(\.self)
      return Difference(
        object: try row.text(0), problem: try row.text(1), remedies: remedies, isForeignFunction: key == "function")
    }
  }

  /// SQL: the definitions in a schema. The schema's name is left out of them.
  private static func definitions(in schema: String) -> String {
    func local(_ definition: String) -> String {
      "regexp_replace(\(definition), '(night_audit|pg_temp[_0-9]*)[.]', '', 'g')"
    }
    // Partitions follow their parents, except for their triggers.
    let kinds = "relkind IN ('r', 'p') AND NOT relispartition"
    let tables = "(SELECT * FROM pg_class WHERE relnamespace = \(schema) AND \(kinds)) c"
    return """
      SELECT c.oid, 'view' AS kind, c.relname::text AS relation, '' AS item, \(local("pg_get_viewdef(c.oid)")) AS definition,
        ARRAY(SELECT concat_ws(' ', attname, format_type(atttypid, atttypmod), attcollation) FROM pg_attribute
          WHERE attrelid = c.oid AND attnum > 0 ORDER BY attnum) AS columns, false AS is_off, false AS is_inherited
      FROM pg_class c WHERE c.relnamespace = \(schema) AND c.relkind = 'v'
      UNION ALL
      SELECT c.oid, 'column', c.relname, quote_ident(a.attname), concat_ws(' ', format_type(a.atttypid, a.atttypmod),
          nullif(a.attcollation, 0::oid)::regcollation::text, CASE WHEN a.attnotnull THEN 'NOT NULL' END,
          nullif(a.attidentity::text, ''), nullif(a.attgenerated::text, '')), NULL, false, false
      FROM \(tables) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL
      SELECT c.oid, 'default', c.relname, quote_ident(a.attname), pg_get_expr(d.adbin, d.adrelid), NULL, false, false
      FROM \(tables) JOIN pg_attrdef d ON d.adrelid = c.oid
      JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.adnum
      UNION ALL
      SELECT c.oid, 'constraint', c.relname, quote_ident(k.conname), \(local("pg_get_constraintdef(k.oid)")), NULL, false, false
      FROM \(tables) JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype IN ('c', 'p', 'u', 'f', 'x')
      UNION ALL
      SELECT c.oid, 'trigger', c.relname, quote_ident(t.tgname), \(local("pg_get_triggerdef(t.oid)")), NULL,
        t.tgenabled <> 'O', t.tgparentid <> 0
      FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal WHERE c.relnamespace = \(schema)
      UNION ALL
      SELECT p.oid, 'function', format('%I(%s)', p.proname, replace(oidvectortypes(p.proargtypes), ', ', ',')), '',
        ROW(p.prosrc, p.prolang, p.prokind, p.prosecdef, p.proconfig, p.provolatile, p.proisstrict, p.proretset, p.prorettype,
          p.proleakproof, p.proparallel, pg_get_function_arguments(p.oid))::text, NULL, false, false
      FROM pg_proc p WHERE p.pronamespace = \(schema)
      """
  }

  /// SQL: objects that differ from their copies in the temporary schema, problems, remedies, and kind and name of the
  /// statement that restores them. A person restores tables, because rows may contradict their definition.
  private static let comparison = """
    WITH found AS MATERIALIZED (\(definitions(in: "'night_audit'::regnamespace"))),
    copied AS MATERIALIZED (\(definitions(in: "pg_my_temp_schema()"))),
    wanted AS (
      SELECT * FROM copied
      UNION ALL
      -- Each month has a trigger of its own against TRUNCATE.
      SELECT w.oid, w.kind, c.relname, w.item, replace(w.definition, format(' ON %I ', w.relation), format(' ON %I ', c.relname)),
        NULL, false, false
      FROM copied w JOIN pg_class p ON p.relname = w.relation AND p.relnamespace = 'night_audit'::regnamespace
      JOIN pg_inherits h ON h.inhparent = p.oid
      JOIN pg_class c ON c.oid = h.inhrelid AND c.relispartition AND c.relnamespace = p.relnamespace
      WHERE w.kind = 'trigger' AND w.item = 'no_truncate'),
    differing AS (
      SELECT kind, relation, item, w.oid, f.definition AS found, w.definition AS wanted,
        'night_audit.' || CASE kind WHEN 'function' THEN relation ELSE quote_ident(relation) END AS object,
        f.is_off AND (f.is_inherited OR f.definition = w.definition) AS is_off,
        CASE WHEN w.columns[:cardinality(f.columns)] <> f.columns THEN format('DROP VIEW night_audit.%I CASCADE', relation) END
          AS dropping,
        CASE kind WHEN 'default' THEN format('ALTER COLUMN %s DROP DEFAULT', item)
          ELSE format('DROP %s %s', upper(kind), item) END AS removing,
        replace(replace(replace(w.definition, 'REFERENCES ', 'REFERENCES night_audit.'), format(' ON %I ', relation),
          format(' ON night_audit.%I ', relation)), 'EXECUTE FUNCTION ', 'EXECUTE FUNCTION night_audit.') AS restoring
      FROM found f FULL JOIN wanted w USING (kind, relation, item)
      WHERE (f.is_off OR f.definition IS DISTINCT FROM w.definition AND f.is_inherited IS NOT TRUE)
        AND (w.oid IS NOT NULL OR kind IN ('function', 'trigger')
          OR kind <> 'view' AND EXISTS (SELECT FROM copied c WHERE c.relation = f.relation))),
    differences AS (
      SELECT CASE kind WHEN 'function' THEN 1 WHEN 'view' THEN 2 WHEN 'trigger' THEN 5 ELSE 4 END AS place, oid,
        CASE WHEN kind IN ('function', 'view') THEN kind || ' ' WHEN kind = 'trigger' THEN format('trigger %s of ', item)
          ELSE '' END || object AS object,
        CASE WHEN is_off THEN 'is switched off'
          WHEN kind IN ('function', 'trigger') AND wanted IS NULL THEN format(
            'does not belong to night-audit; drop it if it is not needed: DROP %s %s',
            CASE kind WHEN 'trigger' THEN format('TRIGGER %s ON', item) ELSE 'ROUTINE' END, object)
          WHEN kind = 'trigger' THEN 'is missing, or was changed'
          WHEN kind IN ('function', 'view') AND found IS NULL THEN 'is missing'
          WHEN kind = 'function' THEN 'was changed' WHEN kind = 'view' THEN 'was defined otherwise'
          WHEN wanted IS NULL
            THEN format('its %s %s does not belong to night-audit; run: ALTER TABLE %s %s', kind, item, object, removing)
          WHEN kind = 'column' THEN format('its column %s is missing, or is not %s', item, wanted)
          ELSE format('its %s %s is missing, or was changed; run: ALTER TABLE %s ', kind, item, object)
            || CASE kind WHEN 'default' THEN format('ALTER COLUMN %s SET DEFAULT %s', item, restoring)
              ELSE CASE WHEN found IS NOT NULL THEN removing || ', ' ELSE '' END || format('ADD CONSTRAINT %s %s', item, restoring)
              END END AS problem,
        CASE WHEN is_off THEN format('ALTER TABLE %s ENABLE TRIGGER %s', object, item) WHEN kind = 'view' THEN dropping
          WHEN kind = 'trigger' THEN format('DROP TRIGGER IF EXISTS %s ON %s; ', item, object) || restoring END AS remedy,
        CASE WHEN kind = 'function' AND wanted IS NULL THEN kind
          WHEN kind IN ('function', 'view') THEN format('%s %s', kind, split_part(relation, '(', 1)) END AS statement
      FROM differing
      UNION ALL
      SELECT 3, c.oid, format('%I.%I', n.nspname, c.relname), format(
        'does not belong to night-audit; drop it if it is not needed: DROP %s %I.%I', CASE c.relkind WHEN 'v' THEN 'VIEW'
          WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END,
        n.nspname, c.relname), NULL, NULL
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_inherits h ON h.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = h.inhparent
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
        AND (n.nspname = 'night_audit' OR p.relnamespace = 'night_audit'::regnamespace)
        AND NOT (n.nspname = 'night_audit' AND (c.relispartition AND p.relname IN ('evidence', 'answers')
          OR h.inhrelid IS NULL AND EXISTS (SELECT FROM pg_class w WHERE w.relnamespace = pg_my_temp_schema()
            AND w.relname = c.relname AND w.relkind = c.relkind))))
    SELECT object, problem, remedy, statement FROM differences ORDER BY place, CASE place WHEN 2 THEN oid END, object, problem
    """

  /// SQL: owners and rights that the migrations do not give. Who may insert into `runs` is a writer, as in the script of the
  /// rights. Reading changes nothing, so that each role may be granted it.
  private static let ownersAndRights = """
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
        object, role), NULL::text
    FROM surplus
    UNION
    SELECT format('night_audit.%I', c.relname), 'row-level security may hide rows of it',
      format('ALTER TABLE night_audit.%I DISABLE ROW LEVEL SECURITY', c.relname), NULL
    FROM relations c WHERE c.relrowsecurity
    UNION
    SELECT format('night_audit.%I', c.relname),
      format('the rule %s rewrites its statements; drop it: DROP RULE %1$I ON night_audit.%I', r.rulename, c.relname), NULL, NULL
    FROM relations c JOIN pg_rewrite r ON r.ev_class = c.oid WHERE r.rulename <> '_RETURN'
    UNION
    SELECT o.object, format('belongs to %s instead of the owner of the schema; run: ALTER %s OWNER TO %s',
      o.owner::regrole, o.alter, n.nspowner::regrole), NULL, NULL
    FROM pg_namespace n CROSS JOIN LATERAL (
      SELECT format('night_audit.%I', c.relname) AS object, c.relowner AS owner,
        format('%s night_audit.%I', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
          c.relname) AS alter
      FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'S')
      UNION ALL
      SELECT 'function ' || p.oid::regprocedure, p.proowner, 'ROUTINE ' || p.oid::regprocedure
      FROM pg_proc p WHERE p.pronamespace = n.oid) o
    WHERE n.nspname = 'night_audit' AND o.owner <> n.nspowner
    ORDER BY 1, 2
    """
}

enum SQLScript {
  /// The statements of a script, without semicolons and comments. Dollar-quoted text is kept unchanged.
  static func statements(_ script: String) -> [String] {
    var statements = [""]
    for match in script.matches(of: /--.*|\$\$[\s\S]*?\$\$|'[^']*'|;|[^\-$';]+|./) {
      if match.output == ";" {
        statements.append("")
      } else if !match.output.hasPrefix("--") {
        statements[statements.count - 1] += match.output
      }
    }
    return statements.map { String($0.drop(while: \.isWhitespace)) }.filter { !$0.isEmpty }
  }

  static func onOneLine(_ statement: String) -> String {
    statement.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }
}
