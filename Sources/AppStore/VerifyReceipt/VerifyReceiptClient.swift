import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Reconciliation

/// A client of Apple's verifyReceipt. It asks production first and the sandbox after status 21007, or the reverse after
/// 21008; at most two requests per receipt.
package struct VerifyReceiptClient: Sendable {
  package struct Endpoint: Sendable {
    package var url: EndpointURL
    package var gate: RateGate

    package init(url: EndpointURL, gate: RateGate) {
      (self.url, self.gate) = (url, gate)
    }
  }

  private let transport: HTTPTransport
  private let production: Endpoint
  private let sandbox: Endpoint
  private let userAgent: String
  private let now: @Sendable () -> Instant

  package init(
    transport: HTTPTransport, production: Endpoint, sandbox: Endpoint, version: String,
    now: @escaping @Sendable () -> Instant
  ) {
    (self.transport, self.production, self.sandbox) = (transport, production, sandbox)
    userAgent = "night-audit/\(version)"
    self.now = now
  }

  /// Asks Apple about one receipt, with transport damage undone. Throws if the task is cancelled, or the request is no
  /// longer wanted before it is sent.
  /// - Parameters:
  ///   - first: sandbox only for receipts known to be from there, which saves a request.
  ///   - isWanted: polled before the first request is sent; nil: always wanted.
  package func verify(
    payload: String, sharedSecret: Secret?, first: AppleHost = .production,
    while isWanted: (@Sendable () -> Bool)? = nil
  ) async throws(CancellationError) -> ReceiptAnswer {
    let body = Self.requestBody(payload: payload, sharedSecret: sharedSecret)
    var host = first
    var answer = ReceiptAnswer(outcome: .unanswered(.unreachable("not asked")))
    while true {
      let endpoint = endpoint(of: host)
      let mayAskImmediately: @Sendable () -> Bool = { [gate = endpoint.gate] in !gate.isRateLimited }
      do throws(CancellationError) {
        try await endpoint.gate.admit(while: host == first ? isWanted : mayAskImmediately)
      } catch {
        if host == first || Task.isCancelled { throw error }
        answer.outcome = .unanswered(.deferredByRateLimit)
        return answer
      }
      answer.asked.append(host)
      let result = try await transport.send(request(to: endpoint.url, body: body))
      let receivedAt = now()
      let reading = VerifyReceiptReading.read(
        result, from: host, maySwitch: answer.asked.count == 1, receivedAt: receivedAt)
      answer.appleStatus = reading.appleStatus ?? answer.appleStatus
      answer.httpStatus = reading.httpStatus
      answer.warnings += reading.warnings
      switch reading.step {
      case .ask(let other): host = other
      case .finish(let outcome):
        answer.outcome = outcome
        if case .unanswered(let silence) = outcome, let retryAfter = silence.retryAfter {
          endpoint.gate.obey(retryAfter: retryAfter - receivedAt, httpStatus: reading.httpStatus)
        }
        return answer
      }
    }
  }

  package func isRateLimited(on host: AppleHost) -> Bool { endpoint(of: host).gate.isRateLimited }

  private func endpoint(of host: AppleHost) -> Endpoint { host == .production ? production : sandbox }

  private func request(to url: EndpointURL, body: ByteBuffer) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: url.text)
    request.method = .POST
    request.headers = ["Content-Type": "application/json", "Accept": "application/json", "User-Agent": userAgent]
    request.body = .bytes(body)
    return request
  }

  // An unrecognized payload is sent too, re-encoded if it is base64, because Apple decides whether it is a receipt.
  private static func receiptData(_ payload: String) -> String {
    ReceivedPayload(payload).base64
      ?? Base64Text.decodeReceipt(payload.utf8).map { Data($0).base64EncodedString() } ?? payload
  }

  // Apple's "requestBody". exclude-old-transactions is not set, because a refund of any period is wanted.
  private static func requestBody(payload: String, sharedSecret: Secret?) -> ByteBuffer {
    var fields = ["receipt-data": Self.receiptData(payload)]
    fields["password"] = sharedSecret?.reveal()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // A dictionary of strings always encodes; Apple would answer an empty body with 21000.
    return ByteBuffer(bytes: (try? encoder.encode(fields)) ?? Data())
  }
}
