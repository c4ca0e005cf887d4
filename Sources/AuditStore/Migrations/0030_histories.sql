-- As-of of the first run in a row that Apple gave no whole page of a customer's history.
ALTER TABLE night_audit.histories ADD COLUMN unanswered_since timestamptz;
UPDATE night_audit.histories SET unanswered_since = last_attempt WHERE reason IS NOT NULL AND reason <> 'unfinished';
CREATE OR REPLACE VIEW night_audit.bi_histories AS
  SELECT bundle_id, environment, transaction_id, read_at, last_attempt, reason, passed_over_at, unanswered_since
  FROM night_audit.histories;
