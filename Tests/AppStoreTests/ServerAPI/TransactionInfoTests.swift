import Foundation
import NIOHTTP1
import Reconciliation
import Testing

@testable import AppStore

@Suite(.timeLimit(.minutes(10)))
struct TransactionInfoTests {
  typealias Script = ServerAPIScript

  private func ask(
    _ script: [String: [ScriptedServer.Reply]], id: String = Script.id, first: AppleHost = .production,
    roots: TrustedRoots? = nil
  ) async throws -> (TransactionAnswer, ScriptedServer) {
    try await Script.ask(script, roots: roots) { try await $0.transactionInfo(id, first: first) }
  }

  @Test func aTransactionIsFoundByARequestInApplesForm() async throws {
    let payload = TestJWS.transaction { $0["offerDiscountType"] = "FUTURE_WORD" }
    let (answer, server) = try await ask([Script.production: [try Script.info(payload)]])
    let transaction = try #require(answer.outcome.content)
    #expect(transaction.transactionId == Script.id && transaction.environment == .production)
    #expect(transaction.channel == .serverApi && transaction.revocation == .stated(nil))
    #expect(transaction.hasOffer == true)
    #expect(answer.trail.asked == [.production] && answer.trail.httpStatus == 200 && answer.trail.errorCode == nil)
    #expect(answer.trail.warnings.isEmpty)
    let request = try #require(server.requests.first)
    #expect(request.method == "GET" && request.path == Script.production && request.body.isEmpty)
    #expect(request.headers["Accept"] == ["application/json"] && request.headers["User-Agent"] == ["night-audit/9.9"])
    let authorization = try #require(request.headers.first(name: "Authorization"))
    #expect(authorization.hasPrefix("Bearer ey") && authorization.split(separator: ".").count == 3)
  }

  // MARK: Environments

  @Test(arguments: [4_040_010, 4_040_005])
  func theSandboxIsAskedWhenProductionDoesNotKnowIt(code: Int) async throws {
    let payload = TestJWS.transaction { $0["environment"] = "Sandbox" }
    let (answer, _) = try await ask([
      Script.production: [Script.error(code)], Script.sandbox: [try Script.info(payload)],
    ])
    #expect(answer.fact?.environment == .sandbox)
    #expect(answer.trail.asked == [.production, .sandbox] && answer.trail.errorCode == code)
  }

  /// A rate-limited environment is not waited for. "Not found" in the first environment alone is no answer.
  @Test func aRateLimitedEnvironmentIsNotAwaited() async throws {
    let tooMany = Script.error(4_290_000, headers: ["Retry-After": "3600"])
    let (answers, server) = try await Script.ask([
      Script.production: [Script.error(4_040_010)], Script.sandbox: [tooMany],
    ]) { client in
      #expect(!client.isRateLimited(on: .sandbox))
      let first = try await client.transactionInfo(Script.id, first: .sandbox)
      #expect(client.isRateLimited(on: .sandbox) && !client.isRateLimited(on: .production))
      let second = try await client.transactionInfo(Script.id)
      let status = try await client.subscriptionStatuses(Script.id, on: .sandbox)
      #expect(status.outcome == .unanswered(.deferredByRateLimit) && status.trail.asked.isEmpty)
      return [first, second]
    }
    #expect(answers[0].trail.asked == [.sandbox] && answers[1].trail.asked == [.production])
    #expect(answers[1].outcome == .unanswered(.deferredByRateLimit) && server.requests.count == 2)
  }

  /// "Not found" in one environment and no answer from the other is not "not found".
  @Test func onlyAnIDUnknownToBothSidesIsNotFound() async throws {
    let notFound = Script.error(4_040_010)
    for first in [AppleHost.production, .sandbox] {
      let (answer, server) = try await ask([Script.production: [notFound], Script.sandbox: [notFound]], first: first)
      #expect(answer.outcome == .notFound)
      #expect(answer.trail.asked == [first, first.other] && server.requests.count == 2)
    }
    let (open, _) = try await ask([Script.production: [notFound], Script.sandbox: [.http(503, [])]])
    #expect(open.outcome == .unanswered(Silence(reason: .appleError, detail: "HTTP 503")))
  }

  // MARK: Outcomes

  /// `ServerAPIReadingTests` has every code and status.
  @Test(arguments: [
    (Script.error(4_000_006), TransactionAnswer.Outcome.malformedId), (Script.error(4_040_001), .accountGone),
    (.http(401, "Unauthenticated\n".utf8), .fault(.tokenRefused(.production))),
    (.http(403, []), .fault(.accessRefused)),
    (Script.error(4_040_003), .fault(.appUnknown(bundleId: "com.example.game"))),
    (Script.error(4_000_000), .fault(.requestRefused(code: 4_000_000))),
    (Script.error(5_000_001), .unanswered(Silence(reason: .appleError, detail: "HTTP 500, error 5000001"))),
    (.http(404, "<html></html>".utf8), .unanswered(Silence(reason: .appleError, detail: "HTTP 404"))),
    (
      Script.error(4_290_000, headers: ["Retry-After": "soon"]),
      .unanswered(Silence(reason: .rateLimited, detail: "HTTP 429, error 4290000"))
    ),
    (.http(200, []), .unanswered(Silence(reason: .appleError, detail: "answer is no JSON object"))),
    (.json("[]"), .unanswered(Silence(reason: .appleError, detail: "answer is no JSON object"))),
  ])
  func refusalsAndMalformedAnswersHaveTheirOutcome(
    reply: ScriptedServer.Reply, outcome: TransactionAnswer.Outcome
  ) async throws {
    let (answer, server) = try await ask([Script.production: [reply], Script.sandbox: [try Script.info()]])
    #expect(answer.outcome == outcome)
    // The sandbox is not asked, because with a refused token it would answer "not found" to everything.
    #expect(server.requests.count == 1)
  }

