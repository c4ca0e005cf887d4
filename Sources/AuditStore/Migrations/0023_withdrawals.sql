-- Refunds that Apple took back: few, and those after an as-of are read apart.
CREATE INDEX transactions_withdrawn ON night_audit.transactions (revocation_withdrawn_at)
  WHERE revocation_withdrawn_at IS NOT NULL;
