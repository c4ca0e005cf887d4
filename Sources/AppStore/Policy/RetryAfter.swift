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
