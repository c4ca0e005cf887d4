-- Which order a transaction belongs to is derived by each audit from orders and evidence alone. Nothing of it is kept where
-- the next audit could read it.
DROP VIEW night_audit.bi_claims;
DROP VIEW night_audit.claims;
DROP VIEW night_audit.bi_transactions;
DROP VIEW night_audit.bi_evidence;
DROP VIEW night_audit.bi_findings;
ALTER TABLE night_audit.transactions DROP COLUMN order_id, DROP COLUMN is_unclaimed;
ALTER TABLE night_audit.receipt_transactions DROP COLUMN order_id, DROP COLUMN is_detour;

-- What Apple tells besides, kept because it cannot be fetched again cheaply.
ALTER TABLE night_audit.evidence
  ADD COLUMN renewal_at timestamptz,
  ADD COLUMN subscription_status integer,
  ADD COLUMN consumption_request_reason text,
  ADD COLUMN revocation_of_some_items boolean,
  ADD COLUMN storefront text,
  ADD COLUMN app_transaction_id text,
  ADD COLUMN offer_type integer,
  ADD COLUMN offer_identifier text,
  ADD COLUMN subscription_group_identifier text,
  ADD COLUMN commitment_info text,
  ADD COLUMN billing_plan_type text,
  ADD COLUMN previous_original_transaction_id text;
ALTER TABLE night_audit.transactions
  ADD COLUMN first_signed_at timestamptz,
  ADD COLUMN renewal_at timestamptz,
  ADD COLUMN subscription_status integer,
  ADD COLUMN subscription_status_at timestamptz,
  ADD COLUMN consumption_request_reason text,
  ADD COLUMN revocation_of_some_items boolean,
  ADD COLUMN storefront text,
  ADD COLUMN app_transaction_id text,
  ADD COLUMN offer_type integer,
  ADD COLUMN offer_identifier text,
  ADD COLUMN subscription_group_identifier text,
  ADD COLUMN commitment_info text,
  ADD COLUMN billing_plan_type text,
  ADD COLUMN previous_original_transaction_id text;

UPDATE night_audit.transactions t SET first_signed_at = e.signed_at
FROM (SELECT transaction_id, environment, min(signed_at) AS signed_at FROM night_audit.evidence GROUP BY 1, 2) e
WHERE e.transaction_id = t.transaction_id AND e.environment = t.environment;

-- Evidence and answers by the month in which they were recorded (UTC), so that what evidence.retention lets go is a table
-- to drop. What there is so far is the first partition. Nothing is lost where a month has no partition yet: the default
-- one takes it, and the next run moves it.
ALTER TABLE night_audit.evidence RENAME TO evidence_first;
ALTER TABLE night_audit.evidence_first ALTER COLUMN evidence_id DROP IDENTITY;
ALTER TABLE night_audit.evidence_first DROP CONSTRAINT evidence_pkey;
ALTER INDEX night_audit.evidence_transaction RENAME TO evidence_first_transaction;
CREATE TABLE night_audit.evidence (LIKE night_audit.evidence_first INCLUDING DEFAULTS) PARTITION BY RANGE (recorded_at);
ALTER TABLE night_audit.evidence ALTER COLUMN evidence_id ADD GENERATED ALWAYS AS IDENTITY;
ALTER TABLE night_audit.evidence ADD PRIMARY KEY (evidence_id, recorded_at);
CREATE INDEX evidence_transaction ON night_audit.evidence (transaction_id, environment);
CREATE TABLE night_audit.evidence_default PARTITION OF night_audit.evidence DEFAULT;

ALTER TABLE night_audit.answers RENAME TO answers_first;
ALTER TABLE night_audit.answers_first ALTER COLUMN answer_id DROP IDENTITY;
ALTER TABLE night_audit.answers_first DROP CONSTRAINT answers_pkey;
ALTER INDEX night_audit.answers_subject RENAME TO answers_first_subject;
CREATE TABLE night_audit.answers (LIKE night_audit.answers_first INCLUDING DEFAULTS) PARTITION BY RANGE (recorded_at);
ALTER TABLE night_audit.answers ALTER COLUMN answer_id ADD GENERATED ALWAYS AS IDENTITY;
ALTER TABLE night_audit.answers ADD PRIMARY KEY (answer_id, recorded_at);
CREATE INDEX answers_subject ON night_audit.answers (subject_kind, subject_id);
CREATE TABLE night_audit.answers_default PARTITION OF night_audit.answers DEFAULT;

