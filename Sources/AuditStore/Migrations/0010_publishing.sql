-- What became of a run's report between the commit and its folder, and what the next night is measured by.
ALTER TABLE night_audit.runs
  ADD COLUMN process_id          integer,
  ADD COLUMN publication         text
    CHECK (publication IN ('publishing', 'published', 'not_published', 'held', 'forgotten')),
  ADD COLUMN content             text,
  ADD COLUMN held_because        text[] NOT NULL DEFAULT '{}',
  ADD COLUMN lookback_orders     bigint,
  ADD COLUMN lookback_deliveries bigint;
UPDATE night_audit.runs SET publication = 'published' WHERE complete IS NOT NULL;
CREATE INDEX runs_publishing ON night_audit.runs (run_id) WHERE publication = 'publishing';

CREATE OR REPLACE VIEW night_audit.bi_runs AS SELECT * FROM night_audit.runs;
COMMENT ON COLUMN night_audit.bi_runs.process_id IS 'The process on the host, as ps shows it.';
COMMENT ON COLUMN night_audit.bi_runs.publication IS
  'published; publishing: the folder is about to appear; not_published: it never did; held; forgotten; null: no report.';
COMMENT ON COLUMN night_audit.bi_runs.content IS 'SHA-256 of the report''s SHA256SUMS.';
COMMENT ON COLUMN night_audit.bi_runs.held_because IS 'Why the night was held, one sentence each; empty: it was not.';
COMMENT ON COLUMN night_audit.bi_runs.lookback_orders IS 'Orders in the lookback, for the plausibility of the next night.';
COMMENT ON COLUMN night_audit.bi_runs.lookback_deliveries IS 'Deliveries in the lookback, for the same.';
