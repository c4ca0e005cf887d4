import Synchronization

/// How long Apple takes to answer, counted in buckets as Prometheus wants them. What brought no reply is not counted: how
/// long nothing came is the timeout's doing.
package final class LatencyHistogram: Sendable {
  /// What was counted.
  package struct Counts: Hashable, Sendable {
    /// Replies that took at most the bound of the same place, each bucket with all before it.
    package fileprivate(set) var cumulative: [Int]
    package fileprivate(set) var count = 0
    /// Of all, in seconds.
    package fileprivate(set) var seconds = 0.0
  }

  /// Seconds; Apple usually takes a few, and the timeout is 30 s.
  package static let bounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30]

  private let state = Mutex(Counts(cumulative: Array(repeating: 0, count: bounds.count)))

  package init() {}

  package func record(_ duration: Duration) {
    let seconds = duration / .seconds(1)
    state.withLock { counts in
      counts.count += 1
      counts.seconds += seconds
      for (index, bound) in LatencyHistogram.bounds.enumerated() where seconds <= bound {
        counts.cumulative[index] += 1
      }
    }
  }

  package var counts: Counts { state.withLock { $0 } }
}
