-- What sweeps move on past is told by the first night that is published after it, whoever swept: until then nobody knows.

-- As-of of the run that moved on past a notification; null where the whole page was not believed, and nothing moved.
ALTER TABLE night_audit.disbelieved_notifications ADD COLUMN passed_over_at timestamptz;
UPDATE night_audit.disbelieved_notifications SET passed_over_at = as_of;
ALTER TABLE night_audit.sweeps DROP COLUMN refused;
ALTER TABLE night_audit.sweep_slices DROP COLUMN refused;
-- As-of of the last run that moved on past a purchase in a customer's history that is not believed.
ALTER TABLE night_audit.histories ADD COLUMN passed_over_at timestamptz;

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
CREATE VIEW night_audit.bi_sweep_gaps AS
  SELECT bundle_id, environment, notification_type, gap_start, gap_end, as_of FROM night_audit.sweep_gaps;
CREATE OR REPLACE VIEW night_audit.bi_disbelieved_notifications AS
  SELECT bundle_id, notification_type, digest, as_of, reason, passed_over_at FROM night_audit.disbelieved_notifications;
CREATE OR REPLACE VIEW night_audit.bi_histories AS
  SELECT bundle_id, environment, transaction_id, read_at, last_attempt, reason, passed_over_at FROM night_audit.histories;
