import Foundation

/// The days that the sample covers: full days in UTC, and the hours of the last night until the as-of. All instants here
/// are milliseconds since the epoch.
struct Timeline {
  static let second: Int64 = 1_000
  static let minute = 60 * second
  static let hour = 60 * minute
  static let day = 24 * hour

  let asOf: Int64
  let days: Int

  /// Midnight before the as-of.
  var lastMidnight: Int64 { asOf - asOf % Timeline.day }
  /// The beginning of the first day.
  var start: Int64 { lastMidnight - Int64(days) * Timeline.day }

  /// An instant of the sample's days: business grows, so later days have more of them.
  func instant(_ random: inout SampleRandom) -> Int64 {
    // Density 0.65 on the first day rising to 1.45 on the last: its integral, solved for the day.
    let mass = random.fraction() * 1.05
    let share = (-0.65 + (0.65 * 0.65 + 1.6 * mass).squareRoot()) / 0.8
    return start + Int64(share * Double(Int64(days) * Timeline.day))
  }

  /// The first and the last day of it all, the night of the as-of included: `2026-11-19`.
  var firstDay: String { Timeline.dayText(start) }
  var lastDay: String { Timeline.dayText(asOf) }
  /// The business day before the as-of.
  var businessDay: String { Timeline.dayText(lastMidnight - 1) }

  /// `2026-11-19T22:14:03.250Z`
  static func text(_ instant: Int64) -> String {
    Date(timeIntervalSince1970: Double(instant) / 1_000).formatted(timestamp)
  }

  private static func dayText(_ instant: Int64) -> String { String(text(instant).prefix(10)) }

  private static let timestamp = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
}
