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
  severity         text NOT NULL,
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

-- What the views and their columns are, for those who see them in a BI tool. A word means the same in every view, but for
-- those that name their view.
DO $$
DECLARE
  entry record;
BEGIN
  FOR entry IN
    SELECT * FROM (VALUES
      ('bi_runs', 'One row for each run of the program, complete or not.'),
      ('bi_run_totals', 'Money of a run by currency and disposition; the word at_stake stands for open findings.'),
      ('bi_run_events', 'Who prepared and reviewed the report of a run, and what was remarked.'),
      ('bi_receipt_checks', 'One row for each thing that Apple is asked about, and what came of it.'),
      ('bi_evidence', 'Every fact about a transaction, by whom and when it was said. Append-only.'),
      ('bi_transactions', 'What all evidence about a transaction comes to, one row each.'),
      ('bi_claims', 'Which order is paid by which transaction.'),
      ('bi_findings', 'Every discrepancy that was ever met, open or closed, with what people made of it.'),
      ('bi_finding_events', 'What happened to findings: opened, reopened and closed by nights; the rest by people.'),
      ('bi_orders', 'The one bucket that each order of the lookback ended in, by the newest complete night.'),
      ('bi_findings_by_night', 'Open findings and the money at stake in them at the end of each night.'),
      ('bi_reported_totals', 'What each night reported about a day, by currency and disposition.')
    ) AS views (name, meaning) WHERE to_regclass('night_audit.' || name) IS NOT NULL
  LOOP
    EXECUTE format('COMMENT ON VIEW night_audit.%I IS %L', entry.name, entry.meaning);
  END LOOP;
  FOR entry IN
    SELECT c.table_name AS view_name, c.column_name, w.meaning
    FROM information_schema.columns c
    JOIN LATERAL (
      SELECT meaning FROM (VALUES
        (NULL::text, 'run_id', 'The run.'),
        (NULL::text, 'command', 'What was asked for: run, reconcile, recheck.'),
        (NULL::text, 'as_of', 'The instant that the audit is made for; rules count from it, never from a clock.'),
        (NULL::text, 'started_at', 'When the program began, by the database''s clock.'),
        (NULL::text, 'finished_at', 'When it ended; null while it is at work, or when it was killed.'),
        (NULL::text, 'period_since', 'First day of the report.'),
        (NULL::text, 'period_until', 'Last day of the report.'),
        (NULL::text, 'time_zone', 'The zone that days are counted in.'),
        (NULL::text, 'configuration', 'SHA-256 of the settings that decide what a report says.'),
        (NULL::text, 'is_nightly', 'Whether it was a night, not a narrowed or ad hoc run.'),
        (NULL::text, 'host', 'The machine that it ran on.'),
        (NULL::text, 'version', 'The program''s version.'),
        (NULL::text, 'complete', 'Whether every check that was due was answered; null: there is no report.'),
        (NULL::text, 'incomplete_reasons', 'What is missing, one sentence each.'),
        (NULL::text, 'orders_read', 'Orders of the period.'),
        (NULL::text, 'findings_opening', 'Findings open at the end of the night before.'),
        (NULL::text, 'findings_new', 'Findings met since for the first time, or again.'),
        (NULL::text, 'findings_closed', 'Findings closed since.'),
        (NULL::text, 'findings_closing', 'Findings open now.'),
        (NULL::text, 'directory', 'Where the report is.'),
        (NULL::text, 'exit_status', 'The program''s exit status.'),
        (NULL::text, 'currency', 'ISO 4217 code.'),
        (NULL::text, 'disposition', 'The one bucket that orders end in; the sheet About of the workbook explains each.'),
        (NULL::text, 'orders', 'Number of orders.'),
        (NULL::text, 'amount', 'Money in major units of the currency.'),
        (NULL::text, 'subject_kind', 'What Apple is asked about: a receipt, or a transaction id that an order names (lookup).'),
        (NULL::text, 'subject_id', 'Its id.'),
        (NULL::text, 'order_id', 'The shop''s id of the order.'),
        (NULL::text, 'received_at', 'When the shop received the proof.'),
        (NULL::text, 'app', 'The app, by its name in the configuration.'),
        (NULL::text, 'payload_kind', 'What the proof is: app receipt, old transaction receipt, signed transaction, malformed.'),
        (NULL::text, 'outcome', 'What came of asking.'),
        (NULL::text, 'reason', 'Why, in words or as a payment reason.'),
        (NULL::text, 'channel', 'Which of Apple''s interfaces said so.'),
        (NULL::text, 'environment', 'Apple''s environment: Production, Sandbox, Xcode or LocalTesting.'),
        (NULL::text, 'apple_status', 'Apple''s status or error number.'),
        (NULL::text, 'attempts', 'How often Apple was asked.'),
        (NULL::text, 'last_attempt', 'As-of of the run that asked last.'),
        (NULL::text, 'next_attempt', 'When it is due again.'),
        (NULL::text, 'answered_at', 'As-of of the run that got the last usable answer.'),
        (NULL::text, 'evidence_id', 'A number of its own; later facts have larger ones.'),
        (NULL::text, 'recorded_at', 'When it was written, by the database''s clock.'),
        (NULL::text, 'signed_at', 'When Apple signed or said it: the newer fact counts.'),
        (NULL::text, 'transaction_id', 'Apple''s id of the purchase.'),
        (NULL::text, 'original_transaction_id', 'Apple''s id of the first purchase that this one continues or restores.'),
        (NULL::text, 'web_order_line_item_id', 'Apple''s id of one subscription period.'),
        (NULL::text, 'bundle_id', 'The app.'),
        (NULL::text, 'product_id', 'App Store product identifier.'),
        (NULL::text, 'product_type', 'Apple''s type of the product.'),
        (NULL::text, 'quantity', 'Units.'),
        (NULL::text, 'purchased_at', 'Apple''s purchase date.'),
        (NULL::text, 'original_purchased_at', 'Apple''s date of the first purchase.'),
        (NULL::text, 'expires_at', 'When the subscription period ends.'),
        (NULL::text, 'grace_expires_at', 'When Apple''s grace period ends.'),
        (NULL::text, 'subscription_expires_at', 'The newest end of the subscription.'),
        (NULL::text, 'tells_revocation', 'Whether this evidence could tell of a refund.'),
        (NULL::text, 'revoked_at', 'When Apple took the purchase back; null: not.'),
        (NULL::text, 'revocation_percentage', 'How much of it, in thousandths of a percent.'),
        (NULL::text, 'revocation_type', 'Apple''s type of the refund.'),
        (NULL::text, 'revocation_reason', 'Apple''s reason as its number.'),
        (NULL::text, 'revocation_withdrawn_at', 'When a refund that was known was taken back.'),
        (NULL::text, 'price_milliunits', 'Apple''s price in thousandths of the major unit.'),
        (NULL::text, 'tells_account_token', 'Whether this evidence could carry the account token.'),
        (NULL::text, 'app_account_token', 'The UUID that the shop gave to StoreKit for its user.'),
        (NULL::text, 'ownership', 'PURCHASED, or FAMILY_SHARED for access without a purchase.'),
        (NULL::text, 'is_renewal', 'Whether it renews a subscription.'),
        (NULL::text, 'has_offer', 'Whether an offer explains another price.'),
        (NULL::text, 'is_upgraded', 'Whether a later purchase replaced it.'),
        (NULL::text, 'is_contradictory', 'Whether Apple said two things of the same date that cannot both be.'),
        (NULL::text, 'is_unclaimed', 'Whether no order claims it.'),
        (NULL::text, 'checked_at', 'As-of of the run that asked last.'),
        (NULL::text, 'finding_id', 'Stable id: the same discrepancy has the same one every night.'),
        (NULL::text, 'kind', 'What is wrong; the sheet About of the workbook explains each kind.'),
        (NULL::text, 'severity', 'critical: now; major: this week; minor: data quality.'),
        (NULL::text, 'subject', 'What the finding stands on: an order, transaction, receipt or delivery.'),
        (NULL::text, 'user_id', 'The shop''s id of the user.'),
        (NULL::text, 'receipt_id', 'The shop''s id of the proof.'),
        (NULL::text, 'delivery_id', 'The shop''s id of the delivery.'),
        (NULL::text, 'at_stake', 'Money at stake; on one finding of an order only, so that it can be added up.'),
        (NULL::text, 'first_seen', 'As-of of the run that met it first.'),
        (NULL::text, 'opened_at', 'As-of of the run that opened or reopened it.'),
        (NULL::text, 'last_seen', 'As-of of the newest run that met it.'),
        (NULL::text, 'closed_at', 'As-of of the run that did not meet it any more; null: open.'),
        (NULL::text, 'status', 'What people made of it: open, acknowledged or closed.'),
        (NULL::text, 'owner', 'Who takes care of it.'),
        (NULL::text, 'remark', 'What people wrote about it.'),
        (NULL::text, 'paid_at', 'Apple''s purchase date.'),
        (NULL::text, 'delivered_at', 'The latest delivery that was not taken back.'),
        (NULL::text, 'occurred_at', 'When the deal happened: Apple''s purchase date, else the order''s, delivery''s or receipt''s own.'),
        (NULL::text, 'at_stake_unknown', 'Whether money is at stake of which nobody knows how much.'),
        ('bi_findings_by_night', 'at_stake_unknown', 'How many findings put money at stake whose amount nobody knows.'),
        (NULL::text, 'due', 'The day by which people want it settled.'),
        (NULL::text, 'event_id', 'A number of its own; later events have larger ones.'),
        (NULL::text, 'event', 'What happened.'),
        (NULL::text, 'actor', 'Who did it; null: a night.'),
        (NULL::text, 'detail', 'What was set; null: cleared.'),
        (NULL::text, 'change_id', 'Changes that were made together have the same one.'),
        (NULL::text, 'undoes', 'The change that this one takes back.'),
        (NULL::text, 'before', 'What was there before.'),
        (NULL::text, 'created_at', 'When the shop recorded the order.'),
        (NULL::text, 'decided_as_of', 'As-of of the night that first decided so.'),
        (NULL::text, 'night', 'The night''s business day.'),
        (NULL::text, 'findings', 'How many findings are open.'),
        (NULL::text, 'day', 'The business day that is spoken of.')
      ) AS words (view_name, column_name, meaning)
      WHERE words.column_name = c.column_name AND (words.view_name IS NULL OR words.view_name = c.table_name)
      ORDER BY words.view_name NULLS LAST LIMIT 1) w ON true
    WHERE c.table_schema = 'night_audit' AND c.table_name LIKE 'bi\_%'
  LOOP
    EXECUTE format('COMMENT ON COLUMN night_audit.%I.%I IS %L', entry.view_name, entry.column_name, entry.meaning);
  END LOOP;
END
$$;
