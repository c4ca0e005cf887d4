-- The schema night_audit, the state of night-audit between nights.
--
-- Tables: runs, receipt checks, evidence, transactions, sweeps, orders and findings of nights, deliveries of reports,
-- Apple's sales and finance reports, the trail. Then functions, triggers, views and the comments that BI tools show, which
-- explain the columns of the views.
--
-- Dates of append-only rows are of the years 0 to 9999, as everywhere in night-audit: no later run could read others.
-- Ids have COLLATE "C", which compares bytes: audits merge streams of rows in the order of these indexes.

-- Runs ----------------------------------------------------------------------------------------------------------------

-- One row for each run. guard_run allows each column to be filled in once.
CREATE TABLE night_audit.runs (
  run_id uuid PRIMARY KEY,
  command text NOT NULL, as_of timestamptz NOT NULL, started_at timestamptz NOT NULL DEFAULT now(), finished_at timestamptz,
  period_since date NOT NULL, period_until date NOT NULL, time_zone text NOT NULL, configuration text NOT NULL,
  is_nightly boolean NOT NULL, host text NOT NULL, version text NOT NULL, complete boolean,
  incomplete_reasons text[] NOT NULL DEFAULT '{}', orders_read bigint, findings_opening bigint, findings_new bigint,
  findings_closed bigint, findings_closing bigint, directory text, exit_status integer, process_id integer,
  publication text CHECK (publication IN ('publishing', 'published', 'not_published', 'held', 'forgotten')),
  content text, held_because text[] NOT NULL DEFAULT '{}', lookback_orders bigint, lookback_deliveries bigint,
  -- Identify the report of a returned workbook: the newest finding event that the report contains, and the SHA-256 of
  -- its summary.json.
  newest_event bigint,
  summary text, feed_coverage jsonb,
  -- The first business day of the journal; null: the run has none.
  journal_since date,
  CHECK (least(as_of, started_at, finished_at) >= timestamptz '0001-01-01Z BC'
    AND greatest(as_of, started_at, finished_at) <= timestamptz '9999-12-31 23:59:59.999999Z'),
  CHECK (least(period_since, period_until) >= date '0001-01-01 BC'
    AND greatest(period_since, period_until) <= date '9999-12-30')
);
CREATE INDEX runs_as_of ON night_audit.runs (as_of);
CREATE INDEX runs_publishing ON night_audit.runs (run_id) WHERE publication = 'publishing';

-- Sign-offs of a run's report, remarks, deliveries to targets (detail), and that the run was forgotten. Append-only. The
-- lines of one sign-off have the change_id of the import that recorded them; undoes names the sign-off that is taken back.
CREATE TABLE night_audit.run_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  event text NOT NULL CHECK (event IN
    ('prepared_by', 'reviewed_by', 'signed_on', 'remark', 'undone', 'forgotten', 'delivered', 'withdrawn')),
  actor text NOT NULL, detail text, change_id uuid,
  undoes uuid
);
CREATE INDEX run_events_run ON night_audit.run_events (run_id, event_id);

-- Money of a run by currency and disposition: the source of the history chart.
CREATE TABLE night_audit.run_totals (
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  currency text COLLATE "C" NOT NULL, disposition text COLLATE "C" NOT NULL, orders bigint NOT NULL,
  amount numeric NOT NULL,
  PRIMARY KEY (run_id, currency, disposition)
);

-- Open findings of a night by kind and currency; the currency of findings without money is empty.
CREATE TABLE night_audit.run_findings (
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  kind text COLLATE "C" NOT NULL, severity text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL,
  findings bigint NOT NULL, at_stake numeric NOT NULL, at_stake_unknown bigint NOT NULL,
  PRIMARY KEY (run_id, kind, severity, currency)
);

-- Orders of a night's period that have a finding of a kind; 'refunds' counts refunds. The nights after it compare their
-- shares.
CREATE TABLE night_audit.run_kinds (
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  kind text COLLATE "C" NOT NULL, orders bigint NOT NULL,
  PRIMARY KEY (run_id, kind)
);

-- The days whose totals a nightly report contains: its own day, and each earlier day whose totals had changed.
-- Append-only; later nights compare with it and report prior-period adjustments.
CREATE TABLE night_audit.reported_days (
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE, day date NOT NULL, time_zone text NOT NULL,
  PRIMARY KEY (run_id, day)
);
CREATE INDEX reported_days_day ON night_audit.reported_days (day);

CREATE TABLE night_audit.reported_totals (
  run_id uuid NOT NULL, day date NOT NULL, currency text COLLATE "C" NOT NULL, disposition text COLLATE "C" NOT NULL,
  orders bigint NOT NULL, amount numeric NOT NULL,
  PRIMARY KEY (run_id, day, currency, disposition),
  FOREIGN KEY (run_id, day) REFERENCES night_audit.reported_days ON DELETE CASCADE
);

-- Receipt checks ------------------------------------------------------------------------------------------------------

-- One row for each question to Apple: a receipt, or a look-up of a transaction id that an order states without a
-- receipt. One Swift rule computes when and in which order a check is due; the queue, the count of due checks and
-- explain read its result here (due_from, due_until, due_rank).
CREATE TABLE night_audit.receipt_checks (
  subject_kind text COLLATE "C" NOT NULL CHECK (subject_kind IN ('receipt', 'lookup')),
  -- The shop's receipt id; of a look-up the bundle id, a slash and the transaction id.
  subject_id text COLLATE "C" NOT NULL,
  order_id text COLLATE "C", received_at timestamptz NOT NULL, app text,
  payload_kind text CHECK (payload_kind IN ('app', 'transaction', 'signed', 'malformed')),
  outcome text NOT NULL DEFAULT 'pending'
                        CHECK (outcome IN ('pending', 'verified', 'rejected', 'unanswered', 'review', 'not_found')),
  reason text, channel text, environment text, bundle_id text, apple_status integer, attempts integer NOT NULL DEFAULT 0,
  last_attempt timestamptz, due_from timestamptz, answered_at timestamptz, signed_transaction_id text COLLATE "C",
  failed_check text,
  -- The number of transactions that the proof contains.
  brought_count integer NOT NULL DEFAULT 0,
  -- Due before others: the shop's own verification failed or never happened.
  is_urgent boolean NOT NULL DEFAULT true,
  due_until timestamptz, due_rank integer NOT NULL DEFAULT 0,
  -- As-of of the run that read the receipt in its present form.
  known_since timestamptz NOT NULL DEFAULT now(),
  -- Whether an audit needs the answer and Apple can be asked.
  is_wanted boolean NOT NULL DEFAULT true,
  -- As-of of the run that got this outcome first; all answers since then were the same.
  outcome_since timestamptz,
  -- As-of of the first unanswered question since the last answer.
  unanswered_since timestamptz,
  -- As-of of the audit whose critical finding waits for the next answer.
  critical_since timestamptz,
  -- As-of of the run that opened the oldest accusation resting on the proof. Derived from findings, as of `accusations`.
  accused_since timestamptz,
  -- Payload, id and app when Apple was asked: the receipt is checked again after the shop corrects one of them.
  fingerprint text COLLATE "C",
  -- The kind of a refusal. A refusal is stored as `review` until the share of its kind in the night is known;
  -- deferred_outcome and deferred_reason then become its outcome.
  refusal text COLLATE "C",
  deferred_outcome text, deferred_reason text,
  -- The number of the worker that is asking. Its session keeps the advisory lock of that number while it lives.
  worker integer,
  -- As-of of the run that missed the receipt in the shop's relation. Some later nights look for it again, because a
  -- relation may be empty while it is loaded.
  gone_at timestamptz,
  -- The user of the order, or the sender of the receipt: the share of refusals is counted over persons.
  user_id text COLLATE "C",
  -- The signer of the receipt cannot be verified; Apple has confirmed the ids in it.
  is_unproven boolean NOT NULL DEFAULT false,
  -- The order of the receipt in the last complete night, if the run of the as-of `moved_since` found another one, or
  -- none. Null: it has the same order.
  order_before text COLLATE "C",
  moved_since timestamptz,
  PRIMARY KEY (subject_kind, subject_id)
) WITH (fillfactor = 80); -- Taking a check changes no indexed column: with room on its page the row stays there (HOT).
CREATE INDEX receipt_checks_order ON night_audit.receipt_checks (order_id);
CREATE INDEX receipt_checks_due ON night_audit.receipt_checks (due_rank, due_from, subject_kind, subject_id)
  WHERE due_from IS NOT NULL;
-- Receipts whose outcome a corrected app mapping could change.
CREATE INDEX receipt_checks_doubtful ON night_audit.receipt_checks (subject_id)
  WHERE subject_kind = 'receipt' AND outcome IN ('rejected', 'review', 'not_found');
CREATE INDEX receipt_checks_pending_refusals ON night_audit.receipt_checks (last_attempt)
  WHERE deferred_outcome <> 'review' AND outcome = 'review' AND reason = 'systemic';
CREATE INDEX receipt_checks_accused ON night_audit.receipt_checks (subject_kind, subject_id) WHERE accused_since IS NOT NULL;
CREATE INDEX receipt_checks_gone ON night_audit.receipt_checks (gone_at, subject_id) WHERE gone_at IS NOT NULL;

-- Orders that wait for a look-up. Two orders that state the same transaction id share one row of receipt_checks.
CREATE TABLE night_audit.lookups (
  order_id text COLLATE "C" PRIMARY KEY,
  subject_id text COLLATE "C" NOT NULL
);
CREATE INDEX lookups_subject ON night_audit.lookups (subject_id);

CREATE SEQUENCE night_audit.worker_numbers AS integer MAXVALUE 2000000000 CYCLE;

-- The end of each worker's leases, by the server's clock. A worker's session has taken the advisory lock of its number.
CREATE TABLE night_audit.workers (
  number bigint PRIMARY KEY,
  leased_until timestamptz NOT NULL
);

-- One rate for all workers: when the next request about an app may start, for each environment and Apple API.
CREATE TABLE night_audit.rates (
  app text COLLATE "C" NOT NULL, side text COLLATE "C" NOT NULL, interface text COLLATE "C" NOT NULL,
  next_turn timestamptz NOT NULL,
  PRIMARY KEY (app, side, interface)
) WITH (fillfactor = 50);

-- Why checks of an app were stopped or disregarded, by as-of: a later audit without requests reports the same.
CREATE TABLE night_audit.asking_faults (
  as_of timestamptz NOT NULL, app text COLLATE "C" NOT NULL, remedy text NOT NULL,
  PRIMARY KEY (as_of, app)
);

-- How far the shop's relations have been read (`receipts`, `orders`), how they are defined (`definition`), by which policy due
-- dates were computed (`policy`), before which as-of the accusations were open that due dates follow (`accusations`), and by
-- which root certificates and program version receipts were judged (`judge`).
CREATE TABLE night_audit.asking_state (
  key text COLLATE "C" PRIMARY KEY,
  value text NOT NULL
);

-- Evidence ------------------------------------------------------------------------------------------------------------

