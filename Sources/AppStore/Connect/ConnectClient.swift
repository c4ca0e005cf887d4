import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Reconciliation

/// A client for the report downloads of Apple's App Store Connect API.
/// It sends one request at a time and retries failures that can pass within minutes: a rejected token, a version that
/// Apple names, a broken connection, a short rate limit. Other failures are left to the next night.
package struct ConnectClient: Sendable {
  private static let attempts = 3
  private static let longestWait = Span.minutes(5)

  private let transport: HTTPTransport
  private let base: String
  private let token: AppleToken
  private let userAgent: String
  private let now: @Sendable () -> Instant
  private let wait: @Sendable (Span) async throws(CancellationError) -> Void

  /// - Parameter transport: must not decompress: the `Content-Encoding` of Apple's reports is not a registered one.
  package init(
    transport: HTTPTransport, url: EndpointURL, credentials: ConnectCredentials, version: String,
    now: @escaping @Sendable () -> Instant, wait: @escaping @Sendable (Span) async throws(CancellationError) -> Void
  ) throws(AppleKeyError) {
    self.transport = transport
    base = url.base
    token = try AppleToken(credentials)
    userAgent = "night-audit/\(version)"
    (self.now, self.wait) = (now, wait)
  }

  /// Downloads one report. Throws only if the task is cancelled.
  package func download(_ query: ConnectQuery) async throws(CancellationError) -> ConnectAnswer {
    var answer = ConnectAnswer(outcome: .unanswered(.unreachable("not asked")))
    var query = query
    var (failures, hasFreshToken, hasOtherVersion, hasWaited) = (0, false, false, false)
    while true {
      let exchange = try await ask(query)
      answer.requests += 1
      answer.httpStatus = exchange.httpStatus
      switch exchange.meaning {
      case .outcome(let outcome):
        answer.outcome = outcome
        return answer
      case .unauthorized:
        answer.outcome = .refused(.token)
        if hasFreshToken { return answer }
        hasFreshToken = true
        await token.renew()
      case .version(let named):
        answer.outcome = .otherVersion(named)
        guard !hasOtherVersion, let named else { return answer }
        hasOtherVersion = true
        query = query.inVersion(named)
        answer.warnings.append(
          "Apple demands version \(named) of this report; set appStoreConnect.salesVersion to “\(named)” (with quotes)")
      case .later(let silence):
        answer.outcome = .unanswered(silence)
        failures += 1
        guard failures < Self.attempts else { return answer }
        let pause = pause(silence, after: failures)
        if pause > Self.longestWait || silence.reason == .rateLimited && hasWaited { return answer }
        if silence.reason == .rateLimited { hasWaited = true }
        try await wait(pause)
      }
    }
  }

  private func pause(_ silence: Silence, after failures: Int) -> Span {
    if let retryAfter = silence.retryAfter { return retryAfter - now() }
    return Span(Backoff().delay(attempt: failures))
  }

  private func ask(
    _ query: ConnectQuery
  ) async throws(CancellationError) -> (meaning: ConnectReading.Meaning, httpStatus: Int?) {
    guard let token = await token.token(now: now()) else { return (.unauthorized, nil) }
    var request = HTTPClientRequest(url: base + query.path)
    request.headers = [
      "Authorization": "Bearer \(token.reveal())", "Accept": "application/a-gzip", "User-Agent": userAgent,
    ]
    let result = try await transport.send(request)
    return (ConnectReading.read(result, query: query, receivedAt: now()), try? result.get().status)
  }
}
