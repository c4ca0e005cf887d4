import AppStore
import Foundation
import Reconciliation

enum ServerAPIScript {
  static let now = Instant(seconds: 1_795_212_000)
  static let id = "2000000123456789"
  static let production = "/production/inApps/v1/transactions/\(id)"
  static let sandbox = "/sandbox/inApps/v1/transactions/\(id)"

  static func ask<Answer>(
    _ script: [String: [ScriptedServer.Reply]], rate: Double? = nil, clock: RateGate.Clock = .continuous,
    roots: TrustedRoots? = nil, _ question: (ServerAPIClient) async throws -> Answer
  ) async throws -> (Answer, ScriptedServer) {
    let roots = try roots ?? TestCertificateAuthority.transactions.roots
    return try await ScriptedServer.run(script) { server, port in
      let transport = HTTPTransport()
      do {
        let side = { (name: String) in
          ServerAPIHost(
            url: try EndpointURL("http://127.0.0.1:\(port)/\(name)/"), requestsPerSecond: rate,
            gate: { RateGate(rate: $1, clock: clock) })
        }
        let client = try ServerAPIClient(
          transport: transport, production: side("production"), sandbox: side("sandbox"), credentials: .test(),
          verifier: JWSVerifier(roots: roots), version: "9.9", now: { now })
        let answer = try await question(client)
        await transport.shutdown()
        return (answer, server)
      } catch {
        await transport.shutdown()
        throw error
      }
    }
  }

  static func info(_ payload: [String: any Sendable] = TestJWS.transaction) throws -> ScriptedServer.Reply {
    .json(#"{"signedTransactionInfo":"\#(try TestJWS(payload: payload).text)","futureField":[1]}"#)
  }

  static func error(_ code: Int, httpStatus: Int? = nil, headers: [String: String] = [:]) -> ScriptedServer.Reply {
    .http(
      httpStatus ?? code / 10_000, #"{"errorCode":\#(code),"errorMessage":"Message \#(code)."}"#.utf8, headers: headers)
  }

  static func history(_ ids: [String], revision: String?, hasMore: Bool) throws -> String {
    let signed = try ids.map { id in
      "\"\(try TestJWS(payload: TestJWS.transaction { $0["transactionId"] = id }).text)\""
    }
    let revision = revision.map { #""revision":"\#($0)","# } ?? ""
    return #"{\#(revision)"hasMore":\#(hasMore),"signedTransactions":[\#(signed.joined(separator: ","))]}"#
  }

  static func notification(
    _ uuid: String, type: String = "REFUND", bundleId: String = "com.example.game",
    appAppleId: Int64? = nil, signed transaction: String? = nil
  ) throws -> String {
    var data: [String: any Sendable] = ["bundleId": bundleId, "environment": "Production"]
    data["appAppleId"] = appAppleId
    data["signedTransactionInfo"] = try transaction ?? TestJWS().text
    return try TestJWS(payload: [
      "notificationType": type, "notificationUUID": uuid, "version": "2.0", "signedDate": milliseconds(2026, 6),
      "data": data,
    ]).text
  }

  static func notifications(_ signed: [String], token: String?, hasMore: Bool) -> String {
    let items = signed.map { #"{"signedPayload":"\#($0)","sendAttempts":[{"sendAttemptResult":"NEW_WORD"}]}"# }
    let token = token.map { #""paginationToken":"\#($0)","# } ?? ""
    return #"{\#(token)"hasMore":\#(hasMore),"notificationHistory":[\#(items.joined(separator: ","))]}"#
  }

  static func spoilt(_ jws: String) -> String {
    let parts = jws.split(separator: ".")
    let last = parts[2]
    return "\(parts[0]).\(parts[1]).\(last.hasPrefix("A") ? "B" : "A")\(last.dropFirst())"
  }
}
