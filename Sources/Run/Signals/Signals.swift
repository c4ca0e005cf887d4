import Dispatch
import Glibc
import Synchronization
import UnixSignals

/// Handles SIGINT, SIGTERM and SIGHUP: the first requests a stop, the second ends the process at once. Work that
/// ignores the stop signal is cancelled after a grace period, and the process exits within five seconds in any case.
package enum Signals {
  private static let cancellation = Mutex<(@Sendable () -> Void)?>(nil)

  // The time from the signal to cancellation, and to exit.
  private static let grace = DispatchTimeInterval.milliseconds(2_900)
  private static let limit = DispatchTimeInterval.milliseconds(4_700)

  package static func cancelling(with cancel: @escaping @Sendable () -> Void) { cancellation.withLock { $0 = cancel } }

  package static func stopping<R: Sendable>(_ stop: StopSignal, while body: () async throws -> R) async rethrows -> R {
    // A signal that is ignored, as by nohup, stays ignored.
    let signals = await UnixSignalsSequence(trapping: [.sigint, .sigterm] + (isIgnored(SIGHUP) ? [] : [.sighup]))
    let listener = Task { for await signal in signals { stopOnSignal(signal, stop) } }
    defer { listener.cancel() }
    return try await body()
  }

  private static func stopOnSignal(_ signal: UnixSignal, _ stop: StopSignal) {
    let reason: StopSignal.Reason = signal == .sigint ? .interrupted : .terminated
    if stop.stopped != nil { _exit(reason.rawValue) }
    stop.stop(reason)
    // On a separate queue, because all threads of the cooperative pool may be blocked.
    let queue = DispatchQueue(label: "night-audit.signals")
    queue.asyncAfter(deadline: .now() + grace) { cancellation.withLock { $0 }?() }
    queue.asyncAfter(deadline: .now() + limit) { _exit(reason.rawValue) }
  }

  private static func isIgnored(_ signal: Int32) -> Bool {
    var action = sigaction()
    return sigaction(signal, nil, &action) == 0
      && unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
