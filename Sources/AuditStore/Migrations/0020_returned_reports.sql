-- Which nights were saved for later ones to be compared with: those of before as if all of them were.
INSERT INTO night_audit.findings_met (run_id, as_of)
SELECT run_id, as_of FROM night_audit.runs WHERE is_nightly AND complete IS NOT NULL ON CONFLICT DO NOTHING;
