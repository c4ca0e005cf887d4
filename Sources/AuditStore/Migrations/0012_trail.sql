-- What an auditor relies on is only ever appended to: evidence, answers, what happened to findings, who signed, and runs,
-- whose columns are filled in once. Each entry of the trail covers the one before it, all rows that were appended since,
-- and a run's row as it was left; `night-audit verify` computes all of it anew.
CREATE TABLE night_audit.trail (
  entry_id bigint PRIMARY KEY,
  -- The hash of the entry before; empty in the first.
  previous text NOT NULL,
  content  text NOT NULL,
  -- SHA-256 of `previous`, a line feed and `content`.
  hash     text COLLATE "C" NOT NULL UNIQUE
);
CREATE VIEW night_audit.bi_trail AS
  SELECT entry_id, (content::jsonb ->> 'at')::timestamptz AS recorded_at, content::jsonb ->> 'kind' AS kind,
    (content::jsonb ->> 'run')::uuid AS run_id, content::jsonb ->> 'report' AS content, previous, hash
  FROM night_audit.trail;

-- The rows of a table after one id, through another, in the order of ids: one segment for each stretch of rows that were
-- recorded in the same month (UTC), so that months can go and the rest be proven. A row is its columns in binary form.
CREATE FUNCTION night_audit.trail_segments(
  relation text, key text, columns text, after_id bigint, through_id bigint, before_month date DEFAULT NULL)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  entry record; found jsonb := '[]'; digest bytea; rows bigint := 0; first_id bigint; last_id bigint; month date;
