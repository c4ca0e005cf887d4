import Reconciliation
import SampleShops

/// The days of the sample shop: full days in UTC, and the hours from the last midnight to the as-of.
struct Timeline {
  let asOf: Instant
  let days: Int

  var lastMidnight: Instant { Instant(seconds: asOf.seconds - asOf.seconds % 86_400) }
  var start: Instant { midnight(days) }

  func midnight(_ days: Int) -> Instant { lastMidnight - .days(Int64(days)) }

  /// A random instant. Later days get more instants, because sales grow.
  func instant(_ random: inout SampleRandom) -> Instant {
    // The density rises from 0.65 on the first day to 1.45 on the last; this solves its integral.
    let mass = random.fraction() * 1.05
    let share = (-0.65 + (0.65 * 0.65 + 1.6 * mass).squareRoot()) / 0.8
    return Instant(milliseconds: start.milliseconds + Int64(share * Double(Int64(days) * 86_400_000)))
  }

  var firstDay: String { start.day }
  var lastDay: String { asOf.day }
  var businessDay: String { (lastMidnight - .seconds(1)).day }
}

extension Instant {
  var day: String { String(text.prefix(10)) }
}
