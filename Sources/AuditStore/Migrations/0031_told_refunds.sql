-- When Apple last said whether a purchase was refunded. That it had ever been said counted as said by whatever came later,
-- through channels that cannot tell. Where the evidence is gone (evidence.retention) it was said no earlier than the first word.
ALTER TABLE night_audit.transactions ADD COLUMN revocation_told_at timestamptz;
UPDATE night_audit.transactions t SET revocation_told_at = coalesce(
  (SELECT max(e.signed_at) FROM night_audit.evidence e
    WHERE e.transaction_id = t.transaction_id AND e.environment = t.environment AND e.tells_revocation),
  t.first_signed_at, t.purchased_at, t.signed_at)
WHERE t.tells_revocation;
-- What others read keeps its columns.
DO $$
BEGIN
  EXECUTE (
    SELECT 'CREATE OR REPLACE VIEW night_audit.bi_transactions AS SELECT '
      || string_agg(
        CASE column_name WHEN 'tells_revocation' THEN 'revocation_told_at IS NOT NULL AS ' ELSE '' END
        || quote_ident(column_name), ', ' ORDER BY ordinal_position)
      || ', revocation_told_at FROM night_audit.transactions'
    FROM information_schema.columns WHERE table_schema = 'night_audit' AND table_name = 'bi_transactions');
END $$;
ALTER TABLE night_audit.transactions DROP COLUMN tells_revocation;
