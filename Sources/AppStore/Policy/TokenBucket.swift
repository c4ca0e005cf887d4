/// A rate limit at an even pace, with small bursts after a late wake-up. Pure: the caller passes the time. In any
/// window of one second at most `rate` requests (rounded up) are granted, bursts included.
package struct TokenBucket: Sendable {
  /// Rates above this per second are unlimited, because the record of recent grants would become too large.
  package static let highestRate = 100_000.0

  private struct Pace: Sendable {
    var interval: Duration
    /// How far grants may run ahead of the even pace: at most a tenth of a second's worth.
    var lead: Duration
    /// Ring buffer of the grants of one second; `oldest` is overwritten next.
    var grants: [Duration] = []
    var oldest = 0
    var capacity: Int
    var due: Duration?

    func earliest(now: Duration) -> Duration {
      var earliest = due.map { $0 - lead } ?? now
      // The pace alone would let a burst and the refill after it share one second.
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

  var interval: Duration { pace?.interval ?? .zero }
  /// The number of requests in a tenth of a second; at least one.
  private(set) var burst = 1

  /// - Parameter rate: requests per second; nil or at most zero: unlimited.
  package init(rate: Double?) {
    guard let rate, rate > 0, rate <= Self.highestRate else { return }
    // Within the range of `Int64`, so that the conversion cannot trap.
    let interval = Duration.nanoseconds(Int64(min(max(1_000_000_000 / rate, 1).rounded(.up), 9e18)))
    burst = max(1, Int(rate / 10))
    pace = Pace(interval: interval, lead: interval * (burst - 1), capacity: Int(rate.rounded(.up)))
  }

  /// Grants one request and returns zero, or returns the wait before the next attempt.
  package mutating func take(now: Duration) -> Duration {
    var earliest = shutUntil ?? now
    if let pace { earliest = max(earliest, pace.earliest(now: now)) }
    guard earliest <= now else { return earliest - now }
    shutUntil = nil
    pace?.grant(now: now)
    return .zero
  }

  /// Grants nothing until the instant of a `Retry-After`. It never shortens an earlier one.
  package mutating func shut(until instant: Duration) {
    shutUntil = max(shutUntil ?? instant, instant)
  }
}
