import Dispatch
import Glibc
import Synchronization

/// Turns SIGINT, SIGTERM and SIGHUP into a wish to stop; the second one ends the process at once.
///
/// Work that looks at the wish comes to a good end by itself. What waits for something else is cancelled a little later,
/// and what does not react to that either is left behind: whatever it waits for, the process ends within five seconds, and
/// the next one goes on where it was.
package final class Signals {
  private let sources: [any DispatchSourceSignal]

  /// What cancels the program's work.
  private static let cancellation = Mutex<(@Sendable () -> Void)?>(nil)

  /// How long work has to end by itself, and in all.
  private static let grace = DispatchTimeInterval.milliseconds(1_200)
  private static let limit = DispatchTimeInterval.milliseconds(4_700)

  /// Says what cancels the program's work.
  package static func cancelling(with cancel: @escaping @Sendable () -> Void) {
    cancellation.withLock { $0 = cancel }
  }

  /// Listens until it is released.
  package init(_ stop: StopSignal) {
    let queue = DispatchQueue(label: "night-audit.signals")
    let handled: [(number: Int32, reason: StopSignal.Reason)] = [
      (SIGINT, .interrupted), (SIGTERM, .terminated), (SIGHUP, .terminated),
    ]
    sources = handled.compactMap { number, reason in
      // Without this the default action would come first. What was ignored before, as nohup does, stays so.
      let wasIgnored = signal(number, SIG_IGN).map { unsafeBitCast($0, to: Int.self) == 1 } ?? false
      if number == SIGHUP, wasIgnored { return nil }
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        if stop.stopped != nil { _exit(reason.rawValue) }
        stop.stop(reason)
        queue.asyncAfter(deadline: .now() + Self.grace) { Self.cancellation.withLock { $0 }?() }
        queue.asyncAfter(deadline: .now() + Self.limit) { _exit(reason.rawValue) }
      }
      source.resume()
      return source
    }
  }

  deinit { for source in sources { source.cancel() } }
}
