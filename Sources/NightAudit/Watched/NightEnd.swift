import Reconciliation
import Settings

enum NightEnd {
  static func longest(_ settings: Settings) -> Reconciliation.Span {
    Reconciliation.Span(microseconds: settings.maxDuration.microseconds + Reconciliation.Span.hours(1).microseconds)
  }

  /// SQL for the end of a night, at most the time at which it was due.
  ///
  /// Re-running a past night does not show that tonight's ran. Days are UTC's where the server does not know the time
  /// zone.
  static func sql(_ settings: Settings) -> String {
    let due = """
      least(as_of, (period_until + 2)::timestamp AT TIME ZONE CASE
        WHEN time_zone IN (SELECT name FROM pg_catalog.pg_timezone_names) THEN time_zone ELSE 'UTC' END)
        + make_interval(secs => \(longest(settings).microseconds / 1_000_000))
      """
    return "CASE WHEN finished_at IS NOT NULL THEN least(finished_at, \(due)) END"
  }
}
