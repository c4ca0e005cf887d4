-- A refund that was stored before it could be one of some items only is one of all: what follows from the evidence says so.
UPDATE night_audit.transactions SET revocation_of_some_items = false
WHERE revoked_at IS NOT NULL AND revocation_of_some_items IS NULL;
