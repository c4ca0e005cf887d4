import Synchronization

/// How many bytes of payloads are in memory at a time: those that wait to be asked about and those that are on their way.
final class ByteBudget: Sendable {
  private let limit: Int
  private let used = Mutex(0)

  init(limit: Int) { self.limit = limit }

  /// Takes as many as fit of what comes next; one at least when nothing else is in memory, however large it is.
  ///
  /// - Returns: how many of the sizes were taken.
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

  /// Takes what was given back and is in memory all the same.
  func takeBack(_ size: Int) { used.withLock { $0 += size } }

  func giveBack(_ size: Int) { used.withLock { $0 -= size } }

  /// Whether what is in memory leaves room for more.
  var hasRoom: Bool { used.withLock { $0 < limit } }
}
