-- What night-audit keeps for itself. Ids are compared byte by byte, hence COLLATE "C": the streams that a report is made
-- from come out of these indexes in the order in which they are merged.

CREATE TABLE night_audit.runs (
  run_id            uuid PRIMARY KEY,
  command           text NOT NULL,
  as_of             timestamptz NOT NULL,
  started_at        timestamptz NOT NULL DEFAULT now(),
  finished_at       timestamptz,
  period_since      date NOT NULL,
  period_until      date NOT NULL,
  time_zone         text NOT NULL,
  configuration     text NOT NULL,
  is_nightly        boolean NOT NULL,
  host              text NOT NULL,
  version           text NOT NULL,
  complete          boolean,
  incomplete_reasons text[] NOT NULL DEFAULT '{}',
  orders_read       bigint,
  findings_opening  bigint,
  findings_new      bigint,
  findings_closed   bigint,
  findings_closing  bigint,
  directory         text,
  exit_status       integer
);
CREATE INDEX runs_as_of ON night_audit.runs (as_of);

-- Money of a night by currency and disposition: what the history chart is drawn from.
CREATE TABLE night_audit.run_totals (
  run_id      uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  currency    text COLLATE "C" NOT NULL,
  disposition text COLLATE "C" NOT NULL,
  orders      bigint NOT NULL,
  amount      numeric NOT NULL,
  PRIMARY KEY (run_id, currency, disposition)
);

-- One row for each thing that Apple is asked about: a receipt, or a transaction id that an order names without one.
CREATE TABLE night_audit.receipt_checks (
  subject_kind          text COLLATE "C" NOT NULL CHECK (subject_kind IN ('receipt', 'lookup')),
  subject_id            text COLLATE "C" NOT NULL,
  order_id              text COLLATE "C",
  received_at           timestamptz NOT NULL,
  app                   text,
  payload_kind          text CHECK (payload_kind IN ('app', 'transaction', 'signed', 'malformed')),
  outcome               text NOT NULL DEFAULT 'pending'
                        CHECK (outcome IN ('pending', 'verified', 'rejected', 'unanswered', 'review', 'not_found')),
  reason                text,
  channel               text,
  environment           text,
  bundle_id             text,
  apple_status          integer,
  attempts              integer NOT NULL DEFAULT 0,
  last_attempt          timestamptz,
  next_attempt          timestamptz,
  answered_at           timestamptz,
  signed_transaction_id text COLLATE "C",
  brought_count         integer NOT NULL DEFAULT 0,
  -- Asked about first: the shop's own attempt failed or never happened.
  is_urgent             boolean NOT NULL DEFAULT true,
  leased_by             uuid,
  leased_until          timestamptz,
  PRIMARY KEY (subject_kind, subject_id)
);
CREATE INDEX receipt_checks_order ON night_audit.receipt_checks (order_id);
CREATE INDEX receipt_checks_due ON night_audit.receipt_checks (next_attempt)
  WHERE outcome IN ('pending', 'unanswered', 'review', 'not_found');
CREATE INDEX receipt_checks_stale ON night_audit.receipt_checks (answered_at) WHERE outcome = 'verified';

-- Append-only: what was said about a transaction, by whom and when. Nothing here is ever changed.
CREATE TABLE night_audit.evidence (
  evidence_id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id                  uuid NOT NULL,
  as_of                   timestamptz NOT NULL,
  recorded_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
  subject_kind            text COLLATE "C",
  subject_id              text COLLATE "C",
  channel                 text NOT NULL,
  signed_at               timestamptz NOT NULL,
  environment             text COLLATE "C" NOT NULL,
  transaction_id          text COLLATE "C" NOT NULL,
  original_transaction_id text COLLATE "C",
  web_order_line_item_id  text COLLATE "C",
  bundle_id               text,
  product_id              text COLLATE "C" NOT NULL,
  product_type            text,
  quantity                integer,
  purchased_at            timestamptz,
  original_purchased_at   timestamptz,
  expires_at              timestamptz,
  grace_expires_at        timestamptz,
  tells_revocation        boolean NOT NULL,
  revoked_at              timestamptz,
  revocation_percentage   integer,
  revocation_type         text,
  revocation_reason       integer,
  price_milliunits        bigint,
  currency                text,
  tells_account_token     boolean NOT NULL,
  app_account_token       text,
  ownership               text,
  is_renewal              boolean,
  has_offer               boolean,
  is_upgraded             boolean
);
CREATE INDEX evidence_transaction ON night_audit.evidence (transaction_id, environment);

-- One row for each answer that was received, whatever it said, facts or none. Append-only.
CREATE TABLE night_audit.answers (
  answer_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id       uuid NOT NULL,
  as_of        timestamptz NOT NULL,
  recorded_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  subject_kind text COLLATE "C" NOT NULL,
  subject_id   text COLLATE "C" NOT NULL,
  channel      text NOT NULL,
  outcome      text NOT NULL,
  reason       text,
  environment  text,
  apple_status integer,
  facts        integer NOT NULL
);
CREATE INDEX answers_subject ON night_audit.answers (subject_kind, subject_id);

