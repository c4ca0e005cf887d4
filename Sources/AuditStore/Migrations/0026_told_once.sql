-- Every column of a run is filled in once: what it was told at its beginning, what it came to when it is committed or held,
-- where its report is when that has appeared. What fails after a night has come to its own end is said as well, once; and
-- whatever a run has told, it may be forgotten. It stands here whole because what was applied once is not changed.
CREATE OR REPLACE FUNCTION night_audit.guard_run() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tells boolean := OLD.publication IS NULL AND OLD.exit_status IS NULL
    AND coalesce(NEW.publication IN ('publishing', 'held'), false);
  appears boolean := coalesce(OLD.publication = 'publishing' AND NEW.publication = 'published', false);
  vanishes boolean := coalesce(OLD.publication = 'publishing' AND NEW.publication = 'not_published', false);
  is_forgotten boolean := coalesce(NEW.publication = 'forgotten', false) AND NEW.complete IS NULL;
  fails boolean := coalesce((OLD.exit_status IN (0, 2, 3, 4)
    OR OLD.exit_status = 78 AND OLD.publication IN ('publishing', 'published')) AND NEW.exit_status >= 64, false);
BEGIN
  IF (OLD.run_id, OLD.command, OLD.as_of, OLD.started_at, OLD.period_since, OLD.period_until, OLD.time_zone,
      OLD.configuration, OLD.is_nightly, OLD.host, OLD.version, OLD.process_id)
    IS DISTINCT FROM (NEW.run_id, NEW.command, NEW.as_of, NEW.started_at, NEW.period_since, NEW.period_until,
      NEW.time_zone, NEW.configuration, NEW.is_nightly, NEW.host, NEW.version, NEW.process_id)
    OR NOT tells AND (OLD.content, OLD.incomplete_reasons, OLD.orders_read, OLD.findings_opening, OLD.findings_new,
        OLD.findings_closed, OLD.findings_closing, OLD.lookback_orders, OLD.lookback_deliveries, OLD.newest_event,
        OLD.summary, OLD.held_because)
      IS DISTINCT FROM (NEW.content, NEW.incomplete_reasons, NEW.orders_read, NEW.findings_opening, NEW.findings_new,
        NEW.findings_closed, NEW.findings_closing, NEW.lookback_orders, NEW.lookback_deliveries, NEW.newest_event,
        NEW.summary, NEW.held_because)
    OR NEW.publication IS DISTINCT FROM OLD.publication AND NOT (tells OR appears OR vanishes OR is_forgotten)
    OR NEW.directory IS DISTINCT FROM OLD.directory AND NOT (tells OR appears)
    OR NEW.complete IS DISTINCT FROM OLD.complete AND NOT (appears OR is_forgotten)
    OR NEW.exit_status IS DISTINCT FROM OLD.exit_status AND NOT (OLD.exit_status IS NULL OR fails)
    OR NEW.finished_at IS DISTINCT FROM OLD.finished_at AND NOT (OLD.finished_at IS NULL OR fails)
  THEN
    RAISE EXCEPTION 'run % is as it was recorded; what a run has told is not changed', OLD.run_id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END $$;
