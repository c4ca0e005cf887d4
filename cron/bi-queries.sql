-- Example queries for BI tools. Every view and column of night_audit.bi_* has a comment.

-- name: open findings and amount at risk, newest night
SELECT kind, severity, currency, findings, at_stake, at_stake_unknown
FROM night_audit.bi_findings_by_night
WHERE night = (SELECT max(night) FROM night_audit.bi_findings_by_night)
ORDER BY severity, kind, currency;

-- name: amount at risk by currency over the last 30 nights
SELECT night, currency, sum(at_stake) AS at_stake, sum(findings) AS findings, sum(at_stake_unknown) AS unknown
FROM night_audit.bi_findings_by_night
WHERE night > (SELECT max(night) - 30 FROM night_audit.bi_findings_by_night)
GROUP BY night, currency ORDER BY night, currency;

-- name: critical findings without an owner, oldest first
SELECT finding_id, kind, order_id, user_id, currency, at_stake, occurred_at, reason
FROM night_audit.bi_findings
WHERE closed_at IS NULL AND status IN ('open', 'acknowledged') AND severity = 'critical' AND owner IS NULL
ORDER BY occurred_at NULLS LAST, finding_id;

-- name: findings past their due day
-- Counted by the newest report's day, not by the day on which the query runs.
SELECT finding_id, kind, owner, due, at_stake, currency, remark
FROM night_audit.bi_findings
WHERE closed_at IS NULL AND status IN ('open', 'acknowledged')
  AND due <= (SELECT max(period_until) FROM night_audit.bi_runs WHERE is_nightly AND complete IS NOT NULL)
ORDER BY due, finding_id;

-- name: what became of each day's orders
-- Days are counted in the report's time zone, so that the sums match the sheet Days.
SELECT business_day, currency, disposition, count(*) AS orders, sum(amount) AS amount
FROM night_audit.bi_orders
GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3;

-- name: sales by app, product and country
-- Of one day these are the sums of products.csv.
SELECT business_day, app, product_id, country, currency, count(*) AS orders, sum(amount) AS ordered,
  sum(amount) FILTER (WHERE disposition = 'settled') AS settled
FROM night_audit.bi_orders
WHERE disposition NOT IN ('sandbox', 'bad_row')
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1 DESC, 2, 3, 4, 5;

-- name: the journal by kind and day
SELECT posted_for, app, kind, currency, sum(amount) AS amount
FROM night_audit.bi_journal
GROUP BY 1, 2, 3, 4 ORDER BY 1 DESC, 2, 3, 4;

-- name: users with the largest amounts paid and not delivered
SELECT user_id, currency, count(*) AS orders, sum(amount) AS amount
FROM night_audit.bi_orders
WHERE disposition IN ('paid_not_delivered', 'partly_delivered')
GROUP BY user_id, currency ORDER BY amount DESC NULLS LAST, user_id LIMIT 50;

-- name: how long findings stay open, by kind
SELECT kind, count(*) AS closed, avg(closed_at - opened_at) AS mean_time_open
FROM night_audit.bi_findings
WHERE closed_at IS NOT NULL
GROUP BY kind ORDER BY kind;

-- name: nights with their completeness and sign-offs
SELECT r.period_until AS night, r.complete, r.orders_read, r.findings_closing, r.exit_status,
  string_agg(e.event || ': ' || e.detail, ', ' ORDER BY e.event_id) AS signed
FROM night_audit.bi_runs r
LEFT JOIN night_audit.bi_run_events e ON e.run_id = r.run_id AND e.event NOT IN ('delivered', 'withdrawn', 'forgotten')
WHERE r.is_nightly
GROUP BY r.run_id, r.period_until, r.complete, r.orders_read, r.findings_closing, r.exit_status
ORDER BY night DESC;
