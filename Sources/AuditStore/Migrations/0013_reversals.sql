-- That Apple told of a refund taken back says that there was one, whether or not anybody had told of it. Empty where nothing
-- was said, so that rows of before are as the trail covers them.
ALTER TABLE night_audit.evidence ADD COLUMN reverses_refund boolean;
CREATE OR REPLACE VIEW night_audit.bi_evidence AS SELECT * FROM night_audit.evidence;
