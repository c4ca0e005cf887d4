import Reconciliation

/// A length of time as people write it in the configuration: `90s`, `15m`, `1h`, `7d`.
package struct DurationText {
  /// The span, or nil for anything but a whole number followed by one of `s`, `m`, `h`, `d`, and for more than 365,000
  /// days: an instant so far away may be none that the database knows.
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
