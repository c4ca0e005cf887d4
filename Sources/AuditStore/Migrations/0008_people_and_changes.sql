-- What findings.csv shows and the table did not keep, and what people plan.
ALTER TABLE night_audit.findings
  ADD COLUMN occurred_at timestamptz, ADD COLUMN at_stake_unknown boolean NOT NULL DEFAULT false, ADD COLUMN due date;
CREATE OR REPLACE VIEW night_audit.bi_findings AS SELECT * FROM night_audit.findings;

-- Changes that were made together can be taken back together. The value before stands beside the one after.
ALTER TABLE night_audit.finding_events ADD COLUMN change_id uuid, ADD COLUMN before text, ADD COLUMN undoes uuid;
CREATE INDEX finding_events_change ON night_audit.finding_events (change_id) WHERE change_id IS NOT NULL;
CREATE OR REPLACE VIEW night_audit.bi_finding_events AS SELECT * FROM night_audit.finding_events;

-- Who signed the report of a run, and what was said about it. Append-only; the newest word counts.
CREATE TABLE night_audit.run_events (
  event_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id      uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  event       text NOT NULL CHECK (event IN ('prepared_by', 'reviewed_by', 'signed_on', 'remark')),
  actor       text NOT NULL,
  detail      text
);
CREATE INDEX run_events_run ON night_audit.run_events (run_id, event_id);

-- What complete nights decided about orders and findings, kept for comparing one night with the next and for bi_orders.
-- Never read as a fact. A row stands from its as-of until the next one of the same id: nights write what differs.
CREATE TABLE night_audit.order_nights (
  order_id    text COLLATE "C" NOT NULL,
  as_of       timestamptz NOT NULL,
  run_id      uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  user_id     text COLLATE "C",
  product_id  text COLLATE "C",
  currency    text,
  amount      numeric,
  created_at  timestamptz NOT NULL,
  disposition text NOT NULL,
  PRIMARY KEY (order_id, as_of)
);
CREATE INDEX order_nights_run ON night_audit.order_nights (run_id);
CREATE INDEX order_nights_created ON night_audit.order_nights (created_at);
CREATE TABLE night_audit.finding_nights (
  finding_id text COLLATE "C" NOT NULL,
  as_of      timestamptz NOT NULL,
  run_id     uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  is_open    boolean NOT NULL,
  status     text NOT NULL,
  currency   text,
  at_stake   numeric,
  PRIMARY KEY (finding_id, as_of)
);
CREATE INDEX finding_nights_run ON night_audit.finding_nights (run_id);

-- Until the first night with this schema, what the night before it left is what the table of findings says.
INSERT INTO night_audit.finding_nights (finding_id, as_of, run_id, is_open, status, currency, at_stake)
SELECT f.finding_id, r.as_of, r.run_id, true, f.status, f.currency, f.at_stake
FROM night_audit.findings f CROSS JOIN (
  SELECT run_id, as_of FROM night_audit.runs WHERE is_nightly AND complete IS NOT NULL
  ORDER BY complete DESC, as_of DESC, started_at DESC LIMIT 1) r
WHERE f.opened_at <= r.as_of AND (f.closed_at IS NULL OR f.closed_at > r.as_of);

-- Open findings of a night by kind and currency; the currency of findings without money is empty.
CREATE TABLE night_audit.run_findings (
  run_id           uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  kind             text COLLATE "C" NOT NULL,
  severity         text COLLATE "C" NOT NULL,
  currency         text COLLATE "C" NOT NULL,
  findings         bigint NOT NULL,
  at_stake         numeric NOT NULL,
  at_stake_unknown bigint NOT NULL,
  PRIMARY KEY (run_id, kind, severity, currency)
);

CREATE VIEW night_audit.bi_run_events AS SELECT * FROM night_audit.run_events;
CREATE VIEW night_audit.bi_orders AS
  SELECT DISTINCT ON (order_id) order_id, user_id, product_id, currency, amount, created_at, disposition,
    as_of AS decided_as_of, run_id
  FROM night_audit.order_nights ORDER BY order_id, as_of DESC;
CREATE VIEW night_audit.bi_findings_by_night AS
  SELECT n.period_until AS night, n.as_of, n.complete, f.run_id, f.kind, f.severity, nullif(f.currency, '') AS currency,
    f.findings, f.at_stake, f.at_stake_unknown
  FROM (
    -- A night that was made again says what its newest report says.
    SELECT DISTINCT ON (period_until) run_id, period_until, as_of, complete FROM night_audit.runs
    WHERE is_nightly AND complete IS NOT NULL ORDER BY period_until, as_of DESC, started_at DESC) n
  JOIN night_audit.run_findings f USING (run_id);
