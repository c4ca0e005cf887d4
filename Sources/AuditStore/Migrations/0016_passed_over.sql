-- What sweeps move on past is told by the first report of everything that is published after it, whoever swept: until then
-- nobody knows.

-- As-of of the run that moved on past a notification; null where the whole page was not believed, and nothing moved.
ALTER TABLE night_audit.disbelieved_notifications ADD COLUMN passed_over_at timestamptz;
-- What a sweep is in the middle of was told by nobody yet.
UPDATE night_audit.disbelieved_notifications n SET passed_over_at = CASE WHEN EXISTS (
    SELECT FROM night_audit.sweeps s LEFT JOIN night_audit.sweep_slices l USING (bundle_id, environment, notification_type)
    WHERE s.bundle_id = n.bundle_id AND s.notification_type = n.notification_type AND (s.refused > 0 OR l.refused > 0))
  THEN now() ELSE n.as_of END;
ALTER TABLE night_audit.sweeps DROP COLUMN refused;
ALTER TABLE night_audit.sweep_slices DROP COLUMN refused;
-- As-of of the last run that moved on past a purchase in a customer's history that is not believed.
ALTER TABLE night_audit.histories ADD COLUMN passed_over_at timestamptz;
UPDATE night_audit.histories SET passed_over_at = last_attempt WHERE reason = 'not_believed';

-- Times of which Apple does not tell any more, and the run that met them.
CREATE TABLE night_audit.sweep_gaps (
  bundle_id         text COLLATE "C" NOT NULL,
  environment       text COLLATE "C" NOT NULL,
  notification_type text COLLATE "C" NOT NULL,
  gap_start         timestamptz NOT NULL,
  gap_end           timestamptz NOT NULL,
  as_of             timestamptz NOT NULL,
  PRIMARY KEY (bundle_id, environment, notification_type, gap_start)
);
INSERT INTO night_audit.sweep_gaps (bundle_id, environment, notification_type, gap_start, gap_end, as_of)
SELECT bundle_id, environment, notification_type, swept_until, window_start, now()
FROM night_audit.sweeps WHERE window_start > swept_until;
CREATE VIEW night_audit.bi_sweep_gaps AS
  SELECT bundle_id, environment, notification_type, gap_start, gap_end, as_of FROM night_audit.sweep_gaps;
CREATE OR REPLACE VIEW night_audit.bi_disbelieved_notifications AS
  SELECT bundle_id, notification_type, digest, as_of, reason, passed_over_at FROM night_audit.disbelieved_notifications;
CREATE OR REPLACE VIEW night_audit.bi_histories AS
  SELECT bundle_id, environment, transaction_id, read_at, last_attempt, reason, passed_over_at FROM night_audit.histories;

-- Which runs said what is open: the last night did, whether it had anything to say or not.
INSERT INTO night_audit.findings_met (run_id, as_of)
SELECT run_id, as_of FROM night_audit.runs WHERE is_nightly AND complete IS NOT NULL ORDER BY as_of DESC LIMIT 1
ON CONFLICT DO NOTHING;

-- Lets go of a month, but for the facts to keep; the trail tells what is left of it and of all before it. Whoever runs nights
-- may call it: a month that is not over stays, and so does the first word about a transaction, and the last one of each proof
-- by each channel. It stands here whole because what was applied once is not changed.
CREATE OR REPLACE FUNCTION night_audit.release_partition(month_table text, keep bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  parent text; bounds text; last_month date; before_month date; marks jsonb; left_over jsonb; key text; columns text;
  is_needed boolean;
BEGIN
  SELECT p.relname, pg_get_expr(c.relpartbound, c.oid), date_trunc('month', night_audit.partition_end(c.oid))::date
  INTO parent, bounds, last_month
  FROM pg_class c JOIN pg_inherits h ON h.inhrelid = c.oid JOIN pg_class p ON p.oid = h.inhparent
  WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname = month_table
    AND p.relnamespace = c.relnamespace AND p.relname IN ('evidence', 'answers');
  IF last_month IS NULL THEN
    RAISE EXCEPTION '% is no month of evidence or answers', month_table USING ERRCODE = 'restrict_violation';
  END IF;
  IF night_audit.partition_end(format('night_audit.%I', month_table)::regclass) > now() THEN
    RAISE EXCEPTION '% is not over', month_table USING ERRCODE = 'restrict_violation';
  END IF;
  IF parent = 'evidence' THEN
    EXECUTE format('SELECT EXISTS (
        SELECT FROM night_audit.%1$I o WHERE NOT EXISTS (SELECT FROM unnest($1) k (id) WHERE k.id = o.evidence_id)
          AND NOT EXISTS (SELECT FROM night_audit.evidence e WHERE e.transaction_id = o.transaction_id
            AND e.environment = o.environment AND e.channel = o.channel AND e.signed_at >= o.signed_at
            AND e.subject_id IS NOT DISTINCT FROM o.subject_id AND e.tableoid <> %2$s))
      OR EXISTS (
        SELECT FROM night_audit.%1$I o WHERE NOT EXISTS (SELECT FROM unnest($1) k (id) WHERE k.id = o.evidence_id)
          AND NOT EXISTS (SELECT FROM night_audit.evidence e WHERE e.transaction_id = o.transaction_id
            AND e.environment = o.environment AND (e.signed_at, e.evidence_id) < (o.signed_at, o.evidence_id)))',
      month_table, format('night_audit.%I', month_table)::regclass::oid) INTO is_needed USING keep;
    IF is_needed THEN
      RAISE EXCEPTION '% has facts that have to stay', month_table USING ERRCODE = 'restrict_violation';
    END IF;
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
