import Synchronization

@testable import AppStore

/// A clock that only sleeping advances.
final class StoppedClock: Sendable {
  private let time = Mutex(Duration.zero)
  private let hook = Mutex<(@Sendable () -> Void)?>(nil)

  var slept: Duration { time.withLock { $0 } }

  func onFirstSleep(_ action: @escaping @Sendable () -> Void) { hook.withLock { $0 = action } }

  var gateClock: RateGate.Clock {
    RateGate.Clock(
      uptime: { self.slept },
      sleep: { span throws(CancellationError) in
        self.hook.withLock { $0.take() }?()
        self.time.withLock { $0 += span }
        await Task.yield()
      })
  }
}
