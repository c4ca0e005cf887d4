import Foundation
import Synchronization

/// The time of day in the simulation: the machine's, or one that stands still until a rehearsal moves it.
final class SimulatedClock: Sendable {
  /// A change of the clock; with neither the machine's clock is used again.
  struct Change: Decodable, Sendable {
    /// Milliseconds since the epoch.
    var now: Int64?
    /// Milliseconds by which the simulated time goes on.
    var advance: Int64?
  }

  /// A moment as the interfaces see it.
  struct Reading: Sendable {
    /// Milliseconds since the epoch.
    var now: Int64
    /// Whether a rehearsal sets the time. Only then what lies in its future has not happened yet: a world that was made
    /// for another date is served whole by the machine's clock.
    var isSimulated: Bool

    /// The last moment whose events have happened.
    var horizon: Int64 { isSimulated ? now : .max }
  }

  private let set: Mutex<Int64?>

  init(now: Int64?) { set = Mutex(now) }

  var reading: Reading {
    let set = set.withLock { $0 }
    return Reading(now: set ?? Self.wall, isSimulated: set != nil)
  }

  func apply(_ change: Change) {
    set.withLock { set in
      if let now = change.now { set = now }
      if let advance = change.advance { set = (set ?? Self.wall) + advance }
      if change.now == nil, change.advance == nil { set = nil }
    }
  }

  /// The machine's clock in milliseconds since the epoch.
  static var wall: Int64 { Int64(Date.now.timeIntervalSince1970 * 1_000) }
}
