/// A point in time in microseconds since 1970-01-01T00:00:00Z, as Postgres' `timestamptz`.
public struct Instant: Hashable, Comparable, Sendable {
  public var microseconds: Int64

  public init(microseconds: Int64) { self.microseconds = microseconds }

  /// Converts Apple's `_ms` fields, milliseconds since the Unix epoch. Out-of-range values are clamped.
  public init(milliseconds: Int64) {
    let (value, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000)
    microseconds = overflow ? (milliseconds < 0 ? .min : .max) : value
  }

  public init(seconds: Int64) { self.init(milliseconds: seconds.multipliedClamped(by: 1_000)) }

  /// Milliseconds since the Unix epoch, rounded toward the past.
  public var milliseconds: Int64 { microseconds.flooredQuotient(1_000) }

  public var seconds: Int64 { microseconds.flooredQuotient(1_000_000) }

  public static func < (left: Instant, right: Instant) -> Bool {
    left.microseconds < right.microseconds
  }

  public static func + (instant: Instant, span: Span) -> Instant {
    Instant(microseconds: instant.microseconds.addedClamped(span.microseconds))
  }

  public static func - (instant: Instant, span: Span) -> Instant {
    Instant(
      microseconds: instant.microseconds.addedClamped(span.microseconds == .min ? .max : -span.microseconds))
  }

  /// The span from `right` to `left`; negative if `left` is earlier.
  public static func - (left: Instant, right: Instant) -> Span {
    Span(
      microseconds: left.microseconds.addedClamped(
        right.microseconds == .min ? .max : -right.microseconds))
  }
}

/// A length of time in microseconds.
public struct Span: Hashable, Comparable, Sendable {
  public var microseconds: Int64

  public init(microseconds: Int64) { self.microseconds = microseconds }

  public static func seconds(_ count: Int64) -> Span {
    Span(microseconds: count.multipliedClamped(by: 1_000_000))
  }
  public static func minutes(_ count: Int64) -> Span { .seconds(count.multipliedClamped(by: 60)) }
  public static func hours(_ count: Int64) -> Span { .seconds(count.multipliedClamped(by: 3_600)) }
  public static func days(_ count: Int64) -> Span { .seconds(count.multipliedClamped(by: 86_400)) }

  public var wholeSeconds: Int64 { microseconds.flooredQuotient(1_000_000) }
  public var wholeDays: Int64 { microseconds.flooredQuotient(86_400_000_000) }
  public var magnitude: Span { Span(microseconds: microseconds == .min ? .max : abs(microseconds)) }

  public static func < (left: Span, right: Span) -> Bool {
    left.microseconds < right.microseconds
  }
}

extension Span {
  /// The largest whole unit, rounded down: `3 days`, `1 hour`, `20 minutes`.
  public var words: String {
    let seconds = magnitude.wholeSeconds
    let (count, unit): (Int64, String) =
      switch seconds {
      case 172_800...: (seconds / 86_400, "day")
      case 7_200...: (seconds / 3_600, "hour")
      case 120...: (seconds / 60, "minute")
      default: (seconds, "second")
      }
    return "\(count) \(unit)\(count == 1 ? "" : "s")"
  }
}

extension Int64 {
  func flooredQuotient(_ divisor: Int64) -> Int64 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }

  func addedClamped(_ other: Int64) -> Int64 {
    let (value, overflow) = addingReportingOverflow(other)
    return overflow ? (other < 0 ? .min : .max) : value
  }

  func multipliedClamped(by other: Int64) -> Int64 {
    let (value, overflow) = multipliedReportingOverflow(by: other)
    return overflow ? ((self < 0) != (other < 0) ? .min : .max) : value
  }
}
