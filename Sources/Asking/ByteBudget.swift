import Synchronization

/// A limit for the bytes of payloads in memory, both waiting and under way.
final class ByteBudget: Sendable {
  private let limit: Int
  private let used = Mutex(0)

  init(limit: Int) { self.limit = limit }

  /// Takes as many of the next sizes as fit, and returns their number. Into empty memory at least one fits.
  func take(_ sizes: some Sequence<Int>) -> Int {
    used.withLock { used in
      var count = 0
      for size in sizes {
        guard used == 0 || used + size <= limit else { break }
        used += size
        count += 1
      }
      return count
    }
  }

  /// Counts bytes again that were released but are still in memory.
  func takeBack(_ size: Int) { used.withLock { $0 += size } }

  func releaseBytes(_ size: Int) { used.withLock { $0 -= size } }

  var hasRoom: Bool { used.withLock { $0 < limit } }
}
