/// How fast requests may start: at an even pace, with small bursts to catch up after a late wake-up.
///
/// Pure: the caller hands in the time, as the duration since a fixed origin on a monotonic clock. In any window of one
/// second at most `rate` requests (rounded up) are granted, bursts included, whatever the times of asking are.
package struct TokenBucket: Sendable {
  /// Rates above this per second are not limited at all; the record of recent grants would outgrow its use.
  package static let highestRate = 100_000.0

  private struct Pace: Sendable {
    var interval: Duration
    /// How far grants may run ahead of the even pace: at most a tenth of a second's worth.
    var lead: Duration
    /// The latest grants, as many as one second may have; `oldest` is where the next one overwrites.
    var grants: [Duration] = []
    var oldest = 0
    var capacity: Int
    /// When the next request would start at an even pace.
    var due: Duration?

    func earliest(now: Duration) -> Duration {
      var earliest = due.map { $0 - lead } ?? now
      // The pace alone would let a burst and the refill that follows it share one second.
      if grants.count == capacity { earliest = max(earliest, grants[oldest] + .seconds(1)) }
      return earliest
    }

    mutating func grant(now: Duration) {
      due = max(due ?? now, now) + interval
      if grants.count < capacity {
        grants.append(now)
      } else {
        grants[oldest] = now
        oldest = (oldest + 1) % capacity
      }
    }
  }

  private var pace: Pace?
  private var shutUntil: Duration?

  /// The even pace: from one request to the next; zero for as fast as asked.
  var interval: Duration { pace?.interval ?? .zero }
  /// How many requests a tenth of a second is worth; one at least.
  private(set) var burst = 1

  /// - Parameter rate: requests a second; nil, zero or less: as fast as asked.
  package init(rate: Double?) {
    guard let rate, rate > 0, rate <= Self.highestRate else { return }
    let interval = Duration.nanoseconds(Int64(max(1_000_000_000 / rate, 1).rounded(.up).clamped))
    burst = max(1, Int(rate / 10))
    pace = Pace(interval: interval, lead: interval * (burst - 1), capacity: Int(rate.rounded(.up)))
  }

  /// Grants one request by answering zero; otherwise answers how long to wait before asking again, and grants nothing.
  package mutating func take(now: Duration) -> Duration {
    var earliest = shutUntil ?? now
    if let pace { earliest = max(earliest, pace.earliest(now: now)) }
    guard earliest <= now else { return earliest - now }
    shutUntil = nil
    pace?.grant(now: now)
    return .zero
  }

  /// Grants nothing until then: what a server asked for with `Retry-After`. An earlier, longer wish stays.
  package mutating func shut(until instant: Duration) {
    shutUntil = max(shutUntil ?? instant, instant)
  }
}

extension Double {
  /// Within what `Int64` can hold, so that converting cannot trap.
  fileprivate var clamped: Double { Swift.min(self, 9e18) }
}