  @Test(arguments: [
    "", "..", "a/b", "1/../../v2/history/1", "1?revision=2", "1#", "1 2", "1\n", "1%2F2", "١٢", "é", "1\u{0}",
    String(repeating: "1", count: 65),
  ])
  func malformedIDsAreNotRequested(id: String) async throws {
    let (answer, server) = try await ask([:], id: id)
    #expect(answer.outcome == .malformedId && server.requests.isEmpty)
  }

  // MARK: Verification

  @Test(
    arguments: [
      ("bundleId", "com.example.other", "it is about another app"),
      ("bundleId", nil, "authentic, but without bundleId"),
      ("environment", "Sandbox", "it is from the environment Sandbox"),
      ("environment", "Xcode", "made by Xcode, not signed by Apple"),
      ("environment", "Moon", "from an unknown environment (Moon)"),
      ("transactionId", "2000000123456788", "it is about another transaction"),
      ("transactionId", nil, "authentic, but without transactionId"),
      ("productId", nil, "authentic, but without productId"),
    ] as [(String, String?, String)])
  func signedAnswersAboutOtherTransactionsAreRejected(field: String, value: String?, detail: String) async throws {
    let payload = TestJWS.transaction { $0[field] = value }
    let (answer, _) = try await ask([Script.production: [try Script.info(payload)]])
    let text = "Apple's answer could not be verified: \(detail)"
    #expect(answer.outcome == .unanswered(Silence(reason: .appleError, detail: text)))
    #expect(answer.trail.warnings == [text])
  }

  @Test func answersWithABadSignatureOrWithoutATrustedRootAreRejected() async throws {
    let jws = try TestJWS().text
    for document in ["", "a.b.c", Script.spoilt(jws), String(jws.dropLast(8))] {
      let (answer, _) = try await ask([Script.production: [.json(#"{"signedTransactionInfo":"\#(document)"}"#)]])
      #expect(answer.reason == .appleError && answer.trail.warnings.count == 1)
    }
    let other = try TestCertificateAuthority().roots
    // Certificates of another root are a fault of the configuration, not of the answer.
    let untrusted = try await ask([Script.production: [try Script.info()]], roots: other).0
    #expect(untrusted.outcome == .fault(.rootMissing) && untrusted.trail.warnings.count == 1)
  }

  @Test func moreThanOneMebibyteIsNotRead() async throws {
    let body = Array(#"{"signedTransactionInfo":"\#(try TestJWS().text)"}"#.utf8)
    let long = body + [UInt8](repeating: 0x20, count: 1 << 20)
    let (answer, _) = try await ask([Script.production: [.http(200, long)]])
    #expect(answer.outcome == .unanswered(Silence(reason: .appleError, detail: "answer longer than 1 MiB")))
  }

  @Test func theTokenStaysOutOfTheAnswer() async throws {
    let (first, server) = try await ask([Script.production: [.http(401, [])]])
    let token = try #require(server.requests.first?.headers.first(name: "Authorization")).dropFirst("Bearer ".count)
    #expect(!String(reflecting: first).contains(token))
  }

  // MARK: Rate limits and connections

  @Test(arguments: [("1795212120000", 120), ("9999999999999", 3_600)])
  func retryAfterPausesEveryInterfaceOfTheEnvironment(header: String, seconds: Int64) async throws {
    let clock = StoppedClock()
    let script = [
      Script.production: [Script.error(4_290_000, headers: ["Retry-After": header])],
      "/production/inApps/v2/refund/lookup/\(Script.id)": [.json("{}")], Script.sandbox: [Script.error(4_000_006)],
    ]
    let (answer, _) = try await Script.ask(script, clock: clock.gateClock) { client in
      let answer = try await client.transactionInfo(Script.id)
      _ = try await client.transactionInfo(Script.id, first: .sandbox)
      #expect(clock.slept == .zero)
      _ = try await client.refundHistory(Script.id, on: .production)
      return answer
    }
    let silence = Silence(
      reason: .rateLimited, detail: "HTTP 429, error 4290000", retryAfter: Script.now + .seconds(seconds))
    #expect(answer.outcome == .unanswered(silence))
    #expect(clock.slept == .seconds(seconds))
  }

  @Test func noSecondHasMoreRequestsThanAllowed() async throws {
    let clock = StoppedClock()
    let refunds = "/production/inApps/v2/refund/lookup/\(Script.id)"
    let script = [Script.production: [try Script.info()], refunds: [.json("{}")]]
    let (times, server) = try await Script.ask(script, rate: 20, clock: clock.gateClock) { client in
      var times: (info: [Duration], refunds: [Duration]) = ([], [])
      for _ in 0..<60 {
        _ = try await client.transactionInfo(Script.id)
        times.info.append(clock.slept)
      }
      for _ in 0..<12 {
        _ = try await client.refundHistory(Script.id, on: .production)
        times.refunds.append(clock.slept)
      }
      return times
    }
    #expect(server.requests.count == 72)
    #expect(mostInOneSecond(times.info) <= 20 && mostInOneSecond(times.refunds) <= 4)
    // Requests are not slower than allowed: three seconds for each interface, less the bursts at the start.
    #expect((.milliseconds(5_400)...(.milliseconds(5_950))).contains(clock.slept))
  }
}
