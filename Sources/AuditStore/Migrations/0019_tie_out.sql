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
