import Foundation
import Reconciliation

/// Converts instants to the local time of a zone. Zones change their offset on quarters of an hour, so one look-up
/// serves a quarter; a million rows need a few hundred.
struct LocalClock {
  private let timeZone: TimeZone
  /// Offsets by the last digits of the quarter, in a memory that dates of any century cannot fill. 85 days.
  private var offsets: [(quarter: Int64, seconds: Int64)] = []

  private static let rememberedQuarters = 1 << 13

  init(timeZone: TimeZone) { self.timeZone = timeZone }

  mutating func localSeconds(_ instant: Instant) -> Int64 {
    let seconds = instant.seconds
    let quarter = seconds / 900
    if offsets.isEmpty { offsets = Array(repeating: (.min, 0), count: Self.rememberedQuarters) }
    let place = Int(truncatingIfNeeded: quarter) & (Self.rememberedQuarters - 1)
    if offsets[place].quarter != quarter {
      let offset = timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))
      offsets[place] = (quarter, Int64(offset))
    }
    return seconds + offsets[place].seconds
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
}
