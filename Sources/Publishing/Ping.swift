import AppStore
import Logging
import Reconciliation

/// Tells a monitor outside that the night has begun, has ended, or has failed: what is silent there is heard.
///
/// The convention is that of healthchecks: POST to the URL itself for success, to `/start` and to `/fail` below it.
package struct Ping: Sendable {
  package enum Event: String, Sendable {
    case start = "/start"
    case success = ""
    case failure = "/fail"
  }

  private let url: String
  private let logger: Logger

  package init(url: String, logger: Logger) {
    self.url = url.hasSuffix("/") ? String(url.dropLast()) : url
    self.logger = logger
  }

  /// Sends it. What cannot be sent is a warning: the night has its own end.
  package func send(_ event: Event, _ body: String) async {
    let transport = HTTPTransport(timeout: .seconds(10), concurrency: 1)
    // healthchecks keeps the first 100 kB.
    let problem = await transport.post(String(body.prefix(90_000)), to: url + event.rawValue)
    await transport.shutdown()
    // The URL is as good as a password.
    if let problem { logger.warning("notify.pingUrl was not reached: \(problem)") }
  }
}