-- Every fact about a transaction, with its source and time. Append-only. One partition for each month (UTC) of
-- recorded_at: evidence.retention drops whole tables. keep_partitions creates the months ahead; the default partition
-- takes rows of a month without one. The columns follow Apple's JWSTransactionDecodedPayload. The trail covers the
-- columns of a row in their order: a later migration adds columns at the end and without a default.
CREATE TABLE night_audit.evidence (
  evidence_id bigint GENERATED ALWAYS AS IDENTITY,
  run_id uuid NOT NULL, as_of timestamptz NOT NULL, recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- The proof whose check gave the fact; null for facts from notifications and histories.
  subject_kind text COLLATE "C",
  subject_id text COLLATE "C", channel text NOT NULL, signed_at timestamptz NOT NULL, environment text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" NOT NULL, original_transaction_id text COLLATE "C",
  web_order_line_item_id text COLLATE "C", bundle_id text, product_id text COLLATE "C" NOT NULL, product_type text,
  quantity integer, purchased_at timestamptz, original_purchased_at timestamptz, expires_at timestamptz,
  grace_expires_at timestamptz, tells_revocation boolean NOT NULL, revoked_at timestamptz, revocation_percentage integer,
  revocation_type text, revocation_reason integer, price_milliunits bigint, currency text,
  tells_account_token boolean NOT NULL, app_account_token text, ownership text, is_renewal boolean, has_offer boolean,
  is_upgraded boolean, renewal_at timestamptz, subscription_status integer, consumption_request_reason text,
  revocation_of_some_items boolean, storefront text, app_transaction_id text, offer_type integer, offer_identifier text,
  subscription_group_identifier text, commitment_info text, billing_plan_type text, previous_original_transaction_id text,
  -- Apple's notice of a reversed refund implies that there was a refund.
  reverses_refund boolean,
  -- requested or declined, where Apple's notice is of a refund request.
  refund_request text,
  offer_period text, renewal_price_milliunits bigint, renewal_currency text,
  PRIMARY KEY (evidence_id, recorded_at),
  CHECK (channel IN ('verifyReceipt', 'serverApi', 'offline', 'notification')),
  CHECK (environment IN ('Production', 'Sandbox', 'Xcode', 'LocalTesting')),
  CHECK (least(as_of, signed_at, purchased_at, original_purchased_at, expires_at, grace_expires_at, revoked_at, renewal_at)
    >= timestamptz '0001-01-01Z BC'
    AND greatest(as_of, signed_at, purchased_at, original_purchased_at, expires_at, grace_expires_at, revoked_at, renewal_at)
    <= timestamptz '9999-12-31 23:59:59.999999Z')
) PARTITION BY RANGE (recorded_at);
CREATE INDEX evidence_transaction ON night_audit.evidence (transaction_id, environment);
CREATE TABLE night_audit.evidence_default PARTITION OF night_audit.evidence DEFAULT;

-- One row for each answer of Apple, with or without facts. Append-only, with partitions as in evidence. Subjects are proofs,
-- a type of notification of an app (sweep), the history of a customer (history), and the faults of an as-of (faults).
CREATE TABLE night_audit.answers (
  answer_id bigint GENERATED ALWAYS AS IDENTITY,
  run_id uuid NOT NULL, as_of timestamptz NOT NULL, recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  subject_kind text COLLATE "C" NOT NULL, subject_id text COLLATE "C" NOT NULL, channel text NOT NULL,
  outcome text NOT NULL, reason text, environment text, apple_status integer, facts integer NOT NULL,
  -- The newest row of evidence: facts of the answer have no later one.
  evidence_through bigint,
  -- Of a sweep or history: the instant up to which it is read from now on.
  read_until timestamptz,
  -- Of a first answer the kind of its refusal, empty for an accepted one; null for a repeated answer.
  counted_as text COLLATE "C",
  -- Of a sweep or history, or of the faults of an as-of: progress_digest after the transaction.
  progress text COLLATE "C",
  PRIMARY KEY (answer_id, recorded_at),
  -- The as-of of faults, in microseconds.
  CHECK (subject_kind <> 'faults' OR subject_id ~ '^-?[0-9]{1,17}$'),
  CHECK (least(as_of, read_until) >= timestamptz '0001-01-01Z BC'
    AND greatest(as_of, read_until) <= timestamptz '9999-12-31 23:59:59.999999Z')
) PARTITION BY RANGE (recorded_at);
CREATE INDEX answers_run ON night_audit.answers (run_id, evidence_through);
CREATE INDEX answers_subject ON night_audit.answers (subject_kind, subject_id);
-- The share of refusals is counted over the first answers of some nights.
CREATE INDEX answers_counted ON night_audit.answers (as_of) WHERE counted_as IS NOT NULL;
CREATE TABLE night_audit.answers_default PARTITION OF night_audit.answers DEFAULT;

-- evidence.retention and report.retention, as `night-audit init` recorded them for the owner of the schema; null or no
-- row: nothing is removed.
CREATE TABLE night_audit.retention (
  evidence interval,
  reports interval
);
CREATE UNIQUE INDEX retention_one ON night_audit.retention ((true));

-- Transactions --------------------------------------------------------------------------------------------------------

-- The fold of the evidence, one row for each transaction; `rebuild` computes it again. Which order owns a transaction
-- is not stored here: each audit derives it from orders and evidence.
CREATE TABLE night_audit.transactions (
  environment text COLLATE "C" NOT NULL, transaction_id text COLLATE "C" NOT NULL, original_transaction_id text COLLATE "C",
  web_order_line_item_id text COLLATE "C", bundle_id text, product_id text COLLATE "C" NOT NULL, product_type text,
  quantity integer, purchased_at timestamptz, original_purchased_at timestamptz, expires_at timestamptz,
  subscription_expires_at timestamptz, revoked_at timestamptz, revocation_percentage integer, revocation_type text,
  revocation_reason integer, revocation_withdrawn_at timestamptz, price_milliunits bigint, currency text,
  tells_account_token boolean NOT NULL, app_account_token text, ownership text, is_renewal boolean, has_offer boolean,
  is_upgraded boolean, is_contradictory boolean NOT NULL, channel text NOT NULL, signed_at timestamptz NOT NULL,
  checked_at timestamptz, first_signed_at timestamptz, renewal_at timestamptz, subscription_status integer,
  subscription_status_at timestamptz, consumption_request_reason text, revocation_of_some_items boolean, storefront text,
  app_transaction_id text, offer_type integer, offer_identifier text, subscription_group_identifier text,
  commitment_info text, billing_plan_type text, previous_original_transaction_id text, revocation_told_at timestamptz,
  refund_requested_at timestamptz, refund_declined_at timestamptz, notified_at timestamptz,
  PRIMARY KEY (transaction_id, environment)
);
-- Periods of subscriptions: those with one web_order_line_item_id are one purchase.
CREATE INDEX transactions_subscription
  ON night_audit.transactions (original_transaction_id, environment, web_order_line_item_id) WHERE expires_at IS NOT NULL;
-- Parts of subscription bundles, which have no price, by the bundle's transaction ID, for explanations of one order.
CREATE INDEX transactions_bundle ON night_audit.transactions (web_order_line_item_id)
  WHERE expires_at IS NOT NULL AND coalesce(price_milliunits, 0) = 0;
-- Restores by the original purchase: an order that claims one claims the other.
CREATE INDEX transactions_restores ON night_audit.transactions (original_transaction_id, environment)
  WHERE original_transaction_id <> transaction_id AND is_renewal IS NOT TRUE AND expires_at IS NULL;
-- Transactions by account token, for explanations of one order.
CREATE INDEX transactions_token ON night_audit.transactions (replace(lower(app_account_token), '-', '') COLLATE "C")
  WHERE app_account_token IS NOT NULL;
