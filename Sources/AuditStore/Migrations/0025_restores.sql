-- Restores by the purchase that they give again: whoever claims the one claims the other.
CREATE INDEX transactions_restores ON night_audit.transactions (original_transaction_id, environment)
  WHERE original_transaction_id <> transaction_id AND is_renewal IS NULL AND expires_at IS NULL;
