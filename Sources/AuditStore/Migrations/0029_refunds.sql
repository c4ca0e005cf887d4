-- Refunds: few, and of those after an as-of is read what stood before.
CREATE INDEX transactions_revoked ON night_audit.transactions (revoked_at) WHERE revoked_at IS NOT NULL;
