import Reconciliation

package enum DurationText {
  /// Parses `90s`, `15m`, `1h` or `7d`. Nil above 365,000 days, which may lead beyond the database's last instant.
  package static func parse(_ text: String) -> Span? {
    guard let unit = text.last, let count = Int64(digits: text.dropLast()) else { return nil }
    let span: Span
    switch unit {
    case "s": span = .seconds(count)
    case "m": span = .minutes(count)
    case "h": span = .hours(count)
    case "d": span = .days(count)
    default: return nil
    }
    return span <= .days(365_000) ? span : nil
  }

  /// The span in the largest unit that divides it; in days from a week on.
  static func text(_ span: Span) -> String {
    let seconds = span.wholeSeconds
    if span >= .days(7), seconds % 86_400 == 0 { return "\(seconds / 86_400)d" }
    if seconds > 0, seconds % 3_600 == 0 { return "\(seconds / 3_600)h" }
    return seconds > 0 && seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s"
  }

  static func problem(_ text: String) -> String {
    "\(text) is not a duration of at most 365000d; write a number and s, m, h or d, such as 90s or 7d"
  }
}
