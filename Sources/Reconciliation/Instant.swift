/// A point in time: microseconds since 1970-01-01T00:00:00Z, the resolution of Postgres's `timestamptz`.
///
/// The audit never asks a clock; every rule compares instants that were handed in.
public struct Instant: Hashable, Comparable, Sendable {
  /// Microseconds since the Unix epoch; negative before 1970.
  public var microseconds: Int64

  public init(microseconds: Int64) { self.microseconds = microseconds }

  /// From Apple's `_ms` fields, which are milliseconds since the Unix epoch. Out-of-range values are clamped.
  public init(milliseconds: Int64) {
    let (value, overflow) = milliseconds.multipliedReportingOverflow(by: 1_000)
    microseconds = overflow ? (milliseconds < 0 ? .min : .max) : value
  }

  /// From whole seconds since the Unix epoch.
  public init(seconds: Int64) { self.init(milliseconds: seconds.multipliedClamped(by: 1_000)) }

  /// Whole milliseconds since the Unix epoch, rounded toward the past.
  public var milliseconds: Int64 { microseconds.flooredQuotient(1_000) }

  /// Whole seconds since the Unix epoch, rounded toward the past.
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

  /// How long from `right` until `left`; negative when `left` is the earlier one.
  public static func - (left: Instant, right: Instant) -> Span {
    Span(
      microseconds: left.microseconds.addedClamped(
        right.microseconds == .min ? .max : -right.microseconds))
  }
}

/// A length of time in microseconds.
public struct Span: Hashable, Comparable, Sendable {
  /// Microseconds; negative for a span that runs backwards.
  public var microseconds: Int64

  public init(microseconds: Int64) { self.microseconds = microseconds }

  /// A span of whole seconds.
  public static func seconds(_ count: Int64) -> Span {
    Span(microseconds: count.multipliedClamped(by: 1_000_000))
  }
  /// A span of whole minutes.
  public static func minutes(_ count: Int64) -> Span { .seconds(count.multipliedClamped(by: 60)) }
  /// A span of whole hours.
  public static func hours(_ count: Int64) -> Span { .seconds(count.multipliedClamped(by: 3_600)) }
  /// A span of whole days of 24 hours.
  public static func days(_ count: Int64) -> Span { .seconds(count.multipliedClamped(by: 86_400)) }

  /// Whole seconds, rounded toward the past.
  public var wholeSeconds: Int64 { microseconds.flooredQuotient(1_000_000) }
  /// Whole days of 24 hours, rounded toward the past.
  public var wholeDays: Int64 { microseconds.flooredQuotient(86_400_000_000) }
  /// The same span without its sign.
  public var magnitude: Span { Span(microseconds: microseconds == .min ? .max : abs(microseconds)) }

  public static func < (left: Span, right: Span) -> Bool {
    left.microseconds < right.microseconds
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
