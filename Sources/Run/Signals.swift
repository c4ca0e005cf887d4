import Dispatch
import Glibc
import Synchronization
import UnixSignals

/// Turns SIGINT, SIGTERM and SIGHUP into a wish to stop; the second one ends the process at once.
///
/// Work that looks at the wish comes to a good end by itself. What waits for something else is cancelled a little later,
/// and what does not react to that either is left behind: whatever it waits for, the process ends within five seconds, and
/// the next one goes on where it was.
package enum Signals {
  /// What cancels the program's work.
  private static let cancellation = Mutex<(@Sendable () -> Void)?>(nil)

  /// How long work has to end by itself, and in all.
  private static let grace = DispatchTimeInterval.milliseconds(2_900)
  private static let limit = DispatchTimeInterval.milliseconds(4_700)

  /// Says what cancels the program's work.
  package static func cancelling(with cancel: @escaping @Sendable () -> Void) {
    cancellation.withLock { $0 = cancel }
  }

  /// Listens while `body` runs. Throws what it throws.
  package static func stopping<R: Sendable>(_ stop: StopSignal, while body: () async throws -> R) async rethrows -> R {
    // What was ignored before, as nohup does, stays so.
    let signals = await UnixSignalsSequence(trapping: [.sigint, .sigterm] + (isIgnored(SIGHUP) ? [] : [.sighup]))
    let listener = Task { for await signal in signals { heed(signal, stop) } }
    defer { listener.cancel() }
    return try await body()
  }

  private static func heed(_ signal: UnixSignal, _ stop: StopSignal) {
    let reason: StopSignal.Reason = signal == .sigint ? .interrupted : .terminated
    if stop.stopped != nil { _exit(reason.rawValue) }
    stop.stop(reason)
    // On threads of their own: those that tasks share may all be busy with what does not end.
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