-- Upgraded transactions without a known successor: the customer's history is read.
CREATE INDEX transactions_upgraded ON night_audit.transactions (original_transaction_id) WHERE is_upgraded;
-- Refunds and reversed refunds are few; an audit reads those after its as-of separately.
CREATE INDEX transactions_revoked ON night_audit.transactions (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX transactions_withdrawn ON night_audit.transactions (revocation_withdrawn_at)
  WHERE revocation_withdrawn_at IS NOT NULL;

-- Transactions that each proof contains.
CREATE TABLE night_audit.receipt_transactions (
  subject_kind text COLLATE "C" NOT NULL, subject_id text COLLATE "C" NOT NULL, environment text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (subject_kind, subject_id, transaction_id, environment)
);
CREATE INDEX receipt_transactions_transaction ON night_audit.receipt_transactions (transaction_id, environment);

-- Owners of transactions by the newest run over all orders, for people and BI tools. No audit reads it.
CREATE TABLE night_audit.claims (
  environment text COLLATE "C" NOT NULL, transaction_id text COLLATE "C" NOT NULL, order_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (transaction_id, environment)
);
CREATE INDEX claims_order ON night_audit.claims (order_id);

-- Sweeps --------------------------------------------------------------------------------------------------------------

-- How far Apple's notification history is known, one row for each app, environment and type of notification.
CREATE TABLE night_audit.sweeps (
  bundle_id text COLLATE "C" NOT NULL, environment text COLLATE "C" NOT NULL, notification_type text COLLATE "C" NOT NULL,
  swept_until timestamptz,
  -- As-of of the last attempt, and why it fell short; null when it did not.
  last_attempt timestamptz NOT NULL,
  reason text,
  -- The window that is being read.
  window_start timestamptz,
  window_end timestamptz,
  PRIMARY KEY (bundle_id, environment, notification_type)
);

-- Who sweeps an app. The sweeper's session has taken the advisory lock of its number. The lease ends with that session, or
-- at `leased_until` by the server's clock, because a stopped process keeps its session.
CREATE TABLE night_audit.sweepers (
  bundle_id text COLLATE "C" PRIMARY KEY, number bigint NOT NULL,
  leased_until timestamptz NOT NULL
);

-- The unread parts of a window, which are read in parallel, each page by page. A pagination token is valid for one part
-- only.
CREATE TABLE night_audit.sweep_slices (
  bundle_id text COLLATE "C" NOT NULL, environment text COLLATE "C" NOT NULL, notification_type text COLLATE "C" NOT NULL,
  slice_start timestamptz NOT NULL, slice_end timestamptz NOT NULL, pagination_token text,
  PRIMARY KEY (bundle_id, environment, notification_type, slice_start),
  FOREIGN KEY (bundle_id, environment, notification_type) REFERENCES night_audit.sweeps ON DELETE CASCADE
);

-- Times that Apple's notification history no longer covered when the sweep came to them, and the as-of of the run that
-- found that out.
CREATE TABLE night_audit.sweep_gaps (
  bundle_id text COLLATE "C" NOT NULL, environment text COLLATE "C" NOT NULL, notification_type text COLLATE "C" NOT NULL,
  gap_start timestamptz NOT NULL, gap_end timestamptz NOT NULL, as_of timestamptz NOT NULL,
  PRIMARY KEY (bundle_id, environment, notification_type, gap_start)
);

-- Notifications in Apple's history whose signature does not verify, each once, as they were received.
CREATE TABLE night_audit.disbelieved_notifications (
  bundle_id text COLLATE "C" NOT NULL, notification_type text COLLATE "C" NOT NULL, digest text COLLATE "C" NOT NULL,
  as_of timestamptz NOT NULL, reason text NOT NULL, payload text NOT NULL,
  -- As-of of the run that skipped the notification. The first report published after it mentions the skip. Null: the
  -- whole page was rejected, and the sweep did not move.
  passed_over_at timestamptz,
  PRIMARY KEY (bundle_id, notification_type, digest)
);

-- How far a customer's transaction history is known, one row for each transaction id that it was requested by.
CREATE TABLE night_audit.histories (
  bundle_id text COLLATE "C" NOT NULL, environment text COLLATE "C" NOT NULL, transaction_id text COLLATE "C" NOT NULL,
  revision text, read_at timestamptz, last_attempt timestamptz NOT NULL, reason text, passed_over_at timestamptz,
  unanswered_since timestamptz,
  PRIMARY KEY (bundle_id, environment, transaction_id)
);

-- Findings ------------------------------------------------------------------------------------------------------------

-- Findings continue from night to night. opened_at and closed_at are as-of instants.
CREATE TABLE night_audit.findings (
  -- Derived from kind, kind of subject and subject: order 17, delivery 17 and receipt 17 are three subjects.
  finding_id text COLLATE "C" PRIMARY KEY,
  kind text NOT NULL, severity text NOT NULL, subject text COLLATE "C" NOT NULL, order_id text COLLATE "C",
  user_id text COLLATE "C", product_id text COLLATE "C", bundle_id text, transaction_id text COLLATE "C",
  receipt_id text COLLATE "C", delivery_id text COLLATE "C", environment text, currency text, amount numeric,
  at_stake numeric, reason text NOT NULL, first_seen timestamptz NOT NULL, opened_at timestamptz NOT NULL,
  last_seen timestamptz NOT NULL, closed_at timestamptz, status text NOT NULL DEFAULT 'open', owner text, remark text,
  paid_at timestamptz, delivered_at timestamptz, subject_kind text NOT NULL, occurred_at timestamptz,
  at_stake_unknown boolean NOT NULL DEFAULT false, due date,
  -- How far the status accepted goes: until YYYY-MM-DD, amount 50.00, or both.
  acceptance text,
  app text, country text, business_day text,
  -- What a job of the shop may do, as in actions.json. With the end of the subscription it decides the suggested action.
  action text NOT NULL DEFAULT 'look',
  subscription_expires_at timestamptz
);
CREATE INDEX findings_open ON night_audit.findings (finding_id) WHERE closed_at IS NULL;
CREATE INDEX findings_closed ON night_audit.findings (closed_at) WHERE closed_at IS NOT NULL;

-- The history of findings: changes by nights and by people. Append-only.
CREATE TABLE night_audit.finding_events (
  event_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  finding_id text COLLATE "C" NOT NULL, as_of timestamptz NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(), run_id uuid,
  event text NOT NULL CHECK (event IN
    ('opened', 'reopened', 'kept_open', 'changed', 'closed', 'forgotten', 'status', 'owner', 'remark', 'due',
     'acceptance', 'returned')),
  actor text,
  -- Another value could not be a due date in findings.
  detail text CHECK (event <> 'due' OR detail = detail::date::text),
  change_id uuid, before text, undoes uuid,
  -- SHA-256 of the finding's kind, severity, money and texts as the run stored them; null: they stayed.
  digest text COLLATE "C",
  -- Decisions are of people, other events of runs. A run sets the owner of a new finding.
  CHECK (num_nonnulls(run_id, actor) = 1 AND CASE WHEN event IN ('status', 'remark', 'due', 'acceptance')
    THEN actor IS NOT NULL ELSE event = 'owner' OR run_id IS NOT NULL END),
  CHECK (as_of BETWEEN timestamptz '0001-01-01Z BC' AND timestamptz '9999-12-31 23:59:59.999999Z')
);
CREATE INDEX finding_events_finding ON night_audit.finding_events (finding_id, event_id);
CREATE INDEX finding_events_people ON night_audit.finding_events (as_of) WHERE actor IS NOT NULL;
CREATE INDEX finding_events_change ON night_audit.finding_events (change_id) WHERE change_id IS NOT NULL;

-- The runs that decided which findings are open. The newest of them met every open finding, so that a night does not
-- have to update findings that did not change.
CREATE TABLE night_audit.findings_met (
  run_id uuid PRIMARY KEY REFERENCES night_audit.runs ON DELETE CASCADE,
  as_of timestamptz NOT NULL
);
CREATE INDEX findings_met_as_of ON night_audit.findings_met (as_of);

-- Orders and findings as complete nights decided them, for comparing two nights and for bi_orders. No audit reads them
-- as facts. A row is valid from its as-of until the next row of the same id: nights write differences only.
CREATE TABLE night_audit.order_nights (
  order_id text COLLATE "C" NOT NULL, as_of timestamptz NOT NULL,
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  user_id text COLLATE "C", product_id text COLLATE "C", currency text, amount numeric, created_at timestamptz NOT NULL,
  -- Null: the shop no longer has the order; the row then has no amount.
  disposition text,
  environment text,
  -- Whether the buyer in the sandbox is on audit.testUsers; null outside of the sandbox.
  is_allowed boolean,
  app text, country text, business_day date,
  PRIMARY KEY (order_id, as_of)
);
CREATE INDEX order_nights_run ON night_audit.order_nights (run_id);
CREATE INDEX order_nights_created ON night_audit.order_nights (created_at);

-- Refunds as complete nights reported them, for comparing two nights and for bi_refunds. No audit reads them as facts. A
-- row is valid until the next row of the same ID, as in order_nights.
CREATE TABLE night_audit.refund_nights (
  transaction_id text COLLATE "C" NOT NULL, as_of timestamptz NOT NULL,
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE, order_id text COLLATE "C",
  user_id text COLLATE "C", product_id text COLLATE "C", currency text, refunded numeric, milli_percent integer,
  -- Null: Apple has withdrawn the refund, or the purchase is reported under another transaction ID.
  refunded_at timestamptz,
  reason text, app text, country text, business_day date,
  PRIMARY KEY (transaction_id, as_of)
);
CREATE INDEX refund_nights_run ON night_audit.refund_nights (run_id);

CREATE TABLE night_audit.finding_nights (
  finding_id text COLLATE "C" NOT NULL, as_of timestamptz NOT NULL,
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  is_open boolean NOT NULL, status text NOT NULL, currency text, at_stake numeric,
  PRIMARY KEY (finding_id, as_of)
);
CREATE INDEX finding_nights_run ON night_audit.finding_nights (run_id);

-- The journal: entries for the ledger, posted by nights and never edited. A fact that changes posts a reversal and a new
-- entry. A night that is made again for the same as-of posts its entries again.
CREATE TABLE night_audit.journal_entries (
  subject text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('sale', 'refund', 'commission', 'tax', 'payout')),
  version integer NOT NULL, is_reversal boolean NOT NULL,
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  as_of timestamptz NOT NULL, posted_for date NOT NULL, event_day date NOT NULL, currency text NOT NULL,
  amount numeric NOT NULL, app text, transaction_id text COLLATE "C", service_from date, service_until date,
  PRIMARY KEY (subject, kind, version, is_reversal)
);
CREATE INDEX journal_entries_posted ON night_audit.journal_entries (posted_for);
CREATE INDEX journal_entries_run ON night_audit.journal_entries (run_id);

-- Deliveries of reports -------------------------------------------------------------------------------------------------

-- One row for each report and each target of report.deliver. It is written in the transaction of the run, before the
-- report appears, so that the next night sends the reports that this night could not send.
CREATE TABLE night_audit.dispatches (
  dispatch_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_id uuid NOT NULL REFERENCES night_audit.runs ON DELETE CASCADE,
  target text COLLATE "C" NOT NULL, directory text COLLATE "C" NOT NULL,
  -- withdrawn: there is nothing left to send; problem has the reason.
  state text NOT NULL DEFAULT 'owed' CHECK (state IN ('owed', 'delivered', 'withdrawn')),
  attempts integer NOT NULL DEFAULT 0, problem text, content text, queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at timestamptz
);
CREATE INDEX dispatches_owed ON night_audit.dispatches (dispatch_id) WHERE state = 'owed';
CREATE INDEX dispatches_place ON night_audit.dispatches (directory, target, dispatch_id);

-- Apple's sales and finance reports -----------------------------------------------------------------------------------

-- One row for each download, whatever its result. Append-only, except that raw files are removed after their retention.
CREATE TABLE night_audit.connect_reports (
  report_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  vendor text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('SALES', 'FINANCIAL', 'FINANCE_DETAIL')),
  -- DAILY, WEEKLY, MONTHLY or YEARLY; empty for finance reports.
  frequency text COLLATE "C" NOT NULL,
  -- The day or month, or the fiscal period: 2026-11-19, 2026-11, 2027-02.
  name text COLLATE "C" NOT NULL,
  version text,
  source text NOT NULL CHECK (source IN ('api', 'folder')),
  -- The as-of of the run that stored it, or just after a later night, which did not have it.
  file_name text, as_of timestamptz NOT NULL, recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  state text NOT NULL CHECK (state IN ('reported', 'zero', 'doubtful_zero', 'pending', 'gone', 'drift',
                                             'unreadable', 'unknown')),
  http_status integer, digest text, detail text,
  raw bytea
);
CREATE INDEX connect_reports_name ON night_audit.connect_reports (kind, frequency, name, vendor);

-- Rows of sales reports, summed by the keys of the tie-out. A sum may have several rows. Days count from 1970-01-01.
CREATE TABLE night_audit.connect_sales (
  report_id bigint NOT NULL REFERENCES night_audit.connect_reports ON DELETE CASCADE,
  day integer NOT NULL, sku text COLLATE "C" NOT NULL, parent text COLLATE "C" NOT NULL, type text COLLATE "C" NOT NULL,
  country text COLLATE "C" NOT NULL, customer_currency text COLLATE "C" NOT NULL,
  proceeds_currency text COLLATE "C" NOT NULL, customer_price numeric NOT NULL, developer_proceeds numeric NOT NULL,
  sign integer NOT NULL, is_renewal boolean NOT NULL, units numeric NOT NULL,
  rows bigint NOT NULL
);
CREATE INDEX connect_sales_report ON night_audit.connect_sales (report_id);

CREATE TABLE night_audit.connect_settlements (
  report_id bigint NOT NULL REFERENCES night_audit.connect_reports ON DELETE CASCADE,
  transaction_day integer, settlement_day integer, sku text COLLATE "C" NOT NULL, country text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL, partner_share numeric NOT NULL, quantity numeric NOT NULL,
  extended_share numeric NOT NULL
);
CREATE INDEX connect_settlements_report ON night_audit.connect_settlements (report_id);

CREATE TABLE night_audit.tie_outs (
  tie_out_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  as_of timestamptz NOT NULL, recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  first_day text COLLATE "C" NOT NULL, last_day text COLLATE "C" NOT NULL, complete boolean NOT NULL,
  incomplete_reasons text[] NOT NULL,
  notes text[] NOT NULL
);

-- The result of the tie-outs by key and as-of; rows of days that have left the window remain. A tie-out of an earlier
-- as-of does not replace the rows of a later one.
CREATE TABLE night_audit.tie_out_rows (
  level text COLLATE "C" NOT NULL, app text COLLATE "C" NOT NULL, product_id text COLLATE "C" NOT NULL,
  day text COLLATE "C" NOT NULL, country text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL,
  class text COLLATE "C" NOT NULL, apple numeric, ours numeric, shop numeric, difference numeric, not_reported numeric,
  other_scope numeric, free numeric, restore numeric, timing numeric, refund_timing numeric, refund_unknown numeric,
  partial_refund numeric, upgrade numeric, renewal numeric, country_unknown numeric, price numeric, rounding numeric,
  unknown_product numeric, unexplained numeric,
  -- Part of the unexplained: units of orders whose payment is not confirmed yet.
  awaited numeric, as_of timestamptz NOT NULL,
  PRIMARY KEY (level, app, product_id, day, country, currency, class, as_of)
);
CREATE INDEX tie_out_rows_day ON night_audit.tie_out_rows (day);

CREATE TABLE night_audit.tie_out_periods (
  fiscal_period text COLLATE "C" NOT NULL, currency text COLLATE "C" NOT NULL, sales_proceeds numeric, open_at_end numeric,
  settled_from_before numeric, never_collected numeric, settled numeric, difference numeric, gross numeric,
  commission numeric, tax numeric, as_of timestamptz NOT NULL,
  PRIMARY KEY (fiscal_period, currency, as_of)
);

-- The trail -----------------------------------------------------------------------------------------------------------

-- A chain of entries over everything that is append-only: evidence, answers, finding events, run events, and runs. Each
-- entry covers the entry before it, all rows that were appended since then, and the row of a run; `night-audit verify`
-- computes the whole chain again.
CREATE TABLE night_audit.trail (
  entry_id bigint PRIMARY KEY, previous text NOT NULL, content text NOT NULL,
  -- SHA-256 of `previous`, a line feed and `content`.
  hash text COLLATE "C" NOT NULL UNIQUE
);
-- The months that were released: each fold of evidence asks for the newest one.
CREATE INDEX trail_released ON night_audit.trail (entry_id) WHERE content LIKE '%"kind": "released"%';

