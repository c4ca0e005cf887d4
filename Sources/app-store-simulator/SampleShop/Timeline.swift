import Reconciliation
import SampleShops

/// The days that the sample covers: full days in UTC, and the hours of the last night until the as-of.
struct Timeline {
  let asOf: Instant
  let days: Int

  /// Midnight before the as-of.
  var lastMidnight: Instant { Instant(seconds: asOf.seconds - asOf.seconds % 86_400) }
  /// The beginning of the first day.
  var start: Instant { midnight(days) }

  /// So many days before the last midnight.
  func midnight(_ days: Int) -> Instant { lastMidnight - .days(Int64(days)) }

  /// An instant of the sample's days: business grows, so later days have more of them.
  func instant(_ random: inout SampleRandom) -> Instant {
    // Density 0.65 on the first day rising to 1.45 on the last: its integral, solved for the day.
    let mass = random.fraction() * 1.05
    let share = (-0.65 + (0.65 * 0.65 + 1.6 * mass).squareRoot()) / 0.8
    return Instant(milliseconds: start.milliseconds + Int64(share * Double(Int64(days) * 86_400_000)))
  }

  /// The first and the last day of it all, the night of the as-of included: `2026-11-19`.
  var firstDay: String { start.day }
  var lastDay: String { asOf.day }
  /// The business day before the as-of.
  var businessDay: String { (lastMidnight - .seconds(1)).day }
}

extension Instant {
  /// `2026-11-19`
  var day: String { String(text.prefix(10)) }
}
