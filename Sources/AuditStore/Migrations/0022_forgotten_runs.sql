-- When a run was forgotten: it had run by then, whatever the clocks said while it did.
ALTER TABLE night_audit.run_events DROP CONSTRAINT run_events_event_check,
  ADD CONSTRAINT run_events_event_check
    CHECK (event IN ('prepared_by', 'reviewed_by', 'signed_on', 'remark', 'forgotten'));
