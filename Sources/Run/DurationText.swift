import Reconciliation

/// A length of time as people write it in the configuration: `90s`, `15m`, `1h`, `7d`.
package struct DurationText {
  /// The span, or nil for anything but a whole number followed by one of `s`, `m`, `h`, `d`.
  package static func parse(_ text: String) -> Span? {
    guard let unit = text.last, let count = Int64(text.dropLast()), count >= 0 else { return nil }
    switch unit {
    case "s": return .seconds(count)
    case "m": return .minutes(count)
    case "h": return .hours(count)
    case "d": return .days(count)
    default: return nil
    }
  }
}
