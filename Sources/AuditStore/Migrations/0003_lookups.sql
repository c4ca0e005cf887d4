-- Which order waits for which look-up: orders that name a transaction id and have no receipt. Two orders that name the
-- same id share one question, a row of receipt_checks with the app's bundle id, a slash and the transaction id.
CREATE TABLE night_audit.lookups (
  order_id   text COLLATE "C" PRIMARY KEY,
  subject_id text COLLATE "C" NOT NULL
);
CREATE INDEX lookups_subject ON night_audit.lookups (subject_id);

CREATE VIEW night_audit.bi_lookups AS SELECT * FROM night_audit.lookups;
