import AppStore
import Foundation
import Reconciliation

/// How the receipts of one app are checked: which client, which secret, which roots; and what its answers mean.
package struct AppChannel: Sendable {
  package let app: Settings.App
  private let client: VerifyReceiptClient
  private let sharedSecret: Secret?
  private let signed: JWSVerifier?

  /// Reads the app's key files.
  ///
  /// - Throws: `ConfigurationError` for a key file that cannot be read, or a URL that secrets may not travel to.
  package init(
    app: Settings.App, settings: Settings, transport: HTTPTransport, roots: TrustedRoots?,
    now: @escaping @Sendable () -> Instant
  ) throws {
    self.app = app
    sharedSecret = try app.sharedSecretFile.map {
      try AppChannel.secret(in: $0, key: "app.\(app.name).sharedSecretFile")
    }
    signed = roots.map { JWSVerifier(roots: $0) }
    let rate = settings.requestsPerSecond > 0 ? settings.requestsPerSecond : nil
    client = VerifyReceiptClient(
      transport: transport,
      production: try AppChannel.endpoint(settings.verifyReceiptURL, "appstore.verifyReceiptUrl", rate: rate),
      // The sandbox grants a tenth of what production does.
      sandbox: try AppChannel.endpoint(
        settings.verifyReceiptSandboxURL, "appstore.verifyReceiptSandboxUrl", rate: rate.map { $0 / 10 }),
      version: Version.current, now: now)
  }

  /// What a key file holds, without the line break at its end.
  static func secret(in path: String, key: String) throws -> Secret {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw ConfigurationError(key: key, problem: "\(path) cannot be read; check that it exists and who may read it")
    }
    let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !trimmed.isEmpty else { throw ConfigurationError(key: key, problem: "\(path) is empty") }
    return Secret(trimmed)
  }

  private static func endpoint(
    _ text: String, _ key: String, rate: Double?
  ) throws -> VerifyReceiptClient.Endpoint {
    do throws(EndpointURLError) {
      return VerifyReceiptClient.Endpoint(url: try EndpointURL(text), gate: RateGate(rate: rate))
    } catch {
      throw ConfigurationError(key: key, problem: "\(error)")
    }
  }

  /// What is known about a proof without asking anybody; nil when Apple must be asked.
  package func judgeOffline(_ due: DueCheck) -> CheckResult? {
    let kind = ReceiptKind.detect(payload: due.payload)
    var result = CheckResult(
      subject: due.subject, orderId: due.orderId, kind: kind, outcome: .rejected, reason: .malformed, channel: .offline)
    switch kind {
    case .malformed: return result
    case .app, .transaction: return nil
    case .signed:
      guard let signed else {
        result.outcome = .unanswered
        result.reason = .noRoots
        return result
      }
      // A line break at the end is the client's, not the signer's.
      let text = due.payload.trimmingCharacters(in: .whitespacesAndNewlines)
      switch signed.verifyTransaction(text, channel: .offline) {
      case .success(let transaction):
        result.outcome = .verified
        result.reason = nil
        result.environment = transaction.fact.environment
        result.bundleId = transaction.fact.bundleId
        result.signedTransactionId = transaction.fact.transactionId
        result.facts = [transaction.fact]
      case .failure(let refusal):
        switch refusal.meaning {
        case .signatureInvalid: result.reason = .signatureInvalid
        case .malformed: result.reason = .malformed
        case .xcode: result.reason = .xcode
        case .noRoots:
          result.outcome = .unanswered
          result.reason = .noRoots
        case .undecided:
          result.outcome = .review
          result.reason = .appleError
        }
      }
      return result
    }
  }

  /// Asks Apple. Throws only when the task is cancelled before there is an answer.
  package func ask(_ due: DueCheck) async throws(CancellationError) -> ReceiptAnswer {
    try await client.verify(
      payload: due.payload, sharedSecret: sharedSecret, first: due.environment == .sandbox ? .sandbox : .production)
  }

  /// What an answer means for the proof; nil for a fault of ours, from which nothing follows about any proof.
  package func result(of answer: ReceiptAnswer, for due: DueCheck) -> CheckResult? {
    let kind = ReceiptKind.detect(payload: due.payload)
    var result = CheckResult(
      subject: due.subject, orderId: due.orderId, kind: kind, outcome: .unanswered, channel: .verifyReceipt)
    result.appleStatus = answer.appleStatus
    switch answer.outcome {
    case .verified(let receipt):
      result.outcome = .verified
      result.environment = receipt.environment
      result.bundleId = receipt.bundleId
      result.facts = receipt.facts
      if kind == .transaction { result.signedTransactionId = receipt.facts.first?.transactionId }
    case .rejected:
      result.outcome = .rejected
      result.reason = .signatureInvalid
    case .accountGone:
      result.outcome = .review
      result.reason = .accountGone
    case .review:
      result.outcome = .review
      result.reason = .appleError
    case .unanswered(let silence):
      switch silence.reason {
      case .unreachable: result.reason = .unreachable
      case .rateLimited: result.reason = .rateLimited
      case .appleError: result.reason = .appleError
      }
    case .systemicFault: return nil
    }
    return result
  }
}
