import AppStore
import Foundation
import Logging
import Reconciliation

/// Pings a monitor by the convention of healthchecks: POST to the URL, or `/start` or `/fail` below it.
package struct Ping: Sendable {
  package enum Event: String, Sendable {
    case start = "/start"
    case success = ""
    case failure = "/fail"
  }

  private let url: URLComponents
  private let logger: Logger

  package init?(url: String, logger: Logger) {
    guard let url = URLComponents(string: url, encodingInvalidCharacters: false) else { return nil }
    (self.url, self.logger) = (url, logger)
  }

  /// Query and fragment stay behind the path.
  func address(of event: Event) -> String {
    var url = url
    while url.percentEncodedPath.hasSuffix("/") { url.percentEncodedPath.removeLast() }
    url.percentEncodedPath += event.rawValue
    return url.string ?? ""
  }

  package func send(_ event: Event, _ body: String) async {
    let transport = HTTPTransport(timeout: .seconds(10), concurrency: 1)
    // healthchecks keeps the first 100 kB.
    let text = String(body.prefix(90_000))
    var problem = await transport.post(text, to: address(of: event))
    // A lost ping would raise an alarm about a good night.
    if problem != nil, (try? await Attempts.backoff(1)) != nil {
      problem = await transport.post(text, to: address(of: event))
    }
    await transport.shutdown()
    // The URL is not logged, because it works like a password.
    if let problem { logger.warning("notify.pingUrl was not reached: \(problem)") }
  }
}
