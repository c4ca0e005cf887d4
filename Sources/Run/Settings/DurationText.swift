import Reconciliation

package struct DurationText {
  /// Parses `90s`, `15m`, `1h` or `7d`. Nil above 365,000 days, which may lead beyond the database's last instant.
  package static func parse(_ text: String) -> Span? {
    guard let unit = text.last, let count = Int64(text.dropLast()), count >= 0 else { return nil }
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
}
