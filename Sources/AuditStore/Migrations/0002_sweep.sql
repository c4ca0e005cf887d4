-- How far Apple's notification history is known, one row for each app, side and type of notification.
CREATE TABLE night_audit.sweeps (
  bundle_id         text COLLATE "C" NOT NULL,
  environment       text COLLATE "C" NOT NULL,
  notification_type text COLLATE "C" NOT NULL,
  -- Everything that Apple signed before it is known; null before the first window is done.
  swept_until       timestamptz,
  -- As-of of the last attempt, and why it fell short; no reason when it did not.
  last_attempt      timestamptz NOT NULL,
  reason            text,
  -- The window that is being read. A pagination token is good for one and the same window only.
  window_start      timestamptz,
  window_end        timestamptz,
  pagination_token  text,
  refused           integer NOT NULL DEFAULT 0,
  PRIMARY KEY (bundle_id, environment, notification_type)
);

-- Where the reading of a customer's purchases ended: one row for each transaction id that it was asked by.
CREATE TABLE night_audit.histories (
  bundle_id      text COLLATE "C" NOT NULL,
  environment    text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" NOT NULL,
  revision       text,
  -- As-of of the last reading that came to the end, of the last attempt, and why that one fell short.
  read_at        timestamptz,
  last_attempt   timestamptz NOT NULL,
  reason         text,
  PRIMARY KEY (bundle_id, environment, transaction_id)
);

CREATE VIEW night_audit.bi_sweeps AS
  SELECT bundle_id, environment, notification_type, swept_until, last_attempt, reason FROM night_audit.sweeps;
CREATE VIEW night_audit.bi_histories AS
  SELECT bundle_id, environment, transaction_id, read_at, last_attempt, reason FROM night_audit.histories;
