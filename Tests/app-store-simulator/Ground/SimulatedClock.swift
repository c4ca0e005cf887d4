import Foundation
import Synchronization

/// The simulated time: the machine's clock, or a time that only moves on request.
final class SimulatedClock: Sendable {
  /// A change of the clock; without any value the machine's clock is used again.
  struct Change: Decodable, Sendable {
    /// Milliseconds since the epoch.
    var now: Int64?
    var advance: Int64?
  }

  struct Reading: Sendable {
    var now: Int64
    /// True if the time was set. Only then are later events hidden: with the machine's clock a world is served whole.
    var isSimulated: Bool

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

  static var wall: Int64 { Int64(Date.now.timeIntervalSince1970 * 1_000) }
}
