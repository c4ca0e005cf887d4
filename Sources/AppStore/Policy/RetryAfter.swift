import Foundation
import Reconciliation

/// The `Retry-After` header. RFC 9110 (10.2.3) puts seconds or a date in it; Apple's App Store Server API sends the
/// absolute UNIX time in milliseconds ("Identifying rate limits").
package enum RetryAfter {
  /// The longest wait that is believed.
  package static let longest = Span.hours(1)

  /// When to ask again: never before `now`, never later than `longest` after it. Nil for a value that says nothing.
  package static func parse(_ headerValue: String, now: Instant) -> Instant? {
    let text = headerValue.trimmingCharacters(in: .whitespaces)
    guard let instant = instant(number: text, now: now) ?? instant(date: text) else { return nil }
    return min(max(instant, now), now + longest)
  }

  /// For how long a side is asked nothing because one of its answers says when to come back.
  ///
  /// Only HTTP 429 is about all of us. What a server in trouble says is about the question, and may not cost the night: one
  /// 503 that asks for an hour is one machine of many.
  /// - Parameters:
  ///   - span: from the answer until the instant in it.
  ///   - httpStatus: of the answer.
  ///   - nightLeft: what is left of the time for asking; nil where no end is set.
  package static func hold(_ span: Span, httpStatus: Int?, nightLeft: Span?) -> Span {
    if httpStatus == 429 { return max(span, .seconds(0)) }
    guard let nightLeft else { return max(span, .seconds(0)) }
    return min(max(span, .seconds(0)), Span(microseconds: max(nightLeft.microseconds, 0) / 10))
  }

  private static func instant(number text: String, now: Instant) -> Instant? {
    guard !text.isEmpty, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
    // Digits beyond 64 bits are a time beyond any limit.
    let value = Int64(text) ?? .max
    if value > 1_000_000_000_000 { return Instant(milliseconds: value) }
    if value > 1_000_000_000 { return Instant(seconds: value) }
    return now + .seconds(value)
  }

  private static func instant(date text: String) -> Instant? {
    for format in dateFormats {
      // A lenient parser would find a date in every form for every text that is one in any.
      let strategy = Date.ParseStrategy(
        format: format, locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, isLenient: false)
      if let date = try? strategy.parse(text) { return Instant(seconds: Int64(date.timeIntervalSince1970)) }
    }
    return nil
  }

  /// RFC 9110, 5.6.7: the preferred form and the two obsolete ones that a recipient must accept.
  private static let dateFormats: [Date.FormatString] = [
    """
    \(weekday: .abbreviated), \(day: .twoDigits) \(month: .abbreviated) \(year: .padded(4)) \
    \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) GMT
    """,
    """
    \(weekday: .wide), \(day: .twoDigits)-\(month: .abbreviated)-\(year: .twoDigits) \
    \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) GMT
    """,
    """
    \(weekday: .abbreviated) \(month: .abbreviated) \(day: .defaultDigits) \
    \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) \
    \(year: .padded(4))
    """,
  ]
}
