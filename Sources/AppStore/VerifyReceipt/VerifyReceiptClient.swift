import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import Reconciliation

/// Apple's verifyReceipt: one receipt in, one answer out.
///
/// Production is asked first and the sandbox when production says so (21007), or the other way round (21008); never more
/// than two requests a receipt. Nothing is tried again here: what stays unanswered has its own schedule.
package struct VerifyReceiptClient: Sendable {
  /// Apple's addresses (App Store Receipts, "verifyReceipt").
  package static let productionURL = "https://buy.itunes.apple.com/verifyReceipt"
  /// See `productionURL`.
  package static let sandboxURL = "https://sandbox.itunes.apple.com/verifyReceipt"

  /// Where one side is reached, and how fast.
  package struct Endpoint: Sendable {
    package var url: EndpointURL
    package var gate: RateGate

    package init(url: EndpointURL, gate: RateGate) {
      self.url = url
      self.gate = gate
    }
  }

  private let transport: HTTPTransport
  private let production: Endpoint
  private let sandbox: Endpoint
  private let userAgent: String
  private let now: @Sendable () -> Instant

  /// - Parameters:
  ///   - version: of this program, for the `User-Agent` header.
  ///   - now: the time of day, to date answers that do not date themselves and to read `Retry-After`.
  package init(
    transport: HTTPTransport, production: Endpoint, sandbox: Endpoint, version: String,
    now: @escaping @Sendable () -> Instant
  ) {
    self.transport = transport
    self.production = production
    self.sandbox = sandbox
    userAgent = "night-audit/\(version)"
    self.now = now
  }

  /// Asks Apple about one receipt. Throws only when the task is cancelled before there is an answer, or when nobody wants it
  /// any more before the first request is sent.
  /// - Parameters:
  ///   - payload: the base64 of an app receipt or old transaction receipt; what transport did to it is undone.
  ///   - sharedSecret: the app's; nil when none is configured.
  ///   - first: the side to begin with. Sandbox only for receipts that are known to be from there: it saves a request.
  ///   - isWanted: whether the first request is still to be sent once its turn comes; nil: it is.
  package func verify(
    payload: String, sharedSecret: Secret?, first: AppleHost = .production,
    while isWanted: (@Sendable () -> Bool)? = nil
  ) async throws(CancellationError) -> ReceiptAnswer {
    let body = Self.requestBody(payload: payload, sharedSecret: sharedSecret)
    var host = first
    var answer = ReceiptAnswer(outcome: .unanswered(Silence(reason: .unreachable, detail: "not asked")))
    while true {
      let endpoint = endpoint(of: host)
      let isSoon: @Sendable () -> Bool = { [gate = endpoint.gate] in !gate.isHeldUp }
      do throws(CancellationError) {
        try await endpoint.gate.admit(while: host == first ? isWanted : isSoon)
      } catch {
        if host == first || Task.isCancelled { throw error }
        answer.outcome = .unanswered(.heldUp)
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

  /// Whether a side gets no question for a while, because Apple has said when to come back.
  package func isHeldUp(on host: AppleHost) -> Bool { endpoint(of: host).gate.isHeldUp }

  private func endpoint(of host: AppleHost) -> Endpoint {
    switch host {
    case .production: production
    case .sandbox: sandbox
    }
  }

  private func request(to url: EndpointURL, body: ByteBuffer) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: url.text)
    request.method = .POST
    request.headers = ["Content-Type": "application/json", "Accept": "application/json", "User-Agent": userAgent]
    request.body = .bytes(body)
    return request
  }

  /// What Apple is to judge: the receipt as its sender meant it. What is none is sent as base64 where it is some, and as it
  /// stands where it is none: the verdict is Apple's.
  private static func receiptData(_ payload: String) -> String {
    ReceivedPayload(payload).base64
      ?? Base64Text.decodeReceipt(payload.utf8).map { Data($0).base64EncodedString() } ?? payload
  }

  /// Apple's "requestBody". Old transactions are not excluded: a refund of any period is wanted.
  private static func requestBody(payload: String, sharedSecret: Secret?) -> ByteBuffer {
    var fields = ["receipt-data": Self.receiptData(payload)]
    fields["password"] = sharedSecret?.reveal()
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // A dictionary of texts always encodes; an empty body would be answered with 21000 and noticed.
    return ByteBuffer(bytes: (try? encoder.encode(fields)) ?? Data())
  }
}
