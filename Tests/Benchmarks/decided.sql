-- Loads the decisions of a night-audit report in :report: for the floor and pandas: orders that are not plain,
-- findings, refunds.
\set ON_ERROR_STOP on
SET TimeZone = 'UTC';
CREATE TEMPORARY TABLE reported (order_id text, user_id text, product_id text, quantity bigint, currency text, amount text,
  status text, disposition text, payment text, payment_reason text, transaction_id text, environment text,
  created_at timestamptz, paid_at timestamptz, delivered_at timestamptz, refunded_at timestamptz, checked_at timestamptz,
  findings text, app text, country text, business_day date);
CREATE TABLE floor.findings (finding_id text COLLATE "C" PRIMARY KEY, kind text, severity text, order_id text, user_id text,
  product_id text, transaction_id text, receipt_id text, delivery_id text, environment text, currency text, amount numeric,
  at_stake numeric, paid_at timestamptz, delivered_at timestamptz, first_seen timestamptz, age_days integer, status text,
  owner text, reason text, suggested_action text, occurred_at timestamptz, days_since integer, due text, remark text, app text, country text,
  business_day timestamptz);
CREATE TABLE floor.refunds (transaction_id text COLLATE "C" PRIMARY KEY, order_id text, user_id text, product_id text,
  currency text, amount numeric, percentage text, purchased_at timestamptz, refunded_at timestamptz, reason text,
  disposition text, app text);
\cd :report
\copy reported FROM 'orders.csv' CSV HEADER
\copy floor.findings FROM 'findings.csv' CSV HEADER
\copy floor.refunds FROM 'refunds.csv' CSV HEADER
CREATE TABLE floor.outcomes AS
SELECT o.order_id COLLATE "C" AS order_id, disposition, payment, payment_reason, transaction_id, environment, paid_at,
  delivered_at, refunded_at, checked_at, findings, amount
FROM reported o LEFT JOIN (SELECT order_id, count(*) AS transactions FROM floor.transactions GROUP BY 1) AS t USING (order_id)
WHERE disposition <> 'settled' OR findings IS NOT NULL OR refunded_at IS NOT NULL OR t.transactions IS DISTINCT FROM 1
ORDER BY 1;
ALTER TABLE floor.outcomes ADD PRIMARY KEY (order_id);
VACUUM (ANALYZE) floor.outcomes, floor.findings, floor.refunds;
CHECKPOINT;
