-- Which runs said what is open. What is open was met by the newest of them, so that a night need not write down, finding by
-- finding, that nothing has changed; the column says of a closed one when it was met last.
CREATE TABLE night_audit.findings_met (
  run_id uuid PRIMARY KEY REFERENCES night_audit.runs ON DELETE CASCADE,
  as_of  timestamptz NOT NULL
);
CREATE INDEX findings_met_as_of ON night_audit.findings_met (as_of);
INSERT INTO night_audit.findings_met (run_id, as_of)
SELECT r.run_id, r.as_of FROM night_audit.runs r
WHERE r.complete IS NOT NULL AND r.as_of IN (SELECT f.last_seen FROM night_audit.findings f);

DO $$ BEGIN
  EXECUTE (
    SELECT 'CREATE OR REPLACE VIEW night_audit.bi_findings AS SELECT '
      || string_agg(CASE WHEN attname = 'last_seen' THEN 'CASE WHEN f.closed_at IS NULL THEN greatest(f.last_seen,
          (SELECT max(m.as_of) FROM night_audit.findings_met m)) ELSE f.last_seen END AS last_seen'
        ELSE format('f.%I', attname) END, ', ' ORDER BY attnum)
      || ' FROM night_audit.findings f'
    FROM pg_attribute WHERE attrelid = 'night_audit.findings'::regclass AND attnum > 0 AND NOT attisdropped);
END $$;