DO $$
DECLARE
  next_month timestamptz := (date_trunc('month', now() AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
BEGIN
  EXECUTE format('ALTER TABLE night_audit.evidence ATTACH PARTITION night_audit.evidence_first
    FOR VALUES FROM (MINVALUE) TO (%L)', next_month);
  EXECUTE format('ALTER TABLE night_audit.answers ATTACH PARTITION night_audit.answers_first
    FOR VALUES FROM (MINVALUE) TO (%L)', next_month);
  PERFORM setval(pg_get_serial_sequence('night_audit.evidence', 'evidence_id'),
    (SELECT coalesce(max(evidence_id), 0) + 1 FROM night_audit.evidence_first), false);
  PERFORM setval(pg_get_serial_sequence('night_audit.answers', 'answer_id'),
    (SELECT coalesce(max(answer_id), 0) + 1 FROM night_audit.answers_first), false);
END $$;

-- Order 17, delivery 17 and receipt 17 are three: a finding's id names the kind of its subject.
ALTER TABLE night_audit.findings ADD COLUMN subject_kind text;
UPDATE night_audit.findings f SET subject_kind =
  CASE WHEN f.kind IN ('orphan_payment', 'renewal_without_order') THEN 'transaction'
       WHEN f.kind = 'orphan_delivery' THEN 'delivery'
       WHEN f.subject = f.order_id THEN 'order'
       WHEN f.subject = f.receipt_id THEN 'receipt'
       WHEN f.subject = f.delivery_id THEN 'delivery'
       ELSE 'order' END;
ALTER TABLE night_audit.findings ALTER COLUMN subject_kind SET NOT NULL;
CREATE TEMPORARY TABLE rekeyed ON COMMIT DROP AS
  SELECT finding_id AS old_id,
    left(encode(sha256(convert_to(kind || E'\n' || subject_kind || E'\n' || subject, 'UTF8')), 'hex'), 32) AS new_id
  FROM night_audit.findings;
UPDATE night_audit.finding_events e SET finding_id = r.new_id FROM rekeyed r WHERE e.finding_id = r.old_id;
UPDATE night_audit.findings f SET finding_id = r.new_id FROM rekeyed r WHERE f.finding_id = r.old_id;
DROP TABLE rekeyed;

-- What is no word of Apple's on renewals is believed no more: verifyReceipt has none, and of receipts, which tell no account
-- token, only that something is a renewal can be told.
UPDATE night_audit.transactions t SET is_renewal = told.is_renewal
FROM (
  SELECT t.transaction_id, t.environment, (
    SELECT e.is_renewal FROM night_audit.evidence e
    WHERE e.transaction_id = t.transaction_id AND e.environment = t.environment AND e.is_renewal IS NOT NULL
      AND e.channel <> 'verifyReceipt' AND (e.channel <> 'offline' OR e.is_renewal OR e.tells_account_token)
    ORDER BY e.signed_at DESC, e.evidence_id DESC LIMIT 1) AS is_renewal
  FROM night_audit.transactions t WHERE t.is_renewal IS NOT NULL) told
WHERE t.transaction_id = told.transaction_id AND t.environment = told.environment
  AND t.is_renewal IS DISTINCT FROM told.is_renewal;

-- What the newest run of all orders came to, for people and BI tools. No audit reads it.
CREATE TABLE night_audit.claims (
  environment    text COLLATE "C" NOT NULL,
  transaction_id text COLLATE "C" NOT NULL,
  order_id       text COLLATE "C" NOT NULL,
  PRIMARY KEY (transaction_id, environment)
);
CREATE INDEX claims_order ON night_audit.claims (order_id);

CREATE VIEW night_audit.bi_claims AS SELECT * FROM night_audit.claims;
CREATE VIEW night_audit.bi_transactions AS SELECT * FROM night_audit.transactions;
CREATE VIEW night_audit.bi_evidence AS SELECT * FROM night_audit.evidence;
CREATE VIEW night_audit.bi_findings AS SELECT * FROM night_audit.findings;
