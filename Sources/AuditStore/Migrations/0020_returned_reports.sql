-- Which nights were saved for later ones to be compared with: those of before as if all of them were.
INSERT INTO night_audit.findings_met (run_id, as_of)
SELECT run_id, as_of FROM night_audit.runs WHERE is_nightly AND complete IS NOT NULL ON CONFLICT DO NOTHING;

-- By what a workbook that comes back is known again: the newest of what had happened to findings when its report was made,
-- and the SHA-256 of the summary.json that its first sheet names. Empty in runs of before.
ALTER TABLE night_audit.runs ADD COLUMN newest_event bigint, ADD COLUMN summary text;

-- They stand here whole because what was applied once is not changed.
CREATE OR REPLACE FUNCTION night_audit.write_run(run uuid, kind text, changes jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE night_audit.runs r SET finished_at = n.finished_at, complete = n.complete,
    incomplete_reasons = n.incomplete_reasons, orders_read = n.orders_read, findings_opening = n.findings_opening,
    findings_new = n.findings_new, findings_closed = n.findings_closed, findings_closing = n.findings_closing,
    directory = n.directory, exit_status = n.exit_status, publication = n.publication, content = n.content,
    held_because = n.held_because, lookback_orders = n.lookback_orders, lookback_deliveries = n.lookback_deliveries,
    newest_event = n.newest_event, summary = n.summary
  FROM night_audit.runs o CROSS JOIN LATERAL jsonb_populate_record(o, changes) n
  WHERE r.run_id = run AND o.run_id = run;
  IF kind IS NOT NULL THEN
    PERFORM night_audit.append_trail(kind, run);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION night_audit.guard_run() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (OLD.run_id, OLD.command, OLD.as_of, OLD.started_at, OLD.period_since, OLD.period_until, OLD.time_zone,
      OLD.configuration, OLD.is_nightly, OLD.host, OLD.version, OLD.process_id)
    IS DISTINCT FROM (NEW.run_id, NEW.command, NEW.as_of, NEW.started_at, NEW.period_since, NEW.period_until,
      NEW.time_zone, NEW.configuration, NEW.is_nightly, NEW.host, NEW.version, NEW.process_id)
    OR OLD.content IS NOT NULL AND (OLD.content, OLD.incomplete_reasons, OLD.orders_read, OLD.findings_opening,
        OLD.findings_new, OLD.findings_closed, OLD.findings_closing, OLD.lookback_orders, OLD.lookback_deliveries,
        OLD.newest_event, OLD.summary)
      IS DISTINCT FROM (NEW.content, NEW.incomplete_reasons, NEW.orders_read, NEW.findings_opening,
        NEW.findings_new, NEW.findings_closed, NEW.findings_closing, NEW.lookback_orders, NEW.lookback_deliveries,
        NEW.newest_event, NEW.summary)
    OR OLD.complete IS NOT NULL AND NEW.complete IS DISTINCT FROM OLD.complete
      AND NEW.publication IS DISTINCT FROM 'forgotten'
    OR OLD.publication IS DISTINCT FROM NEW.publication AND OLD.publication IS NOT NULL
      AND NEW.publication IS DISTINCT FROM 'forgotten'
      AND NOT (OLD.publication = 'publishing' AND coalesce(NEW.publication IN ('published', 'not_published'), false))
  THEN
    RAISE EXCEPTION 'run % is as it was recorded; what a run has told is not changed', OLD.run_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
