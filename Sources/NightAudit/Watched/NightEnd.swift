import Reconciliation
import Run

/// When nights ended, for whoever watches whether there was one.
enum NightEnd {
  /// What a night may take: asking, and an hour for the rest.
  static func longest(_ settings: Settings) -> Reconciliation.Span {
    Reconciliation.Span(microseconds: settings.maxDuration.microseconds + Reconciliation.Span.hours(1).microseconds)
  }

  /// As SQL over `night_audit.runs`. A night that is made later than it was due, the day behind its period, counts as if it had
  /// come in time: that somebody makes one of the past again is no sign that tonight's has come. Of a time zone that the server
  /// does not know, as old and new names of places may be, UTC's days have to do.
  static func sql(_ settings: Settings) -> String {
    let due = """
      least(as_of, (period_until + 2)::timestamp AT TIME ZONE CASE
        WHEN time_zone IN (SELECT name FROM pg_catalog.pg_timezone_names) THEN time_zone ELSE 'UTC' END)
        + make_interval(secs => \(longest(settings).microseconds / 1_000_000))
      """
    return "CASE WHEN finished_at IS NOT NULL THEN least(finished_at, \(due)) END"
  }
}