-- Functions of the trail ----------------------------------------------------------------------------------------------

-- Digests of the rows of a table after one id and through another, in the order of ids: one segment for each sequence
-- of rows with the same month (UTC) of recorded_at, so that the rest can be verified after months are dropped. A row
-- counts as its columns in binary form. That form has texts in the client's encoding, so each function that computes a
-- digest sets SQL_ASCII, which stands for the encoding of the database.
CREATE FUNCTION night_audit.trail_segments(
  relation text, key text, columns text, after_id bigint, through_id bigint, before_month date DEFAULT NULL)
RETURNS jsonb LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp SET client_encoding = 'SQL_ASCII' AS $$
DECLARE
  entry record; segments jsonb := '[]'; digest bytea; rows bigint := 0; first_id bigint; last_id bigint; month date;
BEGIN
  FOR entry IN EXECUTE format(
    'SELECT %1$I AS id, date_trunc(''month'', recorded_at AT TIME ZONE ''UTC'')::date AS month,
       sha256(record_send(ROW(%2$s))) AS image
     FROM night_audit.%3$I WHERE %1$I > $1 AND %1$I <= $2
       AND ($3 IS NULL OR recorded_at < $3::timestamp AT TIME ZONE ''UTC'') ORDER BY %1$I', key, columns, relation)
    USING after_id, through_id, before_month
  LOOP
    IF rows > 0 AND (entry.month <> month AND before_month IS NULL) THEN
      segments := segments || jsonb_build_object('table', relation, 'month', to_char(month, 'YYYY-MM'), 'first', first_id,
        'last', last_id, 'rows', rows, 'digest', encode(digest, 'hex'));
      rows := 0;
    END IF;
    IF rows = 0 THEN
      first_id := entry.id; month := entry.month; digest := '';
    END IF;
    rows := rows + 1; last_id := entry.id; digest := sha256(digest || entry.image);
  END LOOP;
  IF rows > 0 THEN
    segments := segments || jsonb_build_object('table', relation, 'month', to_char(month, 'YYYY-MM'), 'first', first_id,
      'last', last_id, 'rows', rows, 'digest', encode(digest, 'hex'));
  END IF;
  RETURN segments;
END $$;

-- The columns of a table that the trail covers, as SQL; heartbeats only show that a process is alive. Entries contain
-- the text, so it does not depend on the caller's quote_all_identifiers.
CREATE FUNCTION night_audit.trail_columns(relation text) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
  SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
  WHERE attrelid = ('night_audit.' || quote_ident(relation))::regclass AND attnum > 0 AND NOT attisdropped
    AND attname NOT LIKE 'heartbeat%'
$$;

-- Digests of the rows that a run left for later nights, by table; of order_nights one for each day (UTC) of the
-- orders, because orders that leave the lookback are dropped. A table without rows has none.
CREATE FUNCTION night_audit.night_digests(run uuid) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET client_encoding = 'SQL_ASCII' AS $$
DECLARE
  relation text; image bytea; digests jsonb;
BEGIN
  SELECT coalesce(jsonb_object_agg('order_nights ' || day, encode(sha256(images), 'hex')), '{}') INTO digests FROM (
    SELECT coalesce(to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), 'never') AS day,
      string_agg(sha256(record_send(t)), ''::bytea ORDER BY t.order_id) AS images
    FROM night_audit.order_nights t WHERE t.run_id = run GROUP BY 1) days;
  FOREACH relation IN ARRAY ARRAY['findings_met', 'finding_nights', 'journal_entries', 'refund_nights', 'run_totals',
    'run_findings', 'run_kinds', 'reported_days', 'reported_totals', 'dispatches']
  LOOP
    EXECUTE format('SELECT sha256(string_agg(image, ''''::bytea ORDER BY image)) FROM (
        SELECT sha256(record_send(%s)) AS image FROM night_audit.%I t WHERE t.run_id = $1) rows',
      CASE relation WHEN 'dispatches' THEN 'ROW(t.dispatch_id, t.target, t.directory)' ELSE 't' END, relation)
      INTO image USING run;
    digests := digests || jsonb_strip_nulls(jsonb_build_object(relation, encode(image, 'hex')));
  END LOOP;
  RETURN digests;
END $$;

-- Digests of whole tables, by table, over their rows in the order of the primary key. Rows of these tables belong to no run:
-- each run that writes such a table replaces some of them.
CREATE FUNCTION night_audit.table_digests(relations text[]) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET client_encoding = 'SQL_ASCII' AS $$
DECLARE
  relation text; keys text; image bytea; digest bytea; digests jsonb := '{}';
BEGIN
  FOREACH relation IN ARRAY relations LOOP
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY k.place) INTO keys
    FROM pg_index i CROSS JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY k (attnum, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indrelid = format('night_audit.%I', relation)::regclass AND i.indisprimary;
    digest := '';
    FOR image IN EXECUTE format('SELECT sha256(record_send(t)) FROM night_audit.%I t ORDER BY %s', relation, keys) LOOP
      digest := sha256(digest || image);
    END LOOP;
    digests := digests || jsonb_build_object(relation, encode(digest, 'hex'));
  END LOOP;
  RETURN digests;
END $$;

-- SHA-256 of the state that a sweep, the reading of a history, or the questions of an as-of left for later runs; empty
-- if there is none. Each transaction that changes such a state stores its digest in `answers`.
CREATE FUNCTION night_audit.progress_digest(kind text, subject text) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET client_encoding = 'SQL_ASCII' AS $$
DECLARE
  bundle text := split_part(subject, '/', 1);
  item text := substr(subject, length(split_part(subject, '/', 1)) + 2);
  images bytea;
BEGIN
  IF kind = 'sweep' THEN
    SELECT string_agg(image, ''::bytea ORDER BY part, image) INTO images FROM (
      SELECT 1 AS part, sha256(record_send(t)) AS image FROM night_audit.sweeps t
      WHERE t.bundle_id = bundle AND t.environment = 'Production' AND t.notification_type = item
      UNION ALL
      SELECT 2, sha256(record_send(t)) FROM night_audit.sweep_slices t
      WHERE t.bundle_id = bundle AND t.environment = 'Production' AND t.notification_type = item
      UNION ALL
      SELECT 3, sha256(record_send(t)) FROM night_audit.sweep_gaps t
      WHERE t.bundle_id = bundle AND t.environment = 'Production' AND t.notification_type = item
      UNION ALL
      SELECT 4, sha256(record_send(ROW(t.digest, t.as_of, t.passed_over_at)))
      FROM night_audit.disbelieved_notifications t WHERE t.bundle_id = bundle AND t.notification_type = item) parts;
  ELSIF kind = 'history' THEN
    SELECT record_send(ROW(t.revision, t.read_at, t.passed_over_at)) INTO images FROM night_audit.histories t
    WHERE t.bundle_id = bundle AND t.environment = 'Production' AND t.transaction_id = item
      AND num_nonnulls(t.revision, t.read_at, t.passed_over_at) > 0;
  ELSIF kind = 'faults' AND subject ~ '^-?[0-9]{1,17}$' THEN
    SELECT string_agg(sha256(record_send(t)), ''::bytea ORDER BY t.app) INTO images FROM night_audit.asking_faults t
    WHERE t.as_of = timestamptz 'epoch' + subject::bigint * interval '1 microsecond';
  END IF;
  RETURN coalesce(encode(sha256(images), 'hex'), '');
END $$;

-- Appends an entry over the rows that were appended since the last one, and over a run as it is now; returns its hash.
--
-- marks: through which id each table is covered; a table without a mark is left for the next entry. Null: all rows,
-- with locks against unfinished appends. The locks are taken in one order: people's (5), answers' (2), the trail's (6).
-- more: keys of the entry's kind. It cannot replace keys that every entry has.
--
-- It runs with the caller's rights, and only the schema's owner may insert into the trail. Roles that run nights append
-- entries by the functions below, which determine the content.
CREATE FUNCTION night_audit.append_trail(
  kind text, run uuid, marks jsonb DEFAULT NULL, more jsonb DEFAULT '{}')
RETURNS text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_encoding = 'SQL_ASCII'
SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  before record; relation text; key text; old_mark bigint; new_mark bigint; segments jsonb; appended jsonb := '[]';
  columns jsonb := '{}'; covered jsonb; image text; report text; content text; number bigint; result text;
BEGIN
  IF kind IS NULL OR more IS NULL OR kind NOT IN ('start', 'found', 'began', 'asked', 'completed', 'published',
    'not_published', 'held', 'ended', 'forgotten', 'before_release', 'released', 'removed', 'adopted', 'tied_out') THEN
    RAISE EXCEPTION 'the trail has no entries of the kind %', coalesce(kind, 'null') USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- A snapshot from before the locks would miss rows that the entry is said to cover.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'entries of the trail are appended in READ COMMITTED' USING ERRCODE = 'invalid_transaction_state';
  END IF;
  -- A run that wrote claims has said so. No other run may change them, so that nobody waits for their digest.
  IF kind = 'completed' AND current_setting('night_audit.claims', true) = 'written' THEN
    more := more || jsonb_build_object('tables', night_audit.table_digests('{claims}'));
  END IF;
  IF marks IS NULL THEN
    PERFORM pg_advisory_xact_lock(1852401512, 5);
    PERFORM pg_advisory_xact_lock(1852401512, 2);
  END IF;
  PERFORM pg_advisory_xact_lock(1852401512, 6);
  SELECT t.entry_id, t.hash, t.content::jsonb -> 'marks' AS marks INTO before
  FROM night_audit.trail t ORDER BY t.entry_id DESC LIMIT 1;
  number := coalesce(before.entry_id, 0) + 1;
  covered := coalesce(before.marks, '{}');
  FOR relation, key IN
    SELECT * FROM (VALUES ('evidence', 'evidence_id'), ('answers', 'answer_id'), ('finding_events', 'event_id'),
      ('run_events', 'event_id')) chained (relation, key)
  LOOP
    old_mark := coalesce((covered ->> relation)::bigint, -9223372036854775808);
    IF marks IS NULL THEN
      EXECUTE format('SELECT max(%I) FROM night_audit.%I', key, relation) INTO new_mark;
    ELSE
      new_mark := (marks ->> relation)::bigint;
    END IF;
    CONTINUE WHEN new_mark IS NULL OR new_mark <= old_mark;
    segments := night_audit.trail_segments(
      relation, key, night_audit.trail_columns(relation), old_mark, new_mark);
    appended := appended || segments;
    columns := columns || jsonb_build_object(relation, night_audit.trail_columns(relation));
    covered := covered || jsonb_build_object(relation, new_mark);
  END LOOP;
  -- Most rechecks of a busy day append nothing.
  IF kind = 'asked' AND appended = '[]' THEN
    RETURN before.hash;
  END IF;
  IF run IS NOT NULL THEN
    EXECUTE format('SELECT encode(sha256(record_send(ROW(%s))), ''hex''), r.content FROM night_audit.runs r
      WHERE run_id = $1', night_audit.trail_columns('runs')) INTO image, report USING run;
    IF image IS NOT NULL THEN
      columns := columns || jsonb_build_object('runs', night_audit.trail_columns('runs'));
    END IF;
  END IF;
  IF kind = 'completed' THEN
    more := more || jsonb_strip_nulls(jsonb_build_object('nights', night_audit.night_digests(run),
      'nights_from', (SELECT to_char(min(created_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM night_audit.order_nights)));
  END IF;
  content := ((more - ARRAY['run', 'row', 'report']) || jsonb_strip_nulls(jsonb_build_object(
    'entry', number, 'kind', kind, 'run', run, 'at', to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'row', image, 'report', report, 'appended', appended, 'columns', columns, 'marks', covered)))::text;
  result := encode(sha256(convert_to(coalesce(before.hash, '') || E'\n' || content, 'UTF8')), 'hex');
  INSERT INTO night_audit.trail VALUES (number, coalesce(before.hash, ''), content, result);
  RETURN result;
END $$;

-- Fills in columns of a run. guard_run decides which ones may be filled in, record_run appends the run to the trail.
CREATE FUNCTION night_audit.write_run(run uuid, changes jsonb) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE night_audit.runs r SET finished_at = n.finished_at, complete = n.complete,
    incomplete_reasons = n.incomplete_reasons, orders_read = n.orders_read, findings_opening = n.findings_opening,
    findings_new = n.findings_new, findings_closed = n.findings_closed, findings_closing = n.findings_closing,
    directory = n.directory, exit_status = n.exit_status, publication = n.publication, content = n.content,
    held_because = n.held_because, lookback_orders = n.lookback_orders, lookback_deliveries = n.lookback_deliveries,
    newest_event = n.newest_event, summary = n.summary, feed_coverage = n.feed_coverage,
    journal_since = n.journal_since
  FROM night_audit.runs o CROSS JOIN LATERAL jsonb_populate_record(o, changes) n
  WHERE r.run_id = run AND o.run_id = run;
END $$;

-- Appends each change of a run to the trail. The kind of the entry follows from the change alone.
CREATE FUNCTION night_audit.record_run() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- It runs with the rights of the schema's owner: for another table it could write entries that describe no run.
  IF TG_RELID <> 'night_audit.runs'::regclass OR TG_OP NOT IN ('INSERT', 'UPDATE') THEN
    RAISE EXCEPTION 'only changes of night_audit.runs are recorded' USING ERRCODE = 'restrict_violation';
  END IF;
  IF TG_OP = 'INSERT' THEN
    PERFORM night_audit.append_trail('began', NEW.run_id);
  ELSIF NEW.publication IS DISTINCT FROM OLD.publication THEN
    PERFORM night_audit.append_trail(
      CASE NEW.publication WHEN 'publishing' THEN 'completed' ELSE NEW.publication END, NEW.run_id);
  ELSIF NEW IS DISTINCT FROM OLD THEN
    PERFORM night_audit.append_trail('ended', NEW.run_id);
  END IF;
  RETURN NULL;
END $$;

-- Appends an entry over Apple's answers until now. Other workers go on asking meanwhile: they wait only until the
-- newest row is known, which is why the lock belongs to the session.
CREATE FUNCTION night_audit.cover_answers(run uuid) RETURNS void LANGUAGE plpgsql STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  marks jsonb;
BEGIN
  PERFORM pg_advisory_lock(1852401512, 2);
  BEGIN
    marks := jsonb_build_object('evidence', (SELECT max(evidence_id) FROM night_audit.evidence),
      'answers', (SELECT max(answer_id) FROM night_audit.answers));
  EXCEPTION WHEN query_canceled OR OTHERS THEN
    PERFORM pg_advisory_unlock(1852401512, 2);
    RAISE;
  END;
  PERFORM pg_advisory_unlock(1852401512, 2);
  PERFORM night_audit.append_trail('asked', run, marks);
END $$;

-- Records which report folders, by their paths below the report directory, are about to be removed, and returns them.
-- Every writer may call it, so it leaves out folders of a run within the recorded retention. A held report may also be
-- removed when a report of its night has appeared.
CREATE FUNCTION night_audit.record_removed(folders text[]) RETURNS text[] LANGUAGE plpgsql STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  expired text[];
BEGIN
  SELECT coalesce(array_agg(f.folder ORDER BY f.folder), '{}') INTO expired FROM unnest(folders) f (folder)
  WHERE f.folder <> '' AND NOT EXISTS (
    SELECT FROM night_audit.runs r
    WHERE right(r.directory, length(f.folder) + 1) = '/' || f.folder AND r.publication IN ('publishing', 'published', 'held')
      AND NOT EXISTS (SELECT FROM night_audit.retention t WHERE r.as_of < now() - t.reports)
      AND NOT (r.publication = 'held' AND EXISTS (SELECT FROM night_audit.runs p
        WHERE p.publication = 'published' AND p.is_nightly AND p.period_until = r.period_until AND p.as_of >= r.as_of)));
  IF expired <> '{}' THEN
    PERFORM night_audit.append_trail('removed', NULL, '{}', jsonb_build_object('folders', expired));
  END IF;
  RETURN expired;
END $$;

CREATE FUNCTION night_audit.record_adopted(runs uuid[]) RETURNS void LANGUAGE plpgsql STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM night_audit.append_trail('adopted', NULL, '{}', jsonb_build_object('runs', array_remove(runs, NULL)));
END $$;

-- Every writer may call it, so it covers the tables only in a transaction that wrote a tie-out. A call alone would cover
-- rows that no tie-out wrote.
CREATE FUNCTION night_audit.cover_tie_outs() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM night_audit.tie_outs t WHERE t.xmin = pg_current_xact_id()::xid) THEN
    RAISE EXCEPTION 'tie-outs are covered in the transaction that writes one'
      USING ERRCODE = 'invalid_transaction_state';
  END IF;
  PERFORM night_audit.append_trail('tied_out', NULL, '{}', jsonb_build_object(
    'tables', night_audit.table_digests('{tie_outs,tie_out_rows,tie_out_periods}')));
END $$;

-- Appending transactions hold a lock in shared mode, people's (5) or answers' (2), so that the entry over their rows
-- waits.
CREATE FUNCTION night_audit.announce_event() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1852401512, TG_ARGV[0]::integer);
  RETURN NULL;
END $$;

CREATE FUNCTION night_audit.refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'night_audit.% is only ever appended to; nothing in it is changed or removed', TG_TABLE_NAME
    USING ERRCODE = 'restrict_violation';
END $$;

-- Allows each column of a run to be filled in once: the period at its begin, the result when it is committed or held,
-- the folder when it appears. A failure after the end of the night is recorded once, and every run may be forgotten.
CREATE FUNCTION night_audit.guard_run() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tells boolean := OLD.publication IS NULL AND OLD.exit_status IS NULL
    AND coalesce(NEW.publication IN ('publishing', 'held'), false);
  appears boolean := coalesce(OLD.publication = 'publishing' AND NEW.publication = 'published', false);
  vanishes boolean := coalesce(OLD.publication = 'publishing' AND NEW.publication = 'not_published', false);
  is_forgotten boolean := coalesce(NEW.publication = 'forgotten', false) AND NEW.complete IS NULL;
  fails boolean := coalesce((OLD.exit_status IN (0, 2, 3, 4)
    OR OLD.exit_status = 78 AND OLD.publication IN ('publishing', 'published')) AND NEW.exit_status >= 64, false);
  changed text[] := ARRAY(SELECT key FROM jsonb_each(to_jsonb(OLD)) o JOIN jsonb_each(to_jsonb(NEW)) n USING (key)
    WHERE n.value <> o.value);
  allowed text[] := CASE WHEN tells THEN ARRAY['publication', 'directory', 'content', 'incomplete_reasons', 'orders_read',
      'findings_opening', 'findings_new', 'findings_closed', 'findings_closing', 'lookback_orders', 'lookback_deliveries',
      'newest_event', 'summary', 'held_because', 'feed_coverage', 'journal_since']
    WHEN appears THEN ARRAY['publication', 'directory', 'complete'] WHEN is_forgotten THEN ARRAY['publication', 'complete']
    WHEN vanishes THEN ARRAY['publication'] ELSE '{}' END
    || CASE WHEN OLD.exit_status IS NULL OR fails THEN ARRAY['exit_status'] ELSE '{}' END
    || CASE WHEN OLD.finished_at IS NULL OR fails THEN ARRAY['finished_at'] ELSE '{}' END;
BEGIN
  IF NOT changed <@ allowed THEN
    RAISE EXCEPTION 'run % is as it was recorded; what a run has told is not changed', OLD.run_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;

-- Functions of the partitions -----------------------------------------------------------------------------------------

-- The first instant after a partition; null for the default one.
CREATE FUNCTION night_audit.partition_end(partition regclass) RETURNS timestamptz LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz
  FROM pg_class c WHERE c.oid = partition
$$;

-- Creates the partitions of this month and the next, and moves rows of these months out of the default one.
CREATE FUNCTION night_audit.keep_partitions() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  parent text; partition text; first_instant timestamptz; next_instant timestamptz; covered timestamptz; strays boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(1852401512, 1835624306);
  FOREACH parent IN ARRAY ARRAY['evidence', 'answers'] LOOP
    FOR ahead IN 0..1 LOOP
      first_instant := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead)) AT TIME ZONE 'UTC';
      next_instant := (date_trunc('month', now() AT TIME ZONE 'UTC') + make_interval(months => ahead + 1))
        AT TIME ZONE 'UTC';
      SELECT max(night_audit.partition_end(h.inhrelid)) INTO covered FROM pg_inherits h
      WHERE h.inhparent = ('night_audit.' || parent)::regclass;
      CONTINUE WHEN first_instant < covered;
      partition := parent || to_char(first_instant AT TIME ZONE 'UTC', '_YYYY_MM');
      EXECUTE format('CREATE TABLE night_audit.%I (LIKE night_audit.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
        partition, parent);
      EXECUTE format('SELECT EXISTS (SELECT 1 FROM night_audit.%I WHERE recorded_at >= %L AND recorded_at < %L)',
        parent || '_default', first_instant, next_instant) INTO strays;
      IF strays THEN
        -- A detached partition has no append-only trigger. The rows move unchanged.
        EXECUTE format('ALTER TABLE night_audit.%I DETACH PARTITION night_audit.%I', parent, parent || '_default');
        EXECUTE format('WITH moved AS (DELETE FROM night_audit.%I WHERE recorded_at >= %L AND recorded_at < %L RETURNING *)
          INSERT INTO night_audit.%I SELECT * FROM moved', parent || '_default', first_instant, next_instant, partition);
      END IF;
      EXECUTE format('ALTER TABLE night_audit.%I ATTACH PARTITION night_audit.%I FOR VALUES FROM (%L) TO (%L)',
        parent, partition, first_instant, next_instant);
      IF strays THEN
        EXECUTE format('ALTER TABLE night_audit.%I ATTACH PARTITION night_audit.%I DEFAULT', parent, parent || '_default');
      END IF;
      EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
        FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', partition);
    END LOOP;
  END LOOP;
END $$;

-- Removes a month, except for the facts to keep; the trail records what is left of it and of all earlier months. Every
-- writer may call it, so it checks itself: a month that is not over or within the recorded retention remains, and so do
-- the first fact about a transaction and the last fact of each proof by each channel.
CREATE FUNCTION night_audit.release_partition(month_table text, keep bigint[]) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO, YMD' AS $$
DECLARE
  parent text; bounds text; last_month date; before_month date; marks jsonb; left_over jsonb; key text; columns text;
  is_needed boolean;
BEGIN
  SELECT p.relname, pg_get_expr(c.relpartbound, c.oid), date_trunc('month', night_audit.partition_end(c.oid))::date
  INTO parent, bounds, last_month
  FROM pg_class c JOIN pg_inherits h ON h.inhrelid = c.oid JOIN pg_class p ON p.oid = h.inhparent
  WHERE c.relnamespace = 'night_audit'::regnamespace AND c.relname = month_table
    AND p.relnamespace = c.relnamespace AND p.relname IN ('evidence', 'answers');
  IF last_month IS NULL THEN
    RAISE EXCEPTION '% is no month of evidence or answers', month_table USING ERRCODE = 'restrict_violation';
  END IF;
  IF night_audit.partition_end(format('night_audit.%I', month_table)::regclass) > now() THEN
    RAISE EXCEPTION '% is not over', month_table USING ERRCODE = 'restrict_violation';
  END IF;
  IF NOT EXISTS (SELECT FROM night_audit.retention r
    WHERE night_audit.partition_end(format('night_audit.%I', month_table)::regclass) <= now() - r.evidence)
  THEN
    RAISE EXCEPTION '% is within evidence.retention as the owner of the schema recorded it', month_table
      USING ERRCODE = 'restrict_violation', HINT = 'Run night-audit init as the owner of the schema.';
  END IF;
  IF parent = 'evidence' THEN
    EXECUTE format('SELECT EXISTS (
        SELECT FROM night_audit.%1$I o WHERE NOT EXISTS (SELECT FROM unnest($1) k (id) WHERE k.id = o.evidence_id)
          AND NOT EXISTS (SELECT FROM night_audit.evidence e WHERE e.transaction_id = o.transaction_id
            AND e.environment = o.environment AND e.channel = o.channel AND e.signed_at >= o.signed_at
            AND e.subject_id IS NOT DISTINCT FROM o.subject_id AND e.tableoid <> %2$s))
      OR EXISTS (
        SELECT FROM night_audit.%1$I o WHERE NOT EXISTS (SELECT FROM unnest($1) k (id) WHERE k.id = o.evidence_id)
          AND NOT EXISTS (SELECT FROM night_audit.evidence e WHERE e.transaction_id = o.transaction_id
            AND e.environment = o.environment AND (e.signed_at, e.evidence_id) < (o.signed_at, o.evidence_id)))',
      month_table, format('night_audit.%I', month_table)::regclass::oid) INTO is_needed USING keep;
    IF is_needed THEN
      RAISE EXCEPTION '% has facts that have to stay', month_table USING ERRCODE = 'restrict_violation';
    END IF;
  END IF;
  -- The trail covers the whole month before a row of it is removed.
  PERFORM night_audit.append_trail('before_release', NULL);
  SELECT t.content::jsonb -> 'marks' INTO marks FROM night_audit.trail t ORDER BY t.entry_id DESC LIMIT 1;
  key := CASE parent WHEN 'evidence' THEN 'evidence_id' ELSE 'answer_id' END;
  EXECUTE format('ALTER TABLE night_audit.%I DETACH PARTITION night_audit.%I', parent, month_table);
  IF parent = 'evidence' THEN
    EXECUTE format('ALTER TABLE night_audit.%I RENAME TO evidence_aside', month_table);
    EXECUTE format('CREATE TABLE night_audit.%I (LIKE night_audit.evidence INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
      month_table);
    EXECUTE format('INSERT INTO night_audit.%I SELECT e.* FROM night_audit.evidence_aside e
      WHERE e.evidence_id = ANY ($1)', month_table) USING keep;
    DROP TABLE night_audit.evidence_aside;
    EXECUTE format('ALTER TABLE night_audit.evidence ATTACH PARTITION night_audit.%I %s', month_table, bounds);
    EXECUTE format('COMMENT ON TABLE night_audit.%I IS ''what nobody needs any more was let go''', month_table);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
      FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', month_table);
  ELSE
    EXECUTE format('DROP TABLE night_audit.%I', month_table);
  END IF;
  SELECT max((t.content::jsonb ->> 'before')::date) INTO before_month FROM night_audit.trail t
  WHERE t.content::jsonb ->> 'kind' = 'released' AND t.content::jsonb ->> 'table' = parent;
  before_month := greatest(before_month, last_month);
  columns := night_audit.trail_columns(parent);
  left_over := night_audit.trail_segments(
    parent, key, columns, -9223372036854775808, coalesce((marks ->> parent)::bigint, -9223372036854775808), before_month);
  PERFORM night_audit.append_trail('released', NULL, '{}', jsonb_build_object(
    'table', parent, 'partition', month_table, 'before', before_month, 'kept', left_over -> 0, 'key_columns', columns));
