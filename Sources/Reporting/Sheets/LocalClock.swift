import Foundation
import Reconciliation

/// Turns instants into the time that clocks in one zone show.
///
/// Zones change their offset on quarters of an hour, so one question to the zone's table serves a whole quarter; a
/// million rows ask a few hundred times.
struct LocalClock {
  private let timeZone: TimeZone
  private var quarter: Int64?
  private var offset: Int64 = 0
  private var offsets: [Int64: Int64] = [:]

  private static let rememberedQuarters = 20_000

  init(timeZone: TimeZone) { self.timeZone = timeZone }

  /// Seconds since 1970-01-01 00:00:00 as the zone's clocks count them.
  mutating func localSeconds(_ instant: Instant) -> Int64 {
    let seconds = instant.seconds
    let quarter = seconds / 900
    if quarter != self.quarter {
      self.quarter = quarter
      offset = offset(in: quarter, of: seconds)
    }
    return seconds + offset
  }

  private mutating func offset(in quarter: Int64, of seconds: Int64) -> Int64 {
    if let known = offsets[quarter] { return known }
    let offset = Int64(timeZone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds))))
    // Dates from all over history are bad rows; they may not fill the memory.
    if offsets.count >= LocalClock.rememberedQuarters { offsets.removeAll(keepingCapacity: true) }
    offsets[quarter] = offset
    return offset
  }
}
