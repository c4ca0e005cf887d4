import AppStore
import Foundation
import Logging
import Reconciliation

/// Tells a monitor outside that the night has begun, has ended, or has failed: what is silent there is heard.
///
/// The convention is that of healthchecks: POST to the URL itself for success, to `/start` and to `/fail` below its path.
package struct Ping: Sendable {
  package enum Event: String, Sendable {
    case start = "/start"
    case success = ""
    case failure = "/fail"
  }

  private let url: URLComponents
  private let logger: Logger

  /// nil for what is no URL.
  package init?(url: String, logger: Logger) {
    guard let url = URLComponents(string: url, encodingInvalidCharacters: false) else { return nil }
    self.url = url
    self.logger = logger
  }

  /// Where it is told. What stands behind the path stays behind it.
  func address(of event: Event) -> String {
    var url = url
    while url.percentEncodedPath.hasSuffix("/") { url.percentEncodedPath.removeLast() }
    url.percentEncodedPath += event.rawValue
    return url.string ?? ""
  }

  /// Sends it. What cannot be sent is a warning: the night has its own end.
  package func send(_ event: Event, _ body: String) async {
    let transport = HTTPTransport(timeout: .seconds(10), concurrency: 1)
    // healthchecks keeps the first 100 kB.
    let problem = await transport.post(String(body.prefix(90_000)), to: address(of: event))
    await transport.shutdown()
    // The URL is as good as a password.
    if let problem { logger.warning("notify.pingUrl was not reached: \(problem)") }
  }
}