END $$;

-- Triggers ------------------------------------------------------------------------------------------------------------

CREATE TRIGGER told_once BEFORE UPDATE ON night_audit.runs FOR EACH ROW EXECUTE FUNCTION night_audit.guard_run();
CREATE TRIGGER recorded AFTER INSERT OR UPDATE ON night_audit.runs FOR EACH ROW EXECUTE FUNCTION night_audit.record_run();
DO $$
DECLARE
  relation text; events text; lock text;
BEGIN
  FOR relation, events, lock IN SELECT * FROM (VALUES ('evidence', 'UPDATE OR DELETE', '2'),
    ('answers', 'UPDATE OR DELETE', '2'), ('finding_events', 'UPDATE OR DELETE', '5'), ('run_events', 'UPDATE OR DELETE', '5'),
    ('trail', 'UPDATE OR DELETE', NULL), ('runs', 'DELETE', NULL)) covered
  LOOP
    EXECUTE format('CREATE TRIGGER append_only BEFORE %s ON night_audit.%I
      FOR EACH ROW EXECUTE FUNCTION night_audit.refuse_change()', events, relation);
    EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
      FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', relation);
    IF lock IS NOT NULL THEN
      EXECUTE format('CREATE TRIGGER announce BEFORE INSERT ON night_audit.%I
        FOR EACH STATEMENT EXECUTE FUNCTION night_audit.announce_event(%L)', relation, lock);
    END IF;
  END LOOP;
END $$;

-- The first partitions end with the month in which the schema is created. Partitions do not inherit triggers of TRUNCATE;
-- keep_partitions and release_partition create those of later ones.
DO $$
DECLARE
  parent text; place text;
  next_month timestamptz := (date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
BEGIN
  FOREACH parent IN ARRAY ARRAY['evidence', 'answers'] LOOP
    EXECUTE format('CREATE TABLE night_audit.%I PARTITION OF night_audit.%I FOR VALUES FROM (MINVALUE) TO (%L)',
      parent || '_first', parent, next_month);
    FOREACH place IN ARRAY ARRAY['_default', '_first'] LOOP
      EXECUTE format('CREATE TRIGGER no_truncate BEFORE TRUNCATE ON night_audit.%I
        FOR EACH STATEMENT EXECUTE FUNCTION night_audit.refuse_change()', parent || place);
    END LOOP;
  END LOOP;
END $$;

SELECT night_audit.append_trail('start', NULL, NULL, jsonb_build_object(
  'tables', night_audit.table_digests('{claims,tie_outs,tie_out_rows,tie_out_periods}')));

-- Views ---------------------------------------------------------------------------------------------------------------

-- Views for BI tools begin with bi_. Their columns keep their names and places when tables change. Where a table has no
-- business day, the view counts it in the time zone of the newest night's report.

CREATE VIEW night_audit.newest_night AS
  SELECT time_zone FROM night_audit.runs WHERE is_nightly AND complete IS NOT NULL
  ORDER BY as_of DESC, started_at DESC LIMIT 1;

CREATE VIEW night_audit.bi_runs AS
  SELECT run_id, command, as_of, started_at, finished_at, period_since, period_until, time_zone, configuration,
    is_nightly, host, version, complete, incomplete_reasons, orders_read, findings_opening, findings_new,
    findings_closed, findings_closing, directory, exit_status, process_id, publication, content, held_because,
    lookback_orders, lookback_deliveries, feed_coverage
  FROM night_audit.runs;
COMMENT ON VIEW night_audit.bi_runs IS 'One row for each run of the program, complete or not.';

CREATE VIEW night_audit.bi_run_events AS SELECT * FROM night_audit.run_events;
COMMENT ON VIEW night_audit.bi_run_events IS
  'Events of a run: preparation and review of its report, remarks, withdrawn sign-offs, deliveries, and its removal by runs forget.';

CREATE VIEW night_audit.bi_run_totals AS SELECT * FROM night_audit.run_totals;
COMMENT ON VIEW night_audit.bi_run_totals IS
  'Money of a run by currency and disposition. The disposition at_stake is the money at stake in open findings.';

CREATE VIEW night_audit.bi_findings_by_night AS
  SELECT n.period_until AS night, n.as_of, n.complete, f.run_id, f.kind, f.severity, nullif(f.currency, '') AS currency,
    f.findings, f.at_stake, f.at_stake_unknown
  FROM (
    -- The newest report of a night that was made again.
    SELECT DISTINCT ON (period_until) run_id, period_until, as_of, complete FROM night_audit.runs
    WHERE is_nightly AND complete IS NOT NULL ORDER BY period_until, as_of DESC, started_at DESC) n
  JOIN night_audit.run_findings f USING (run_id);
COMMENT ON VIEW night_audit.bi_findings_by_night IS 'Open findings and the money at stake in them at the end of each night.';

CREATE VIEW night_audit.bi_reported_totals AS
  SELECT r.period_until AS night, r.as_of, d.time_zone, t.*
  FROM night_audit.reported_totals t JOIN night_audit.reported_days d USING (run_id, day)
  JOIN night_audit.runs r USING (run_id);
COMMENT ON VIEW night_audit.bi_reported_totals IS 'What each night reported about a day, by currency and disposition.';

CREATE VIEW night_audit.bi_receipt_checks AS
  SELECT subject_kind, subject_id, order_id, received_at, app, payload_kind, outcome, reason, channel, environment,
    apple_status, attempts, last_attempt, due_from AS next_attempt, answered_at,
    (SELECT o.country FROM night_audit.order_nights o WHERE o.order_id = c.order_id ORDER BY o.as_of DESC LIMIT 1)
      AS country,
    (received_at AT TIME ZONE (SELECT time_zone FROM night_audit.newest_night))::date AS business_day
  FROM night_audit.receipt_checks c;
COMMENT ON VIEW night_audit.bi_receipt_checks IS 'One row for each question to Apple (a receipt or a look-up), with its result.';

CREATE VIEW night_audit.bi_lookups AS SELECT * FROM night_audit.lookups;
COMMENT ON VIEW night_audit.bi_lookups IS 'Orders that wait for the look-up of a transaction ID.';

CREATE VIEW night_audit.bi_asking_faults AS SELECT * FROM night_audit.asking_faults;
COMMENT ON VIEW night_audit.bi_asking_faults IS
  'Why the runs of an as-of stopped asking Apple about an app, or disregarded its answers.';

CREATE VIEW night_audit.bi_evidence AS SELECT * FROM night_audit.evidence;
COMMENT ON VIEW night_audit.bi_evidence IS 'Every fact about a transaction, with its source and time. Append-only.';

CREATE VIEW night_audit.bi_transactions AS
  SELECT environment, transaction_id, original_transaction_id, web_order_line_item_id, bundle_id, product_id,
    product_type, quantity, purchased_at, original_purchased_at, expires_at, subscription_expires_at, revoked_at,
    revocation_percentage, revocation_type, revocation_reason, revocation_withdrawn_at, price_milliunits, currency,
    revocation_told_at IS NOT NULL AS tells_revocation, tells_account_token, app_account_token, ownership, is_renewal,
    has_offer, is_upgraded, is_contradictory, channel, signed_at, checked_at, first_signed_at, renewal_at,
    subscription_status, subscription_status_at, consumption_request_reason, revocation_of_some_items, storefront,
    app_transaction_id, offer_type, offer_identifier, subscription_group_identifier, commitment_info,
    billing_plan_type, previous_original_transaction_id, revocation_told_at, refund_requested_at, refund_declined_at,
    notified_at, o.app, o.country,
    (purchased_at AT TIME ZONE (SELECT time_zone FROM night_audit.newest_night))::date AS business_day
  FROM night_audit.transactions t
  LEFT JOIN LATERAL (
    SELECT n.app, n.country FROM night_audit.claims c JOIN night_audit.order_nights n USING (order_id)
    WHERE c.transaction_id = t.transaction_id AND c.environment = t.environment
    ORDER BY n.as_of DESC LIMIT 1) o ON true;
COMMENT ON VIEW night_audit.bi_transactions IS 'One row for each transaction: the result of all evidence about it.';

CREATE VIEW night_audit.bi_claims AS SELECT * FROM night_audit.claims;
COMMENT ON VIEW night_audit.bi_claims IS 'The order that each transaction pays.';

CREATE VIEW night_audit.bi_sweeps AS
  SELECT bundle_id, environment, notification_type, swept_until, last_attempt, reason FROM night_audit.sweeps;
COMMENT ON VIEW night_audit.bi_sweeps IS 'How far Apple''s notification history is known, by app and kind of notification.';

CREATE VIEW night_audit.bi_sweep_gaps AS
  SELECT bundle_id, environment, notification_type, gap_start, gap_end, as_of FROM night_audit.sweep_gaps;
COMMENT ON VIEW night_audit.bi_sweep_gaps IS 'Times that Apple''s notification history no longer covered when it was read.';

CREATE VIEW night_audit.bi_disbelieved_notifications AS
  SELECT bundle_id, notification_type, digest, as_of, reason, passed_over_at FROM night_audit.disbelieved_notifications;
COMMENT ON VIEW night_audit.bi_disbelieved_notifications IS
  'Notifications in Apple''s history whose signature cannot be verified, each once.';

CREATE VIEW night_audit.bi_histories AS
  SELECT bundle_id, environment, transaction_id, read_at, last_attempt, reason, passed_over_at, unanswered_since
  FROM night_audit.histories;
COMMENT ON VIEW night_audit.bi_histories IS 'How far the transaction histories of customers are known.';

-- An open finding was met by the newest run of findings_met.
CREATE VIEW night_audit.bi_findings AS
  SELECT f.finding_id, f.kind, f.severity, f.subject, f.order_id, f.user_id, f.product_id, f.bundle_id,
    f.transaction_id, f.receipt_id, f.delivery_id, f.environment, f.currency, f.amount, f.at_stake, f.reason,
    f.first_seen, f.opened_at,
    CASE WHEN f.closed_at IS NULL THEN greatest(f.last_seen, (SELECT max(m.as_of) FROM night_audit.findings_met m))
      ELSE f.last_seen END AS last_seen,
   f.closed_at, f.status, f.owner, f.remark, f.paid_at, f.delivered_at, f.subject_kind, f.occurred_at,
    f.at_stake_unknown, f.due, f.acceptance, f.app, f.country, f.business_day::date AS business_day,
    f.action, f.subscription_expires_at
  FROM night_audit.findings f;
COMMENT ON VIEW night_audit.bi_findings IS 'Every finding of any night, open or closed, with the decisions about it.';

CREATE VIEW night_audit.bi_finding_events AS SELECT * FROM night_audit.finding_events;
COMMENT ON VIEW night_audit.bi_finding_events IS
  'Events of findings. Nights: opened, reopened, closed, changed; kept_open: a repeated night no longer closes it; returned: an acceptance ended; forgotten: its run was forgotten. All other events are entries of people.';

CREATE VIEW night_audit.bi_orders AS
  SELECT order_id, user_id, product_id, currency, amount, created_at, disposition, as_of AS decided_as_of, run_id, app,
    country, business_day
  FROM (SELECT DISTINCT ON (order_id) * FROM night_audit.order_nights ORDER BY order_id, as_of DESC) newest
  WHERE disposition IS NOT NULL;
COMMENT ON VIEW night_audit.bi_orders IS 'The outcome of each order of the lookback, by the newest complete night.';

CREATE VIEW night_audit.bi_refunds AS
  SELECT transaction_id, order_id, user_id, product_id, app, country, currency, -refunded AS amount,
    trim_scale(milli_percent / 1000.0) AS percentage, refunded_at, business_day, reason
  FROM (
    SELECT DISTINCT ON (transaction_id) * FROM night_audit.refund_nights ORDER BY transaction_id, as_of DESC) newest
  WHERE refunded_at IS NOT NULL;
COMMENT ON VIEW night_audit.bi_refunds IS 'One row for each refund, with the amounts of the newest complete night.';

CREATE VIEW night_audit.bi_sandbox AS
  SELECT user_id, product_id, currency, count(*) AS orders, sum(amount) AS amount, bool_and(is_allowed) AS allowed, app,
    country, business_day
  FROM (SELECT DISTINCT ON (order_id) * FROM night_audit.order_nights ORDER BY order_id, as_of DESC) newest
  WHERE environment = 'Sandbox' AND amount IS NOT NULL
  GROUP BY user_id, product_id, currency, app, country, business_day;
COMMENT ON VIEW night_audit.bi_sandbox IS
  'Sandbox orders of the lookback by user, product, currency and day, by the newest complete night.';

CREATE VIEW night_audit.bi_dispatches AS SELECT * FROM night_audit.dispatches;
COMMENT ON VIEW night_audit.bi_dispatches IS 'One row for each report and each of its targets, with the state of the delivery.';

CREATE VIEW night_audit.bi_tie_outs AS SELECT * FROM night_audit.tie_outs;
COMMENT ON VIEW night_audit.bi_tie_outs IS 'Each comparison with Apple''s sales reports.';

-- The newest rows of each day and period; rows with an as-of in the future only where there are no others.
CREATE VIEW night_audit.bi_tie_out_days AS
  SELECT level, app, product_id, day::date AS day, country, currency, class, apple, ours, shop, difference,
    not_reported, other_scope, free, restore, timing, refund_timing, refund_unknown, partial_refund, upgrade, renewal,
    country_unknown, price, rounding, unknown_product, unexplained
  FROM night_audit.tie_out_rows JOIN (
    SELECT day, coalesce(max(as_of) FILTER (WHERE as_of <= now()), min(as_of)) AS as_of FROM night_audit.tie_out_rows
    GROUP BY day) newest USING (day, as_of);
COMMENT ON VIEW night_audit.bi_tie_out_days IS 'Units and amounts in Apple''s sales reports and in our transactions, by key of the tie-out.';

CREATE VIEW night_audit.bi_tie_out_periods AS
  SELECT fiscal_period, currency, sales_proceeds, open_at_end, settled_from_before, never_collected, settled, difference, gross,
    commission, tax
  FROM night_audit.tie_out_periods JOIN (
    SELECT fiscal_period, coalesce(max(as_of) FILTER (WHERE as_of <= now()), min(as_of)) AS as_of
    FROM night_audit.tie_out_periods GROUP BY fiscal_period) newest USING (fiscal_period, as_of);
COMMENT ON VIEW night_audit.bi_tie_out_periods IS 'Proceeds of Apple''s sales reports and settlements of its finance reports, by fiscal period and currency.';

CREATE VIEW night_audit.bi_journal AS
  SELECT posted_for, kind, subject, version, is_reversal, event_day, currency,
    CASE WHEN is_reversal THEN -amount ELSE amount END AS amount, app, transaction_id, service_from, service_until, as_of,
    run_id,
    CASE WHEN kind IN ('sale', 'refund') THEN (
      SELECT o.country FROM night_audit.order_nights o WHERE o.order_id = subject ORDER BY o.as_of DESC LIMIT 1) END
      AS country,
    posted_for AS business_day
  FROM night_audit.journal_entries;
COMMENT ON VIEW night_audit.bi_journal IS 'Entries that nights have posted for the ledger; reversals have the opposite sign.';

CREATE VIEW night_audit.bi_trail AS
  SELECT entry_id, (content::jsonb ->> 'at')::timestamptz AS recorded_at, content::jsonb ->> 'kind' AS kind,
    (content::jsonb ->> 'run')::uuid AS run_id, content::jsonb ->> 'report' AS content, previous, hash
  FROM night_audit.trail;
COMMENT ON VIEW night_audit.bi_trail IS 'The chain of entries over all append-only rows; night-audit verify proves it.';

-- Comments of the views' columns. A column has the same meaning in every view, except for entries that name a view.
DO $$
DECLARE
  entry record;
BEGIN
  FOR entry IN
    SELECT c.table_name AS view_name, c.column_name, w.meaning
    FROM information_schema.columns c
    JOIN LATERAL (
      SELECT meaning FROM (VALUES
        ('run_id', 'The run.'), ('command', 'The command: run, reconcile or recheck.'),
        ('as_of', 'The instant that the audit describes. Rules use it, never the clock.'),
        ('started_at', 'When the program began, by the database''s clock.'),
        ('finished_at', 'When the run ended; null: it is running, or was killed.'),
        ('period_since', 'First day of the report.'), ('period_until', 'Last day of the report.'),
        ('time_zone', 'The time zone of the days.'), ('configuration', 'SHA-256 of the settings that affect a report.'),
        ('is_nightly', 'Whether the run is a night, not a narrowed or ad hoc run.'), ('host', 'The machine of the run.'),
        ('version', 'The program''s version.'),
        ('complete', 'Whether every check that was due was answered; null: there is no report.'),
        ('incomplete_reasons', 'What is missing, one sentence each.'), ('orders_read', 'Orders of the period.'),
        ('findings_opening', 'Findings open at the end of the night before.'),
        ('findings_new', 'Findings opened or reopened since then.'), ('findings_closed', 'Findings closed since then.'),
        ('findings_closing', 'Findings open at the end of this night.'), ('directory', 'The folder of the report.'),
        ('exit_status', 'The program''s exit status.'), ('process_id', 'The process on the host, as ps shows it.'),
        ('publication', 'State of the report: published; publishing: the folder is about to appear; not_published: the folder never appeared; held; forgotten; null: no report.'),
        ('held_because', 'Why the night is held, one sentence each; empty: the night is not held.'),
        ('lookback_orders', 'Orders in the lookback, for the plausibility of the next night.'),
        ('lookback_deliveries', 'Deliveries in the lookback, for the plausibility of the next night.'),
        ('feed_coverage', 'By app: known sales, and how many of them Apple''s notifications reported.'),
        ('currency', 'ISO 4217 code.'),
        ('disposition', 'The outcome of an order; the sheet About of the workbook explains each.'),
        ('orders', 'Number of orders.'), ('amount', 'Money in major units of the currency.'),
        ('subject_kind', 'Subject of the question to Apple: a receipt, or the look-up of a transaction ID that an order states.'),
        ('subject_id', 'ID of the subject.'), ('order_id', 'The shop''s ID of the order.'),
        ('received_at', 'When the shop received the proof.'), ('bi_trail.entry_id', 'Position of the entry in the chain.'),
        ('bi_trail.kind', 'The recorded event: a run began, was completed, published or forgotten; months of evidence were released.'),
        ('bi_trail.previous', 'The hash of the previous entry.'),
        ('bi_trail.hash', 'SHA-256 of the previous hash and the content of the entry.'),
        ('remedy', 'The problem and its remedy.'), ('allowed', 'Whether the user is on audit.testUsers.'),
        ('app', 'The app, by its name in the configuration.'),
        ('payload_kind', 'Kind of the proof: app (app receipt), transaction (old transaction receipt), signed (signed transaction) or malformed.'),
        ('outcome', 'Result of the check.'), ('reason', 'The reason, as a sentence or as a payment reason.'),
        ('bi_finding_events.digest', 'SHA-256 of the finding as the run stored it; null: the run did not change it.'),
        ('digest', 'SHA-256 of the notification as Apple sent it.'),
        ('first_signed_at', 'Apple''s earliest date of evidence about the transaction.'),
        ('notified_at', 'When Apple first signed a notification about the transaction; null: no notification is known.'),
        ('channel', 'Apple''s interface that reported it.'),
        ('environment', 'Apple''s environment: Production, Sandbox, Xcode or LocalTesting.'),
        ('apple_status', 'Apple''s status or error number.'), ('attempts', 'How often Apple was asked.'),
        ('last_attempt', 'As-of of the run that asked last.'), ('next_attempt', 'When the check is due again.'),
        ('answered_at', 'As-of of the run that got the last usable answer.'),
        ('evidence_id', 'Number of the fact; later facts have larger numbers.'),
        ('recorded_at', 'When the row was written, by the database''s clock.'),
        ('signed_at', 'When Apple signed or reported the fact; the newest fact counts.'),
        ('transaction_id', 'Apple''s transaction ID.'),
        ('original_transaction_id', 'Apple''s ID of the first transaction that this one continues or restores.'),
        ('web_order_line_item_id', 'Apple''s ID of one subscription period.'), ('bundle_id', 'The bundle ID of the app.'),
        ('product_id', 'App Store product identifier.'), ('product_type', 'Apple''s type of the product.'),
        ('quantity', 'Units.'), ('purchased_at', 'Apple''s purchase date.'),
        ('original_purchased_at', 'Apple''s date of the first purchase.'),
        ('expires_at', 'When the subscription period ends.'), ('grace_expires_at', 'When Apple''s grace period ends.'),
        ('subscription_expires_at', 'The newest end of the subscription.'),
        ('tells_revocation', 'Whether a refund would be visible in this evidence.'),
        ('revocation_told_at', 'When Apple last stated whether the purchase was refunded; null: no answer could show a refund.'),
        ('revoked_at', 'When Apple refunded or revoked the purchase; null: not refunded.'),
        ('revocation_percentage', 'The refunded share in thousandths of a percent.'),
        ('revocation_type', 'Apple''s type of the refund.'), ('revocation_reason', 'Apple''s reason as its number.'),
        ('revocation_withdrawn_at', 'When Apple withdrew a known refund.'),
        ('price_milliunits', 'Apple''s price in thousandths of the major unit.'),
        ('tells_account_token', 'Whether an account token would be visible in this evidence.'),
        ('app_account_token', 'The UUID that the shop gave to StoreKit for its user.'),
        ('ownership', 'PURCHASED, or FAMILY_SHARED for access without a purchase.'),
        ('is_renewal', 'Whether it renews a subscription.'), ('has_offer', 'Whether an offer explains another price.'),
        ('is_upgraded', 'Whether a later purchase replaced it.'),
        ('is_contradictory', 'Whether Apple reported two contradictory facts with the same date.'),
        ('checked_at', 'As-of of the run that asked Apple last; empty: known from signed data alone.'),
        ('finding_id', 'Stable ID: a discrepancy has the same ID every night.'),
        ('kind', 'Kind of the discrepancy; the sheet About of the workbook explains each.'),
        ('severity', 'critical: now; major: this week; minor: data quality.'),
        ('subject', 'ID of the order, transaction, receipt or delivery that the finding is about.'),
        ('user_id', 'The shop''s ID of the user.'), ('receipt_id', 'The shop''s ID of the receipt.'),
        ('delivery_id', 'The shop''s ID of the delivery.'),
        ('at_stake', 'Money at stake. One finding of an order carries it, so that sums count it once.'),
        ('first_seen', 'As-of of the first run that had the finding.'),
        ('opened_at', 'As-of of the run that opened or reopened the finding.'),
        ('last_seen', 'As-of of the newest run that had the finding.'),
        ('closed_at', 'As-of of the run that closed the finding; null: open.'),
        ('status', 'The decision about it: open, acknowledged, accepted or closed.'),
        ('owner', 'Person responsible for the finding.'), ('remark', 'Remark of people.'),
        ('paid_at', 'Apple''s purchase date.'), ('delivered_at', 'The latest delivery that was not taken back.'),
        ('occurred_at', 'The date of the transaction: Apple''s purchase date, for refund kinds the refund''s or its reversal''s, else that of the order, delivery or receipt.'),
        ('at_stake_unknown', 'Whether money is at stake and its amount is unknown.'),
        ('bi_findings_by_night.at_stake_unknown', 'Number of findings with an unknown amount at stake.'),
        ('due', 'Day by which the finding is to be closed.'),
        ('event_id', 'Number of the event; later events have larger numbers.'), ('event', 'Kind of the event.'),
        ('actor', 'Person who made the change; null: a night.'), ('detail', 'The new value; null: cleared.'),
        ('change_id', 'ID of the change; entries made together have one ID.'),
        ('undoes', 'ID of the change that this one takes back.'), ('before', 'The value before the change.'),
        ('created_at', 'When the shop recorded the order.'),
        ('decided_as_of', 'As-of of the night that first decided this outcome.'),
        ('night', 'Last business day of the night''s report.'), ('findings', 'Number of open findings.'),
        ('day', 'The business day of the row.'), ('notification_type', 'Apple''s type of the notification.'),
        ('swept_until', 'All notifications that Apple signed before this instant are known.'),
        ('passed_over_at', 'As-of of the run that skipped data whose signature cannot be verified.'),
        ('gap_start', 'Start of the time that Apple''s history no longer covers.'),
        ('gap_end', 'End of the time that Apple''s history no longer covers.'),
        ('read_at', 'As-of of the last reading that reached the end of the history.'),
        ('bi_histories.unanswered_since', 'As-of of the first run in a row without a whole page from Apple.'),
        ('dispatch_id', 'Number of the row.'), ('target', 'The target of report.deliver, by its name.'),
        ('bi_dispatches.directory', 'The report''s folder.'), ('state', 'owed, delivered or withdrawn.'),
        ('problem', 'Why the report is not delivered yet.'), ('content', 'SHA-256 of the report''s SHA256SUMS.'),
        ('queued_at', 'When the delivery was queued.'),
        ('ended_at', 'When the report was delivered, or the delivery withdrawn.'),
        ('renewal_at', 'When Apple will renew the subscription.'),
        ('subscription_status', 'Apple''s status of the subscription as its number.'),
        ('subscription_status_at', 'When Apple reported that status.'),
        ('consumption_request_reason', 'The customer''s reason for the refund request.'),
        ('refund_request', 'requested or declined: Apple''s notification about a refund request; null: another notification.'),
        ('refund_requested_at', 'When Apple signed the newest refund request of the customer.'),
        ('refund_declined_at', 'When Apple declined that request.'),
        ('revocation_of_some_items', 'Whether Apple refunded only some of several items; of a transaction empty if only receipts state the refund.'),
        ('reverses_refund', 'Whether the fact is Apple''s notification that a refund was reversed; false: it cannot show a refund.'),
        ('storefront', 'The country of the customer''s App Store, or Apple''s ID of that store.'),
        ('app_transaction_id', 'Apple''s ID of the customer and the app.'),
        ('offer_type', 'Apple''s type of the offer as its number.'),
        ('offer_period', 'The duration of the offer (ISO 8601).'),
        ('renewal_price_milliunits', 'The price of the next renewal in thousandths of renewal_currency.'),
        ('renewal_currency', 'The currency of the next renewal.'), ('offer_identifier', 'The offer''s name.'),
        ('subscription_group_identifier', 'The group of subscriptions that it belongs to.'),
        ('commitment_info', 'Apple''s commitment information as JSON.'), ('billing_plan_type', 'Apple''s billing plan.'),
        ('previous_original_transaction_id', 'The first purchase of the subscription before this one.'),
        ('tie_out_id', 'Number of the tie-out.'), ('first_day', 'First day of the window.'),
        ('last_day', 'Last day of the window.'), ('notes', 'Remarks of the tie-out.'),
        ('level', 'units, country or amount.'), ('country', 'Country of the App Store (ISO 3166 alpha-2); empty: unknown.'),
        ('class', 'sale, refund, free or restore.'), ('apple', 'Units or amount in Apple''s sales reports.'),
        ('ours', 'Units or amount of our transactions from Apple.'),
        ('shop', 'Units or amount of the shop''s verified orders.'),
        ('bi_tie_out_periods.difference', 'Proceeds of the sales reports, adjusted by open_at_end, settled_from_before and never_collected, less settled.'),
        ('difference', 'Apple''s sales reports less our transactions.'),
        ('not_reported', 'Explained: not reported by Apple yet.'),
        ('other_scope', 'Explained: apps or products outside the comparison.'), ('free', 'Explained: free of charge.'),
        ('restore', 'Explained: restores.'), ('timing', 'Explained: counted on another day.'),
        ('refund_timing', 'Explained: refunded on another day.'),
        ('refund_unknown', 'Explained: refunds without a known revocation.'),
        ('partial_refund', 'Explained: partial refunds.'), ('upgrade', 'Explained: upgrades.'),
        ('renewal', 'Explained: renewals.'), ('country_unknown', 'Explained: transactions without a storefront.'),
        ('price', 'Explained: another price.'), ('rounding', 'Explained: rounding.'),
        ('unknown_product', 'Explained: products without an order or transaction.'),
        ('unexplained', 'The part of the difference without an explanation.'), ('fiscal_period', 'Apple''s fiscal month.'),
        ('sales_proceeds', 'Proceeds by the sales reports.'), ('open_at_end', 'Not settled yet at the end of the period.'),
        ('settled_from_before', 'Settled in it, sold before.'), ('never_collected', 'Never collected by Apple.'),
        ('settled', 'Settled by the finance reports.'),
        ('bi_findings.business_day', 'The day of occurred_at in report.timeZone, as in findings.csv.'),
        ('bi_receipt_checks.business_day', 'The day of received_at in the time zone of the newest report.'),
        ('bi_receipt_checks.country', 'Country of the App Store of the order; null: unknown.'),
        ('bi_transactions.app', 'The app of the order that it pays, by its name in the configuration; null: no order.'),
        ('bi_transactions.country', 'Country of the App Store of the order that it pays; null: no order, or unknown.'),
        ('bi_transactions.business_day', 'The day of purchased_at in the time zone of the newest report.'),
        ('bi_journal.country', 'Country of the App Store of the order; null: unknown, or Apple''s amount of all countries.'),
        ('bi_journal.business_day', 'The same as posted_for.'),
        ('bi_refunds.business_day', 'The day of refunded_at in report.timeZone.'),
        ('bi_refunds.amount', 'The refunded amount, negative, as in refunds.csv; null: unknown.'),
        ('bi_refunds.percentage', 'The refunded share of the purchase in percent.'),
        ('bi_refunds.refunded_at', 'Apple''s revocation date.'),
        ('bi_refunds.reason', 'Apple''s reason for the refund: app_issue or other.'),
        ('bi_refunds.order_id', 'The shop''s ID of the order that owns the purchase; null: no order.'),
        ('business_day', 'The day in report.timeZone, as in the report.'),
        ('bi_journal.kind', 'sale, refund, commission, tax or payout.'),
        ('bi_journal.subject', 'The order''s ID; of Apple''s amounts fiscal period and currency.'),
        ('bi_journal.amount', 'In major units; a reversal has the opposite sign.'),
        ('posted_for', 'The business day that the entry is posted for.'), ('version', 'Counts the postings of an event.'),
        ('is_reversal', 'Whether the entry reverses the posting of this version.'),
        ('event_day', 'The business day of the sale or refund; of Apple''s amounts the day they are due.'),
        ('service_from', 'First day of a subscription period.'), ('service_until', 'Last day of a subscription period.'),
        ('gross', 'Customer amounts of these sales; null: a price is in another currency.'),
        ('commission', 'gross less tax less sales_proceeds; null: the tax is not known.'),
        ('tax', 'Tax in gross; null: Apple''s reports do not state it.'),
        ('action', 'The action that the shop''s jobs may take, as in actions.json.'),
        ('acceptance', 'Limit of an acceptance: until a day, up to an amount.')
      ) AS words (name, meaning)
      WHERE name IN (c.column_name, concat(c.table_name, '.', c.column_name)) ORDER BY name = c.column_name LIMIT 1) w ON true
    WHERE c.table_schema = 'night_audit' AND c.table_name LIKE 'bi\_%'
  LOOP
    EXECUTE format('COMMENT ON COLUMN night_audit.%I.%I IS %L', entry.view_name, entry.column_name, entry.meaning);
  END LOOP;
END
$$;