BEGIN
  FOR entry IN EXECUTE format(
    'SELECT %1$I AS id, date_trunc(''month'', recorded_at AT TIME ZONE ''UTC'')::date AS month,
       sha256(record_send(ROW(%2$s))) AS image
     FROM night_audit.%3$I WHERE %1$I > $1 AND %1$I <= $2
       AND ($3 IS NULL OR recorded_at < $3::timestamp AT TIME ZONE ''UTC'') ORDER BY %1$I', key, columns, relation)
    USING after_id, through_id, before_month
  LOOP
    IF rows > 0 AND (entry.month <> month AND before_month IS NULL) THEN
      found := found || jsonb_build_object('table', relation, 'month', to_char(month, 'YYYY-MM'), 'first', first_id,
        'last', last_id, 'rows', rows, 'digest', encode(digest, 'hex'));
      rows := 0;
    END IF;
    IF rows = 0 THEN
      first_id := entry.id; month := entry.month; digest := '';
    END IF;
    rows := rows + 1; last_id := entry.id; digest := sha256(digest || entry.image);
  END LOOP;
  IF rows > 0 THEN
    found := found || jsonb_build_object('table', relation, 'month', to_char(month, 'YYYY-MM'), 'first', first_id,
      'last', last_id, 'rows', rows, 'digest', encode(digest, 'hex'));
  END IF;
  RETURN found;
END $$;

-- What a table's rows are made of, as SQL; what says only that a process lives is no part of it.
CREATE FUNCTION night_audit.trail_columns(relation text) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
  WHERE attrelid = ('night_audit.' || quote_ident(relation))::regclass AND attnum > 0 AND NOT attisdropped
    AND attname NOT LIKE 'heartbeat%'
$$;

-- Appends an entry about what was appended since the last one, and about a run as it is now; gives its hash.
--
-- marks: up to which id each table is covered; tables that it does not name are left for the next entry. Null: all of all,
-- for which nobody may be in the middle of appending. Locks come in one order: people's, answers', the trail's.
CREATE FUNCTION night_audit.append_trail(
  kind text, run uuid, marks jsonb DEFAULT NULL, more jsonb DEFAULT '{}')
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC'
SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  before record; relation text; key text; old_mark bigint; new_mark bigint; segments jsonb; appended jsonb := '[]';
  columns jsonb := '{}'; covered jsonb; image text; report text; content text; number bigint; result text;
BEGIN
  IF marks IS NULL THEN
    PERFORM pg_advisory_xact_lock(1852401512, 5);
    PERFORM pg_advisory_xact_lock(1852401512, 2);
  END IF;
  PERFORM pg_advisory_xact_lock(1852401512, 6);
  SELECT t.entry_id, t.hash, t.content::jsonb -> 'marks' AS marks INTO before
  FROM night_audit.trail t ORDER BY t.entry_id DESC LIMIT 1;
  number := coalesce(before.entry_id, 0) + 1;
  covered := coalesce(before.marks, '{}');
  FOR relation, key IN
    SELECT * FROM (VALUES ('evidence', 'evidence_id'), ('answers', 'answer_id'), ('finding_events', 'event_id'),
      ('run_events', 'event_id')) chained (relation, key)
  LOOP
    old_mark := coalesce((covered ->> relation)::bigint, -9223372036854775808);
    IF marks IS NULL THEN
      EXECUTE format('SELECT max(%I) FROM night_audit.%I', key, relation) INTO new_mark;
    ELSE
      new_mark := (marks ->> relation)::bigint;
    END IF;
    CONTINUE WHEN new_mark IS NULL OR new_mark <= old_mark;
    segments := night_audit.trail_segments(
      relation, key, night_audit.trail_columns(relation), old_mark, new_mark);
    appended := appended || segments;
    columns := columns || jsonb_build_object(relation, night_audit.trail_columns(relation));
    covered := covered || jsonb_build_object(relation, new_mark);
  END LOOP;
  -- Whoever asks every half hour has mostly nothing to tell.
  IF kind = 'asked' AND appended = '[]' THEN
    RETURN before.hash;
  END IF;
  IF run IS NOT NULL THEN
    EXECUTE format('SELECT encode(sha256(record_send(ROW(%s))), ''hex''), r.content FROM night_audit.runs r
      WHERE run_id = $1', night_audit.trail_columns('runs')) INTO image, report USING run;
    IF image IS NOT NULL THEN
      columns := columns || jsonb_build_object('runs', night_audit.trail_columns('runs'));
    END IF;
  END IF;
  content := (jsonb_strip_nulls(jsonb_build_object(
    'entry', number, 'kind', kind, 'run', run, 'at', to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'row', image, 'report', report, 'appended', appended, 'columns', columns, 'marks', covered)) || more)::text;
  result := encode(sha256(convert_to(coalesce(before.hash, '') || E'\n' || content, 'UTF8')), 'hex');
  INSERT INTO night_audit.trail VALUES (number, coalesce(before.hash, ''), content, result);
  RETURN result;
END $$;

-- Fills in what has become of a run, and appends it to the trail; no kind leaves the entry to the next call.
CREATE FUNCTION night_audit.write_run(run uuid, kind text, changes jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE night_audit.runs r SET finished_at = n.finished_at, complete = n.complete,
    incomplete_reasons = n.incomplete_reasons, orders_read = n.orders_read, findings_opening = n.findings_opening,
    findings_new = n.findings_new, findings_closed = n.findings_closed, findings_closing = n.findings_closing,
    directory = n.directory, exit_status = n.exit_status, publication = n.publication, content = n.content,
    held_because = n.held_because, lookback_orders = n.lookback_orders, lookback_deliveries = n.lookback_deliveries
  FROM night_audit.runs o CROSS JOIN LATERAL jsonb_populate_record(o, changes) n
  WHERE r.run_id = run AND o.run_id = run;
  IF kind IS NOT NULL THEN
    PERFORM night_audit.append_trail(kind, run);
  END IF;
END $$;

CREATE FUNCTION night_audit.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'night_audit.% is only ever appended to; nothing in it is changed or removed', TG_TABLE_NAME
    USING ERRCODE = 'restrict_violation';
END $$;

-- What a run was told at its beginning stays; what it came to is said once; a report appears, and may be forgotten.
CREATE FUNCTION night_audit.guard_run() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (OLD.run_id, OLD.command, OLD.as_of, OLD.started_at, OLD.period_since, OLD.period_until, OLD.time_zone,
      OLD.configuration, OLD.is_nightly, OLD.host, OLD.version, OLD.process_id)
    IS DISTINCT FROM (NEW.run_id, NEW.command, NEW.as_of, NEW.started_at, NEW.period_since, NEW.period_until,
      NEW.time_zone, NEW.configuration, NEW.is_nightly, NEW.host, NEW.version, NEW.process_id)
    OR OLD.content IS NOT NULL AND (OLD.content, OLD.incomplete_reasons, OLD.orders_read, OLD.findings_opening,
        OLD.findings_new, OLD.findings_closed, OLD.findings_closing, OLD.lookback_orders, OLD.lookback_deliveries)
      IS DISTINCT FROM (NEW.content, NEW.incomplete_reasons, NEW.orders_read, NEW.findings_opening,
        NEW.findings_new, NEW.findings_closed, NEW.findings_closing, NEW.lookback_orders, NEW.lookback_deliveries)
    OR OLD.complete IS NOT NULL AND NEW.complete IS DISTINCT FROM OLD.complete
      AND NEW.publication IS DISTINCT FROM 'forgotten'
    OR OLD.publication IS DISTINCT FROM NEW.publication AND OLD.publication IS NOT NULL
      AND NEW.publication IS DISTINCT FROM 'forgotten'
      AND NOT (OLD.publication = 'publishing' AND coalesce(NEW.publication IN ('published', 'not_published'), false))
  THEN
    RAISE EXCEPTION 'run % is as it was recorded; what a run has told is not changed', OLD.run_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

-- Whoever appends is waited for by the entry that covers it.
CREATE FUNCTION night_audit.announce_event() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1852401512, 5);
  RETURN NULL;
END $$;
CREATE TRIGGER announce BEFORE INSERT ON night_audit.finding_events
  FOR EACH STATEMENT EXECUTE FUNCTION night_audit.announce_event();
CREATE TRIGGER announce BEFORE INSERT ON night_audit.run_events
  FOR EACH STATEMENT EXECUTE FUNCTION night_audit.announce_event();

DO $$
DECLARE
  relation text;
BEGIN
  FOREACH relation IN ARRAY ARRAY['evidence', 'answers', 'finding_events', 'run_events', 'trail'] LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON night_audit.%I
      FOR EACH ROW EXECUTE FUNCTION night_audit.refuse_change()', relation);
  END LOOP;
  CREATE TRIGGER append_only BEFORE DELETE ON night_audit.runs
    FOR EACH ROW EXECUTE FUNCTION night_audit.refuse_change();
  CREATE TRIGGER told_once BEFORE UPDATE ON night_audit.runs
    FOR EACH ROW EXECUTE FUNCTION night_audit.guard_run();
  FOR relation IN
    SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relkind IN ('r', 'p')
      AND (c.relname IN ('runs', 'finding_events', 'run_events', 'trail', 'evidence', 'answers')
        OR c.oid IN (SELECT inhrelid FROM pg_inherits))
  LOOP
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
      FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', relation);
  END LOOP;
END $$;

-- The first instant after a partition; null for the default one.
CREATE FUNCTION night_audit.partition_end(partition regclass) RETURNS timestamptz LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz
  FROM pg_class c WHERE c.oid = partition
$$;

-- Sees to partitions for this month and the next, and moves what the default one has taken meanwhile.
CREATE FUNCTION night_audit.keep_partitions() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  parent text; partition text; first_instant timestamptz; next_instant timestamptz; covered timestamptz; strays boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(1852401512, 1835624306);
  FOREACH parent IN ARRAY ARRAY['evidence', 'answers'] LOOP
    FOR ahead IN 0..1 LOOP
      first_instant := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead)) AT TIME ZONE 'UTC';
      next_instant := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead + 1))
        AT TIME ZONE 'UTC';
      SELECT max(night_audit.partition_end(h.inhrelid)) INTO covered FROM pg_inherits h
      WHERE h.inhparent = ('night_audit.' || parent)::regclass;
      CONTINUE WHEN first_instant < covered;
      partition := parent || to_char(first_instant AT TIME ZONE 'UTC', '_YYYY_MM');
      EXECUTE format('CREATE TABLE night_audit.%I (LIKE night_audit.%I INCLUDING DEFAULTS)', partition, parent);
      EXECUTE format('SELECT EXISTS (SELECT 1 FROM night_audit.%I WHERE recorded_at >= %L AND recorded_at < %L)',
        parent || '_default', first_instant, next_instant) INTO strays;
      IF strays THEN
        -- Apart it may be changed: what moves is the same rows.
        EXECUTE format('ALTER TABLE night_audit.%I DETACH PARTITION night_audit.%I', parent, parent || '_default');
        EXECUTE format('WITH moved AS (DELETE FROM night_audit.%I WHERE recorded_at >= %L AND recorded_at < %L RETURNING *)
          INSERT INTO night_audit.%I SELECT * FROM moved', parent || '_default', first_instant, next_instant, partition);
      END IF;
      EXECUTE format('ALTER TABLE night_audit.%I ATTACH PARTITION night_audit.%I FOR VALUES FROM (%L) TO (%L)',
        parent, partition, first_instant, next_instant);
      IF strays THEN
        EXECUTE format('ALTER TABLE night_audit.%I ATTACH PARTITION night_audit.%I DEFAULT', parent, parent || '_default');
      END IF;
      EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
        FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', partition);
    END LOOP;
  END LOOP;
END $$;

-- Lets go of a month, but for the facts to keep; the trail tells what is left of it and of all before it.
CREATE FUNCTION night_audit.release_partition(month_table text, keep bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  parent text; bounds text; last_month date; before_month date; marks jsonb; left_over jsonb; key text; columns text;
BEGIN
  SELECT p.relname, pg_get_expr(c.relpartbound, c.oid), date_trunc('month', night_audit.partition_end(c.oid))::date
  INTO parent, bounds, last_month
  FROM pg_class c JOIN pg_inherits h ON h.inhrelid = c.oid JOIN pg_class p ON p.oid = h.inhparent
  WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname = month_table
    AND p.relnamespace = c.relnamespace AND p.relname IN ('evidence', 'answers');
  IF last_month IS NULL THEN
    RAISE EXCEPTION '% is no month of evidence or answers', month_table USING ERRCODE = 'restrict_violation';
  END IF;
  -- All of it is in the trail before any of it goes.
  PERFORM night_audit.append_trail('before_release', NULL);
  SELECT t.content::jsonb -> 'marks' INTO marks FROM night_audit.trail t ORDER BY t.entry_id DESC LIMIT 1;
  key := CASE parent WHEN 'evidence' THEN 'evidence_id' ELSE 'answer_id' END;
  EXECUTE format('ALTER TABLE night_audit.%I DETACH PARTITION night_audit.%I', parent, month_table);
  IF parent = 'evidence' THEN
    EXECUTE format('ALTER TABLE night_audit.%I RENAME TO evidence_aside', month_table);
    EXECUTE format('CREATE TABLE night_audit.%I (LIKE night_audit.evidence INCLUDING DEFAULTS)', month_table);
    EXECUTE format('INSERT INTO night_audit.%I SELECT e.* FROM night_audit.evidence_aside e
      WHERE e.evidence_id = ANY ($1)', month_table) USING keep;
    DROP TABLE night_audit.evidence_aside;
    EXECUTE format('ALTER TABLE night_audit.evidence ATTACH PARTITION night_audit.%I %s', month_table, bounds);
    EXECUTE format('COMMENT ON TABLE night_audit.%I IS ''what nobody needs any more was let go''', month_table);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
      FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', month_table);
  ELSE
    EXECUTE format('DROP TABLE night_audit.%I', month_table);
  END IF;
  SELECT max((t.content::jsonb ->> 'before')::date) INTO before_month FROM night_audit.trail t
  WHERE t.content::jsonb ->> 'kind' = 'released' AND t.content::jsonb ->> 'table' = parent;
  before_month := greatest(before_month, last_month);
  columns := night_audit.trail_columns(parent);
  left_over := night_audit.trail_segments(
    parent, key, columns, -9223372036854775808, coalesce((marks ->> parent)::bigint, -9223372036854775808), before_month);
  PERFORM night_audit.append_trail('released', NULL, '{}', jsonb_build_object(
    'table', parent, 'partition', month_table, 'before', before_month, 'kept', left_over -> 0, 'key_columns', columns));
END $$;

-- The trail begins with what there is: rows of every table, and each run as it is.
SELECT night_audit.append_trail('start', NULL);
SELECT night_audit.append_trail('found', run_id) FROM night_audit.runs ORDER BY started_at, run_id;
