-- Who signed some receipts nobody here can tell. Apple was asked about the ids that they name, and knew them; that was taken for a
-- proof. An app receipt of an earlier program is known for one only when it is asked about again.
ALTER TABLE night_audit.receipt_checks ADD COLUMN is_unproven boolean NOT NULL DEFAULT false;

UPDATE night_audit.receipt_checks SET is_unproven = true
WHERE subject_kind = 'receipt' AND outcome = 'verified' AND channel = 'serverApi' AND brought_count > 0
  AND payload_kind IN ('transaction', 'signed') AND signed_transaction_id IS NULL;