-- The fold of the evidence, one row a transaction.
CREATE TABLE night_audit.transactions (
  environment             text COLLATE "C" NOT NULL,
  transaction_id          text COLLATE "C" NOT NULL,
  -- The order whose proof brought it first or that owns it: the stream that a report reads comes in this order.
  order_id                text COLLATE "C",
  -- Decided last: no order claims it although a proof of order_id brought it.
  is_unclaimed            boolean NOT NULL DEFAULT false,
  original_transaction_id text COLLATE "C",
  web_order_line_item_id  text COLLATE "C",
  bundle_id               text,
  product_id              text COLLATE "C" NOT NULL,
  product_type            text,
  quantity                integer,
  purchased_at            timestamptz,
  original_purchased_at   timestamptz,
  expires_at              timestamptz,
  subscription_expires_at timestamptz,
  revoked_at              timestamptz,
  revocation_percentage   integer,
  revocation_type         text,
  revocation_reason       integer,
  revocation_withdrawn_at timestamptz,
  price_milliunits        bigint,
  currency                text,
  tells_revocation        boolean NOT NULL,
  tells_account_token     boolean NOT NULL,
  app_account_token       text,
  ownership               text,
  is_renewal              boolean,
  has_offer               boolean,
  is_upgraded             boolean,
  is_contradictory        boolean NOT NULL,
  channel                 text NOT NULL,
  signed_at               timestamptz NOT NULL,
  checked_at              timestamptz NOT NULL,
  PRIMARY KEY (transaction_id, environment)
);
CREATE INDEX transactions_order ON night_audit.transactions (order_id);
CREATE INDEX transactions_subscription ON night_audit.transactions (original_transaction_id) WHERE expires_at IS NOT NULL;
CREATE INDEX transactions_token ON night_audit.transactions (order_id) WHERE app_account_token IS NOT NULL;

-- Which proof brought which transaction. A detour leads to a transaction that is filed under another order.
CREATE TABLE night_audit.receipt_transactions (
  subject_kind   text COLLATE "C" NOT NULL,
  subject_id     text COLLATE "C" NOT NULL,
  environment    text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" NOT NULL,
  order_id       text COLLATE "C",
  is_detour      boolean NOT NULL,
  PRIMARY KEY (subject_kind, subject_id, transaction_id, environment)
);
CREATE INDEX receipt_transactions_transaction ON night_audit.receipt_transactions (transaction_id, environment);
CREATE INDEX receipt_transactions_detour ON night_audit.receipt_transactions (order_id) WHERE is_detour;

-- Findings live on from night to night. opened_at and closed_at are instants of audits (as-of), not of clocks.
CREATE TABLE night_audit.findings (
  finding_id     text COLLATE "C" PRIMARY KEY,
  kind           text NOT NULL,
  severity       text NOT NULL,
  subject        text COLLATE "C" NOT NULL,
  order_id       text COLLATE "C",
  user_id        text COLLATE "C",
  product_id     text COLLATE "C",
  bundle_id      text,
  transaction_id text COLLATE "C",
  receipt_id     text COLLATE "C",
  delivery_id    text COLLATE "C",
  environment    text,
  currency       text,
  amount         numeric,
  at_stake       numeric,
  reason         text NOT NULL,
  first_seen     timestamptz NOT NULL,
  opened_at      timestamptz NOT NULL,
  last_seen      timestamptz NOT NULL,
  closed_at      timestamptz,
  status         text NOT NULL DEFAULT 'open',
  owner          text,
  remark         text
);
CREATE INDEX findings_open ON night_audit.findings (finding_id) WHERE closed_at IS NULL;

CREATE TABLE night_audit.finding_events (
  event_id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  finding_id  text COLLATE "C" NOT NULL,
  as_of       timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  run_id      uuid,
  event       text NOT NULL,
  actor       text,
  detail      text
);
CREATE INDEX finding_events_finding ON night_audit.finding_events (finding_id, event_id);

CREATE VIEW night_audit.claims AS
  SELECT order_id, environment, transaction_id FROM night_audit.transactions
  WHERE order_id IS NOT NULL AND NOT is_unclaimed;

-- For BI tools: names that stay when the tables change.
CREATE VIEW night_audit.bi_runs AS SELECT * FROM night_audit.runs;
CREATE VIEW night_audit.bi_run_totals AS SELECT * FROM night_audit.run_totals;
CREATE VIEW night_audit.bi_receipt_checks AS
  SELECT subject_kind, subject_id, order_id, received_at, app, payload_kind, outcome, reason, channel, environment,
         apple_status, attempts, last_attempt, next_attempt, answered_at
  FROM night_audit.receipt_checks;
CREATE VIEW night_audit.bi_evidence AS SELECT * FROM night_audit.evidence;
CREATE VIEW night_audit.bi_transactions AS SELECT * FROM night_audit.transactions;
CREATE VIEW night_audit.bi_claims AS SELECT * FROM night_audit.claims;
CREATE VIEW night_audit.bi_findings AS SELECT * FROM night_audit.findings;
CREATE VIEW night_audit.bi_finding_events AS SELECT * FROM night_audit.finding_events;
