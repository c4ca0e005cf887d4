import Foundation
import Reconciliation

/// Converts instants to the local time of a zone.
///
/// Zones change their offset on quarters of an hour, so one look-up serves a quarter; a million rows need a few
/// hundred.
struct LocalClock {
  private let timeZone: TimeZone
  private var quarter: Int64?
  private var offset: Int64 = 0
  private var offsets: [Int64: Int64] = [:]

  private static let rememberedQuarters = 20_000

  init(timeZone: TimeZone) { self.timeZone = timeZone }

  mutating func localSeconds(_ instant: Instant) -> Int64 {
    let seconds = instant.seconds
    let quarter = seconds / 900
    if quarter != self.quarter {
      self.quarter = quarter
      offset = offset(in: quarter, of: seconds)
    }
    return seconds + offset
  }

  /// The local time, `2026-11-19 23:14:03`.
  mutating func text(_ instant: Instant) -> String {
    String(Instant(seconds: localSeconds(instant)).text.replacing("T", with: " ").dropLast())
  }

  /// Replaces each time in UTC, `2026-11-19T22:14:03Z`, by the local one.
  mutating func localTimes(in text: String) -> String {
    // Most texts have no time, and a search costs more than a look at the bytes.
    guard text.utf8.contains(UInt8(ascii: "Z")) else { return text }
    var local = text
    for match in text.matches(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/).reversed() {
      guard let date = try? Date(String(match.output), strategy: .iso8601) else { continue }
      local.replaceSubrange(match.range, with: self.text(Instant(seconds: Int64(date.timeIntervalSince1970))))
    }
    return local
  }

  private mutating func offset(in quarter: Int64, of seconds: Int64) -> Int64 {
    if let known = offsets[quarter] { return known }
    let offset = Int64(timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    // Bad rows may have dates of any century, and must not fill the memory.
    if offsets.count >= LocalClock.rememberedQuarters { offsets.removeAll(keepingCapacity: true) }
    offsets[quarter] = offset
    return offset
  }
}
