-- What findings.csv shows and the table did not keep.
ALTER TABLE night_audit.findings ADD COLUMN paid_at timestamptz, ADD COLUMN delivered_at timestamptz;
CREATE OR REPLACE VIEW night_audit.bi_findings AS SELECT * FROM night_audit.findings;

-- What a nightly report said about a day: its own, and every earlier one whose totals had changed. Sums by currency and
-- disposition, so that it costs nothing beside the orders. Append-only; later nights compare with it.
CREATE TABLE night_audit.reported_days (
  run_id    uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  day       date NOT NULL,
  time_zone text NOT NULL,
  PRIMARY KEY (run_id, day)
);
CREATE INDEX reported_days_day ON night_audit.reported_days (day);
CREATE TABLE night_audit.reported_totals (
  run_id      uuid NOT NULL,
  day         date NOT NULL,
  currency    text COLLATE "C" NOT NULL,
  disposition text COLLATE "C" NOT NULL,
  orders      bigint NOT NULL,
  amount      numeric NOT NULL,
  PRIMARY KEY (run_id, day, currency, disposition),
  FOREIGN KEY (run_id, day) REFERENCES night_audit.reported_days ON DELETE CASCADE
);
CREATE VIEW night_audit.bi_reported_totals AS
  SELECT r.period_until AS night, r.as_of, d.time_zone, t.*
  FROM night_audit.reported_totals t JOIN night_audit.reported_days d USING (run_id, day)
  JOIN night_audit.runs r USING (run_id);
