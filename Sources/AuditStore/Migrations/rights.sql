-- Rights of the roles. Runs after every migration and may be repeated.
--
-- If a superuser owns the schema, it belongs to a role without login. Roles that run nights are members of
-- night_audit_writer, which can append but not change; readers are members of night_audit_reader, which sees only the
-- views. A schema of the one role that runs nights keeps its owner.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA night_audit FROM PUBLIC;
DO $$
DECLARE
  entry record;
  is_super boolean := (SELECT rolsuper FROM pg_roles WHERE rolname = current_user);
  keeper name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'night_audit');
  append_only constant text[] := ARRAY['runs', 'evidence', 'answers', 'finding_events', 'run_events'];
  read_only constant text[] := ARRAY['schema_migrations', 'trail', 'retention'];
  inserts text := '';
  -- A superuser maintains the schema of another role, which keeps it with all that a migration created.
  is_apart boolean := false;
  -- A trigger function runs for the tables that have it. Who may call it could make a trigger of another table run it.
  triggers text := (SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc p
    WHERE p.pronamespace = 'night_audit'::regnamespace AND p.prorettype = 'trigger'::regtype);
BEGIN
  -- A writer chooses neither the id nor the time of appended rows, nor the end of a run: the trail could not cover such
  -- a row, or would cover a run that never was.
  SELECT string_agg(format('GRANT INSERT (%s) ON night_audit.%I TO %%1$s;', columns, relname), ' ') INTO inserts FROM (
    SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname = ANY (append_only)
      AND a.attidentity = '' AND a.attname <> 'recorded_at'
      AND (c.relname <> 'runs' OR a.attname IN ('run_id', 'command', 'as_of', 'period_since', 'period_until', 'time_zone',
        'configuration', 'is_nightly', 'host', 'version', 'process_id'))
    GROUP BY c.relname) appended;
  -- Roles with rights on single tables become writers.
  FOR entry IN
    SELECT DISTINCT a.grantee::regrole::text AS grantee FROM pg_class c
    CROSS JOIN LATERAL (
      SELECT grantee, privilege_type FROM aclexplode(c.relacl)
      UNION SELECT x.grantee, x.privilege_type FROM pg_attribute t, aclexplode(t.attacl) x
      WHERE t.attrelid = c.oid) a
    WHERE c.oid = 'night_audit.runs'::regclass AND a.privilege_type = 'INSERT'
      AND a.grantee NOT IN (0, c.relowner, coalesce(to_regrole('night_audit_reader')::oid, 0))
  LOOP
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA night_audit TO %s', entry.grantee);
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM %s', triggers, entry.grantee);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON night_audit.runs, night_audit.evidence, night_audit.answers,
      night_audit.finding_events, night_audit.run_events FROM %s', entry.grantee);
    EXECUTE format(inserts, entry.grantee);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON night_audit.trail, night_audit.retention,
      night_audit.schema_migrations FROM %s', entry.grantee);
    EXECUTE format('GRANT SELECT ON night_audit.trail, night_audit.retention TO %s', entry.grantee);
  END LOOP;
  IF is_super AND keeper NOT IN ('night_audit_owner', current_user) THEN
    is_apart := true;
  ELSIF is_super THEN
    FOR entry IN SELECT * FROM (VALUES ('night_audit_owner'), ('night_audit_writer'), ('night_audit_reader')) r (name)
    LOOP
      -- Roles belong to the cluster: another database may create them at the same time.
      IF to_regrole(entry.name) IS NULL THEN
        BEGIN
          EXECUTE format('CREATE ROLE %I NOLOGIN', entry.name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
      END IF;
    END LOOP;
  ELSIF keeper <> 'night_audit_owner' OR to_regrole('night_audit_writer') IS NULL
    OR to_regrole('night_audit_reader') IS NULL THEN
    RETURN;
  END IF;
  IF NOT is_apart AND keeper <> 'night_audit_owner' THEN
    ALTER SCHEMA night_audit OWNER TO night_audit_owner;
    keeper := 'night_audit_owner';
  END IF;
  FOR entry IN
    SELECT format('ALTER %s night_audit.%I OWNER TO %I',
        CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.relname, keeper) AS command
    FROM pg_class c
    WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
      AND pg_get_userbyid(c.relowner) <> keeper
      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.classid = 'pg_class'::regclass
        AND d.deptype IN ('a', 'i') AND c.relkind = 'S')
    UNION ALL
    SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, keeper) FROM pg_proc p
    WHERE p.pronamespace = 'night_audit'::regnamespace AND pg_get_userbyid(p.proowner) <> keeper
  LOOP
    EXECUTE entry.command;
  END LOOP;
  IF is_apart THEN
    RETURN;
  END IF;
  GRANT USAGE ON SCHEMA night_audit TO night_audit_writer, night_audit_reader;
  GRANT SELECT ON ALL TABLES IN SCHEMA night_audit TO night_audit_writer;
  GRANT USAGE ON ALL SEQUENCES IN SCHEMA night_audit TO night_audit_writer;
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA night_audit TO night_audit_writer;
  EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM night_audit_writer', triggers);
  EXECUTE format(inserts, 'night_audit_writer');
  FOR entry IN
    SELECT c.relname, c.relkind FROM pg_class c
    WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
      AND c.relname <> ALL (read_only)
  LOOP
    IF entry.relkind = 'v' THEN
      CONTINUE WHEN NOT starts_with(entry.relname, 'bi_');
      EXECUTE format('GRANT SELECT ON night_audit.%I TO night_audit_reader', entry.relname);
    ELSIF entry.relname <> ALL (append_only) THEN
      EXECUTE format('GRANT INSERT, UPDATE, DELETE ON night_audit.%I TO night_audit_writer', entry.relname);
    END IF;
  END LOOP;
END $$;
