import Dispatch
import Glibc

/// Turns SIGINT and SIGTERM into a wish to stop; the second one ends the process at once.
package final class Signals {
  private let sources: [any DispatchSourceSignal]

  /// Listens until it is released.
  package init(_ stop: StopSignal) {
    let queue = DispatchQueue(label: "night-audit.signals")
    let handled: [(number: Int32, reason: StopSignal.Reason)] = [(SIGINT, .interrupted), (SIGTERM, .terminated)]
    sources = handled.map { number, reason in
      // Without this the default action would come first.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        if stop.stopped != nil { _exit(reason.rawValue) }
        stop.stop(reason)
      }
      source.resume()
      return source
    }
    // A reader that went away is an error of the write, not the end of the night.
    signal(SIGPIPE, SIG_IGN)
  }

  deinit { for source in sources { source.cancel() } }
}
