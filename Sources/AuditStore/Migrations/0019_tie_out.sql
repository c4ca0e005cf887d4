-- Which download of a report counts: the one that was stored last, and no absence after it was there. Its as-of says
-- nothing about that: a tie-out by hand may be made for a later instant than the night that comes after it.
CREATE OR REPLACE VIEW night_audit.connect_reports_current AS
  SELECT DISTINCT ON (kind, frequency, name, vendor)
    report_id, vendor, kind, frequency, name, version, source, file_name, as_of, state, http_status, digest, detail
  FROM night_audit.connect_reports
  ORDER BY kind, frequency, name, vendor, (state IN ('reported', 'zero', 'unreadable')) DESC, report_id DESC;

-- Apple's word that nothing was sold was taken for a report, even where its report had rows.
UPDATE night_audit.connect_reports r SET state = 'doubtful_zero'
WHERE r.state = 'zero' AND r.digest IS NULL AND EXISTS (
  SELECT FROM night_audit.connect_reports b
  WHERE b.kind = r.kind AND b.frequency = r.frequency AND b.name = r.name AND b.vendor = r.vendor
    AND b.state = 'reported' AND b.report_id < r.report_id);

-- What a tie-out of an earlier as-of says, made by hand or again, stands beside what later ones say and not in its place:
-- of days that have left the window nobody else says anything any more.
ALTER TABLE night_audit.tie_out_rows ADD COLUMN as_of timestamptz NOT NULL DEFAULT 'epoch';
UPDATE night_audit.tie_out_rows r SET as_of = d.as_of
FROM (SELECT days.day, (
    SELECT t.as_of FROM night_audit.tie_outs t WHERE days.day BETWEEN t.first_day AND t.last_day
    ORDER BY t.tie_out_id DESC LIMIT 1) AS as_of
  FROM (SELECT DISTINCT day FROM night_audit.tie_out_rows) days) d
WHERE r.day = d.day AND d.as_of IS NOT NULL;
ALTER TABLE night_audit.tie_out_rows ALTER COLUMN as_of DROP DEFAULT, DROP CONSTRAINT tie_out_rows_pkey,
  ADD PRIMARY KEY (level, app, product_id, day, country, currency, class, as_of);

ALTER TABLE night_audit.tie_out_periods ADD COLUMN as_of timestamptz NOT NULL DEFAULT 'epoch';
UPDATE night_audit.tie_out_periods SET as_of = t.as_of
FROM (SELECT as_of FROM night_audit.tie_outs ORDER BY tie_out_id DESC LIMIT 1) t;
ALTER TABLE night_audit.tie_out_periods ALTER COLUMN as_of DROP DEFAULT, DROP CONSTRAINT tie_out_periods_pkey,
  ADD PRIMARY KEY (fiscal_period, currency, as_of);

-- The newest of each day and of each period; what a clock that was ahead has said only where there is nothing else.
CREATE OR REPLACE VIEW night_audit.bi_tie_out_days AS
  SELECT level, app, product_id, day::date AS day, country, currency, class, apple, ours, shop, difference,
    not_reported, other_scope, free, restore, timing, refund_timing, refund_unknown, partial_refund, upgrade, renewal,
    country_unknown, price, rounding, unknown_product, unexplained
  FROM night_audit.tie_out_rows JOIN (
    SELECT day, coalesce(max(as_of) FILTER (WHERE as_of <= now()), min(as_of)) AS as_of FROM night_audit.tie_out_rows
    GROUP BY day) newest USING (day, as_of);
CREATE OR REPLACE VIEW night_audit.bi_tie_out_periods AS
  SELECT fiscal_period, currency, sales_proceeds, open_at_end, settled_from_before, never_collected, settled, difference
  FROM night_audit.tie_out_periods JOIN (
    SELECT fiscal_period, coalesce(max(as_of) FILTER (WHERE as_of <= now()), min(as_of)) AS as_of
    FROM night_audit.tie_out_periods GROUP BY fiscal_period) newest USING (fiscal_period, as_of);
