import Foundation
import Reconciliation

/// The `Retry-After` header: seconds or a date (RFC 9110, 10.2.3), or UNIX milliseconds from the App Store Server API.
package enum RetryAfter {
  package static let longest = Span.hours(1)

  /// Parses the header to an instant between `now` and `now + longest`; nil if the value is invalid.
  package static func parse(_ headerValue: String, now: Instant) -> Instant? {
    let text = headerValue.trimmingCharacters(in: .whitespaces)
    guard let instant = instant(number: text, now: now) ?? instant(date: text) else { return nil }
    return min(max(instant, now), now + longest)
  }

  /// How long a host is asked nothing after a `Retry-After`. `span` is relative to the answer. Only HTTP 429 concerns
  /// every request. A 5xx may come from one machine of many, so its pause is at most a tenth of `remainingNight`.
  package static func pause(_ span: Span, httpStatus: Int?, remainingNight: Span?) -> Span {
    let span = max(span, .seconds(0))
    guard httpStatus != 429, let remainingNight else { return span }
    return min(span, Span(microseconds: max(remainingNight.microseconds, 0) / 10))
  }

  private static func instant(number text: String, now: Instant) -> Instant? {
    guard !text.isEmpty, text.utf8.allSatisfy(isDigit) else { return nil }
    // Digits beyond 64 bits are a time beyond any limit.
    let value = Int64(text) ?? .max
    if value > 1_000_000_000_000 { return Instant(milliseconds: value) }
    if value > 1_000_000_000 { return Instant(seconds: value) }
    return now + .seconds(value)
  }

  static func instant(date text: String) -> Instant? {
    for format in dateFormats {
      // Strict because a lenient parser accepts the text of one format in every format.
      let strategy = Date.ParseStrategy(
        format: format, locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, isLenient: false)
      if let date = try? strategy.parse(text) { return Instant(seconds: Int64(date.timeIntervalSince1970)) }
    }
    return nil
  }

  /// RFC 9110, 5.6.7: the preferred format and the two obsolete ones that a recipient must accept.
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
