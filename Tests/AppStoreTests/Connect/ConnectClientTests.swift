import Crypto
import Foundation
import Gzip
import NIOCore
import NIOHTTP1
import Reconciliation
import Synchronization
import Testing

@testable import AppStore

struct ConnectClientTests {
  private static let now = Instant(seconds: 1_795_212_000)
  private static let key = P256.Signing.PrivateKey()
  private static let sales = ConnectQuery(
    vendor: "80012345", kind: .sales(frequency: "DAILY", version: "1_0"), reportDate: "2026-11-19")
  private static let salesPath = path(version: "1_0")

  private static func path(version: String) -> String {
    "/v1/salesReports?filter%5BvendorNumber%5D=80012345&filter%5BreportType%5D=SALES&filter%5BreportSubType%5D=SUMMARY"
      + "&filter%5Bfrequency%5D=DAILY&filter%5BreportDate%5D=2026-11-19&filter%5Bversion%5D=\(version)"
  }

  private static func error(
    _ status: Int, _ code: String, _ detail: String = "x", headers: [String: String] = [:]
  ) -> ScriptedServer.Reply {
    let error = #"{"id":"1","status":"\#(status)","code":"\#(code)","title":"t","detail":"\#(detail)"}"#
    return .http(status, #"{"errors":[\#(error)]}"#.utf8, headers: headers)
  }

  private struct Asked {
    var answer: ConnectAnswer
    var requests: [ScriptedServer.Request]
    var waits: [Span]
  }

  private func ask(
    _ script: [String: [ScriptedServer.Reply]], about query: ConnectQuery = sales
  ) async throws -> Asked {
    try await ScriptedServer.run(script) { server, port in
      let transport = HTTPTransport(timeout: .seconds(5), inflates: false, maximumBodyBytes: 64 << 20)
      let waits = Mutex<[Span]>([])
      let client = try ConnectClient(
        transport: transport, url: EndpointURL("http://127.0.0.1:\(port)"),
        credentials: ConnectCredentials(
          issuerId: ServerAPICredentials.issuer, keyId: "2X9R4HXF34", privateKeyPEM: Secret(Self.key.pemRepresentation)),
        version: "test", now: { Self.now }
      ) { span throws(CancellationError) in waits.withLock { $0.append(span) } }
      let answer = try await client.download(query)
      await transport.shutdown()
      return Asked(answer: answer, requests: server.requests, waits: waits.withLock { $0 })
    }
  }

  private func outcome(_ replies: ScriptedServer.Reply...) async throws -> ConnectAnswer.Outcome {
    try await ask([Self.salesPath: replies]).answer.outcome
  }

  // MARK: - Files

  /// `agzip` is not a registered encoding, so a client that decodes by the header would fail.
  @Test(arguments: ["agzip", "gzip", nil])
  func reportsAreReadWithAnyContentEncoding(encoding: String?) async throws {
    let bytes = try #require(Gunzip.compressed(Array("SKU\tUnits\n".utf8)))
    var headers = [
      "Content-Type": "application/a-gzip", "x-reports-filename": "S_D_80012345_20261119_V1_1.txt.gz",
      "X-Rate-Limit": "user-hour-lim:3600;user-hour-rem:3599;",
    ]
    headers["Content-Encoding"] = encoding
    let asked = try await ask([Self.salesPath: [.http(200, bytes, headers: headers)]])
    let file = try #require(asked.answer.outcome.report)
    #expect(try Gunzip.text(of: file.bytes) == Array("SKU\tUnits\n".utf8))
    #expect(file.name == "S_D_80012345_20261119_V1_1.txt.gz" && file.version == "1_1")
    #expect(asked.requests.count == 1 && asked.answer.requests == 1)
    let request = try #require(asked.requests.first)
    #expect(request.headers.first(name: "Accept") == "application/a-gzip" && request.path == Self.salesPath)
  }

  @Test func truncatedReportsAreRequestedAgain() async throws {
    let whole = try #require(Gunzip.compressed(Array("SKU\tUnits\n".utf8)))
    let asked = try await ask([Self.salesPath: [.http(200, whole.dropLast(3)), .http(200, []), .http(200, whole)]])
    #expect(asked.answer.outcome.report != nil)
    #expect(asked.requests.count == 3 && asked.waits.count == 2)
    let cut = try await ask([Self.salesPath: [.http(200, whole.dropLast(3))]])
    let silence = Silence(reason: .appleError, detail: "the compressed data end before their end")
    #expect(cut.answer.outcome == .unanswered(silence) && cut.requests.count == 3)
  }

  @Test func theServersVersionPrecedesTheFileNameAndAFinanceReportHasNone() async throws {
    let reply = ScriptedServer.Reply.http(
      200, "x".utf8, headers: ["x-reports-download-version": "1_3", "x-reports-filename": "S_D_1_20261119_V1_1.txt"])
    #expect(try await outcome(reply).report?.version == "1_3")
    let query = ConnectQuery(
      vendor: "80012345", kind: .finance(type: "FINANCE_DETAIL", region: "Z1"), reportDate: "2026-02")
    let path =
      "/v1/financeReports?filter%5BvendorNumber%5D=80012345&filter%5BreportType%5D=FINANCE_DETAIL"
      + "&filter%5BregionCode%5D=Z1&filter%5BreportDate%5D=2026-02"
    let file = try #require(try await ask([path: [.http(200, "x".utf8)]], about: query).answer.outcome.report)
    #expect(file.version == nil)
  }

  // MARK: - Errors, row by row

  @Test(arguments: [
    (404, "NOT_FOUND", "There were NO SALES for the date specified.", ConnectAnswer.Outcome.noSales),
    (404, "NOT_FOUND", "Report is not available yet.", .notYet), (410, "GONE", "Report is no longer available.", .gone),
    (404, "NOT_FOUND", "Something new.", .unanswered(Silence(reason: .appleError, detail: "HTTP 404"))),
    (400, "PARAMETER_ERROR.ILLEGAL", "Vendor number is wrong.", .refused(.parameters("Vendor number is wrong."))),
    // The key is fine.
    (403, "FORBIDDEN.REQUIRED_AGREEMENTS_MISSING_OR_EXPIRED", "An agreement is missing.", .refused(.agreements)),
    (403, "FORBIDDEN_ERROR", "The key may not.", .refused(.role)),
    (406, "NOT_ACCEPTABLE", "x", .refused(.notAcceptable)),
  ])
  func eachErrorHasItsOutcome(
    status: Int, code: String, detail: String, outcome: ConnectAnswer.Outcome
  ) async throws {
    #expect(try await self.outcome(Self.error(status, code, detail)) == outcome)
  }

  @Test func aRefusalStatesItsRemedy() {
    #expect(ConnectRefusal.agreements.description.contains("Account Holder must accept"))
    #expect(ConnectRefusal.agreements.description.contains("The key is fine"))
    #expect(ConnectRefusal.role.description.contains("In-App Purchase key"))
  }

  @Test func versionDriftIsFollowedOnceAndWarnedAbout() async throws {
    let drift = Self.error(
      400, "PARAMETER_ERROR.INVALID", "The version parameter is invalid. The latest version for this report is 1_4.")
    let asked = try await ask([Self.salesPath: [drift], Self.path(version: "1_4"): [.http(200, "x".utf8)]])
    #expect(asked.answer.outcome.report?.version == "1_4" && asked.requests.count == 2)
    #expect(asked.answer.warnings.first?.contains("appStoreConnect.salesVersion to “1_4”") == true)
    let endless = try await ask([Self.salesPath: [drift], Self.path(version: "1_4"): [drift]])
    #expect(endless.answer.outcome == .otherVersion("1_4") && endless.requests.count == 2)
    let mute = Self.error(400, "PARAMETER_ERROR.INVALID", "Please include the version parameter.")
    #expect(try await outcome(mute) == .otherVersion(nil))
  }

  @Test func aRefusedTokenIsReplacedOnce() async throws {
    let refusal = Self.error(401, "NOT_AUTHORIZED", "Authentication credentials are missing or invalid.")
    let asked = try await ask([Self.salesPath: [refusal]])
    #expect(asked.answer.outcome == .refused(.token) && asked.requests.count == 2 && asked.waits.isEmpty)
    let tokens = Set(asked.requests.compactMap { $0.headers.first(name: "Authorization") })
    #expect(tokens.count == 2)
    #expect(try await outcome(refusal, .http(200, "x".utf8)).report != nil, "the fresh token is used")
  }

  @Test func aRateLimitIsAwaitedOncePerNight() async throws {
    for (headers, waits) in [
      ([:], [Span.seconds(60)]), (["Retry-After": "7"], [.seconds(7)]), (["Retry-After": "3000"], []),
    ] as [([String: String], [Span])] {
      let limit = Self.error(429, "RATE_LIMIT_EXCEEDED", "Slow down.", headers: headers)
      let asked = try await ask([Self.salesPath: [limit]])
      #expect(asked.waits == waits && asked.requests.count == 1 + waits.count)
    }
  }

  @Test func serverErrorsAreRetriedAFewTimes() async throws {
    let asked = try await ask([Self.salesPath: [Self.error(503, "UNAVAILABLE", "x")]])
    #expect(asked.requests.count == 3 && asked.waits.count == 2)
    #expect(asked.answer.outcome == .unanswered(Silence(reason: .appleError, detail: "HTTP 503")))
    let page = try await outcome(.http(200, "<html></html>".utf8, headers: ["Content-Type": "text/html"]))
    #expect(page == .unanswered(Silence(reason: .appleError, detail: "a web page instead of a report")))
  }

  // MARK: - Credentials

  @Test func anInAppPurchaseKeyIsRecognized() {
    #expect(throws: AppleKeyError.inAppPurchaseKey) {
      try ConnectCredentials.check(keyFile: "/etc/night-audit/SubscriptionKey_2X9R4HXF34.p8")
    }
    #expect(throws: Never.self) { try ConnectCredentials.check(keyFile: "/etc/night-audit/AuthKey_ABC.p8") }
    #expect(throws: AppleKeyError.privateKeyUnreadable(.team)) {
      try AppleToken(ConnectCredentials(issuerId: "i", keyId: "k", privateKeyPEM: Secret("nonsense")))
    }
  }
}
