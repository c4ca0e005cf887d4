-- As-of of the run that missed a receipt in the shop's relation; null for one that is there. Whether it is there again is
-- looked at for some nights: a relation may be empty while it is loaded.
ALTER TABLE night_audit.receipt_checks ADD COLUMN gone_at timestamptz;
UPDATE night_audit.receipt_checks SET gone_at = now() WHERE subject_kind = 'receipt' AND NOT is_wanted;
CREATE INDEX receipt_checks_gone ON night_audit.receipt_checks (gone_at, subject_id) WHERE gone_at IS NOT NULL;
