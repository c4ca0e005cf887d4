import Foundation
import NIOHTTP1
import Reconciliation
import Testing

@testable import AppStore

@Suite(.timeLimit(.minutes(10)))
struct VerifyReceiptClientTests {
  private static let now = Instant(seconds: 1_795_212_000)
  private static let payload = Data([0x30, 0x80, 0xFB, 0xFF]).base64EncodedString()
  private static let genuine = #"{"status":0,"receipt":{"bundle_id":"com.example.game","in_app":[]}}"#

  private static func status(_ status: Int) -> [ScriptedServer.Reply] { [.json(#"{"status":\#(status)}"#)] }

  /// Asks with a client of the scripted server; `scheme` and `port` name another server.
  private func withClient<R>(
    _ script: [String: [ScriptedServer.Reply]] = ["/production": [.json(genuine)]], scheme: String = "http",
    port: Int? = nil, timeout: Span = .seconds(30), concurrency: Int = 8, gate: RateGate = RateGate(rate: nil),
    sandboxGate: RateGate = RateGate(rate: nil), _ body: (VerifyReceiptClient, ScriptedServer) async throws -> R
  ) async throws -> R {
    try await ScriptedServer.run(script) { server, own in
      let transport = HTTPTransport(timeout: timeout, concurrency: concurrency)
      let url = { (side: String) in try EndpointURL("\(scheme)://127.0.0.1:\(port ?? own)/\(side)") }
      let client = VerifyReceiptClient(
        transport: transport, production: .init(url: try url("production"), gate: gate),
        sandbox: .init(url: try url("sandbox"), gate: sandboxGate), version: "9.9", now: { Self.now })
      do {
        let result = try await body(client, server)
        await transport.shutdown()
        return result
      } catch {
        await transport.shutdown()
        throw error
      }
    }
  }

  private func ask(
    _ script: [String: [ScriptedServer.Reply]], payload: String = payload, secret: Secret? = nil,
    first: AppleHost = .production, timeout: Span = .seconds(30), gate: RateGate = RateGate(rate: nil)
  ) async throws -> (ReceiptAnswer, [ScriptedServer.Request]) {
    try await withClient(script, timeout: timeout, gate: gate) { client, server in
      (try await client.verify(payload: payload, sharedSecret: secret, first: first), server.requests)
    }
  }

  // MARK: Requests

  @Test func theRequestHasApplesForm() async throws {
    let (_, requests) = try await ask(["/production": [.json(Self.genuine)]], secret: Secret("s3cr3t"))
    let request = try #require(requests.first)
    #expect(request.method == "POST" && request.path == "/production")
    #expect(request.headers["Content-Type"] == ["application/json"] && request.headers["Accept-Encoding"] == ["gzip"])
    #expect(request.headers["User-Agent"] == ["night-audit/9.9"])
    #expect(request.body == #"{"password":"s3cr3t","receipt-data":"\#(Self.payload)"}"#)
  }

  @Test(
    "A payload is sent mended, and unchanged if it is no base64",
    arguments: [
      ("\(payload)\n", "MID7/w=="), ("  \(payload)\r\n", "MID7/w=="), ("MI\r\nD7/w==", "MID7/w=="),
      ("MID7/w", "MID7/w=="), ("a.\"b\u{0}", #"a.\"b\u0000"#),
    ])
  func payloads(payload: String, sent: String) async throws {
    let (_, requests) = try await ask(["/production": Self.status(21_002)], payload: payload)
    #expect(requests.map(\.body) == [#"{"receipt-data":"\#(sent)"}"#])
  }

  // MARK: Environments

  @Test func aReceiptIsAskedAboutInItsEnvironment() async throws {
    let (sandbox, requests) = try await ask(["/production": Self.status(21_007), "/sandbox": [.json(Self.genuine)]])
    #expect(sandbox.outcome.receipt?.environment == .sandbox && sandbox.asked == [.production, .sandbox])
    #expect(sandbox.appleStatus == 0 && sandbox.httpStatus == 200)
    #expect(requests.map(\.path) == ["/production", "/sandbox"] && requests.first?.body == requests.last?.body)
    let (production, _) = try await ask(
      ["/sandbox": Self.status(21_008), "/production": Self.status(21_003)], first: .sandbox)
    #expect(production.outcome == .rejected && production.asked == [.sandbox, .production])
    for first in [AppleHost.production, .sandbox] {
      let (answer, requests) = try await ask(
        ["/production": Self.status(21_007), "/sandbox": Self.status(21_008)], first: first)
      #expect(answer.asked == [first, first.other] && requests.count == 2 && answer.reason == .appleError)
    }
  }

  /// A rate-limited environment is not waited for, and 21007 alone is no answer.
  @Test func aRateLimitedEnvironmentIsNotAwaited() async throws {
    let shut = RateGate(rate: nil)
    shut.shut(for: .hours(1))
    try await withClient(["/production": Self.status(21_007)], sandboxGate: shut) { client, server in
      #expect(client.isRateLimited(on: .sandbox) && !client.isRateLimited(on: .production))
      let answer = try await client.verify(payload: Self.payload, sharedSecret: nil)
      #expect(answer.outcome == .unanswered(.deferredByRateLimit) && answer.asked == [.production])
      #expect(server.requests.count == 1)
    }
  }

  @Test func theFirstStatusIsKeptIfTheSecondRequestFails() async throws {
    let (answer, _) = try await ask(["/production": Self.status(21_007), "/sandbox": [.bytesThenEnd([])]])
    #expect(answer.reason == .unreachable && answer.asked == [.production, .sandbox])
    #expect(answer.appleStatus == 21_007 && answer.httpStatus == nil)
  }

  @Test(arguments: [(21_003, nil as Silence.Reason?), (21_010, nil), (21_002, .appleError)])
  func anAnswerHasItsStatusOrTheReasonOfItsSilence(status: Int, reason: Silence.Reason?) async throws {
    let (answer, requests) = try await ask(["/production": Self.status(status)])
    #expect(answer.appleStatus == status && answer.httpStatus == 200 && answer.asked == [.production])
    #expect(answer.reason == reason && requests.count == 1)
  }

  // MARK: Damaged and missing answers

  /// `VerifyReceiptReadingTests` has the statuses and bodies.
  @Test(arguments: [
    ("not HTTP", ScriptedServer.Reply.bytesThenEnd(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8)), Silence.Reason.appleError),
    ("damaged gzip", .http(200, [0x1F, 0x8B, 8, 0, 1, 2, 3], headers: ["Content-Encoding": "gzip"]), .appleError),
    ("redirect", .http(302, [], headers: ["Location": "/sandbox"]), .appleError),
    ("closed at once", .bytesThenEnd([]), .unreachable),
    ("closed in the head", .bytesThenEnd(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8)), .unreachable),
    (
      "closed in the body",
      .bytesThenEnd(Array("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n\(genuine)".utf8)), .unreachable
    ),
    (
      "closed between chunks",
      .bytesThenEnd(Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"st\r\n".utf8)), .unreachable
    ),
  ])
  func damagedAnswersAreNoVerdict(name: String, reply: ScriptedServer.Reply, reason: Silence.Reason) async throws {
    let (answer, requests) = try await ask(["/production": [reply], "/sandbox": Self.status(21_003)])
    #expect(answer.reason == reason && requests.count == 1, "\(name): \(answer)")
  }

  // Not a table, because its arguments would be printed.
  @Test func moreThanSixteenMebibytesAreNoVerdict() async throws {
    let body = Array(Self.genuine.utf8) + [UInt8](repeating: 0x20, count: 16 << 20)
    let (answer, _) = try await ask(["/production": [.http(200, body)]])
    #expect(answer.outcome == .unanswered(Silence(reason: .appleError, detail: "answer too long")))
  }

  @Test(arguments: [
    ScriptedServer.Reply.silence, .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".utf8)),
    .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"sta".utf8)),
  ])
  func aSlowServerIsUnreachable(reply: ScriptedServer.Reply) async throws {
    let (answer, _) = try await ask(["/production": [reply]], timeout: Span(microseconds: 60_000))
    #expect(answer.outcome == .unanswered(Silence(reason: .unreachable, detail: "timeout")))
    #expect(answer.httpStatus == nil)
  }

  @Test func aClosedPortAndPlainHTTPWhereTLSIsExpectedAreUnreachable() async throws {
    let closed = try await ScriptedServer.run([:]) { _, port in port }
    for (scheme, port) in [("http", closed), ("https", nil)] {
      let answer = try await withClient(scheme: scheme, port: port) { client, _ in
        try await client.verify(payload: Self.payload, sharedSecret: nil)
      }
      #expect(answer.reason == .unreachable, "\(scheme)")
    }
  }

  @Test func cancellationIsTheOnlyThingThrown() async throws {
    try await withClient(["/production": [.silence]]) { client, server in
      let task = Task { try await client.verify(payload: Self.payload, sharedSecret: nil) }
      while server.requests.isEmpty { await Task.yield() }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  // MARK: Rate limits and connections

  @Test(arguments: [("120", 120), ("999999", 3_600)])
  func retryAfterPausesTheGateOfTheEnvironment(header: String, seconds: Int64) async throws {
    let clock = StoppedClock()
    let production = RateGate(rate: nil, clock: clock.gateClock)
    let reply = ScriptedServer.Reply.http(429, [], headers: ["Retry-After": header])
    let (answer, _) = try await ask(["/production": [reply]], gate: production)
    let silence = Silence(reason: .rateLimited, detail: "HTTP 429", retryAfter: Self.now + .seconds(seconds))
    #expect(answer.outcome == .unanswered(silence))
    try await production.admit()
    #expect(clock.slept == .seconds(seconds))
  }

  @Test func everyRequestPassesItsGate() async throws {
    let clock = StoppedClock()
    let gate = RateGate(rate: 1, clock: clock.gateClock)
    for _ in 1...2 { _ = try await ask(["/production": [.json(Self.genuine)]], gate: gate) }
    #expect(clock.slept == .seconds(1))
  }

  @Test func deprecationAnnouncementsAreReported() async throws {
    let (answer, _) = try await ask([
      "/production": [.http(200, #"{"status":21007}"#.utf8, headers: ["Sunset": "tomorrow"])],
      "/sandbox": [.http(200, Self.genuine.utf8, headers: ["Deprecation": "true"])],
    ])
    #expect(
      answer.warnings == [
        "verifyReceipt (production) announces Sunset: tomorrow", "verifyReceipt (sandbox) announces Deprecation: true",
      ])
  }

  @Test func connectionsAreKeptAndShared() async throws {
    try await withClient { client, server in
      for _ in 0..<5 { _ = try await client.verify(payload: Self.payload, sharedSecret: nil) }
      #expect(server.requests.count == 5 && server.connections == 1)
    }
    try await withClient(concurrency: 64) { client, server in
      let verified = try await withThrowingTaskGroup(of: ReceiptAnswer.self) { group in
        for _ in 0..<400 { group.addTask { try await client.verify(payload: Self.payload, sharedSecret: nil) } }
        return try await group.reduce(0) { $0 + ($1.appleStatus == 0 ? 1 : 0) }
      }
      #expect(verified == 400 && server.requests.count == 400 && server.connections <= 64)
    }
  }

  @Test func secretsAndPayloadsStayOutOfTheAnswer() async throws {
    let echo = #"{"status":21009,"exception":"bad s3cr3t \#(Self.payload)"}"#
    for reply in [ScriptedServer.Reply.json(echo), .http(500, echo.utf8), .bytesThenEnd(Array(echo.utf8))] {
      let (answer, _) = try await ask(["/production": [reply]], secret: Secret("s3cr3t"))
      let text = String(reflecting: answer)
      #expect(!text.contains("s3cr3t") && !text.contains(Self.payload))
    }
  }
}
