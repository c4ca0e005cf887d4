import AppStore
import Foundation
import NIOHTTP1
import Reconciliation
import Testing

@Suite(.timeLimit(.minutes(10)))
struct VerifyReceiptClientTests {
  private static let now = Instant(seconds: 1_795_212_000)
  private static let payload = Data([0x30, 0x80, 0xFB, 0xFF]).base64EncodedString()
  private static let genuine = #"{"status":0,"receipt":{"bundle_id":"com.example.game","in_app":[]}}"#

  // MARK: Requests

  @Test func theRequestHasApplesForm() async throws {
    let (_, server) = try await ask(["/production": [.json(Self.genuine)]], secret: Secret("s3cr3t"))
    let request = try #require(server.requests.first)
    #expect(request.method == "POST" && request.path == "/production")
    #expect(request.headers["Content-Type"] == ["application/json"] && request.headers["Accept-Encoding"] == ["gzip"])
    #expect(request.headers["User-Agent"] == ["night-audit/9.9"])
    #expect(request.body == #"{"password":"s3cr3t","receipt-data":"\#(Self.payload)"}"#)
  }

  @Test(arguments: ["\(payload)\n", "  \(payload)\r\n", "MI\r\nD7/w==", "MID7/w"])
  func thePayloadIsMended(payload: String) async throws {
    let (_, server) = try await ask(["/production": [.json(Self.genuine)]], payload: payload)
    #expect(server.requests.map(\.body) == [#"{"receipt-data":"MID7/w=="}"#])
  }

  @Test func invalidBase64IsSentUnchanged() async throws {
    let (_, server) = try await ask(["/production": [.json(#"{"status":21002}"#)]], payload: "a.\"b\u{0}")
    #expect(server.requests.map(\.body) == [#"{"receipt-data":"a.\"b\u0000"}"#])
  }

  // MARK: Environments

  @Test func aSandboxReceiptIsAskedAboutInTheSandbox() async throws {
    let (answer, server) = try await ask([
      "/production": [.json(#"{"status":21007}"#)], "/sandbox": [.json(Self.genuine)],
    ])
    let receipt = try #require(answer.outcome.receipt)
    #expect(receipt.environment == .sandbox && answer.asked == [.production, .sandbox])
    #expect(answer.appleStatus == 0 && answer.httpStatus == 200)
    #expect(server.requests.map(\.path) == ["/production", "/sandbox"])
    #expect(server.requests.first?.body == server.requests.last?.body)
  }

  @Test func aProductionReceiptIsAskedAboutInProduction() async throws {
    let (answer, server) = try await ask(
      ["/sandbox": [.json(#"{"status":21008}"#)], "/production": [.json(#"{"status":21003}"#)]], first: .sandbox)
    #expect(answer.outcome == .rejected)
    #expect(server.requests.map(\.path) == ["/sandbox", "/production"])
  }

  @Test(arguments: [AppleHost.production, .sandbox])
  func environmentsThatReferToEachOtherAreAskedOnce(first: AppleHost) async throws {
    let (answer, server) = try await ask(
      ["/production": [.json(#"{"status":21007}"#)], "/sandbox": [.json(#"{"status":21008}"#)]], first: first)
    #expect(answer.asked == [first, first.other] && server.requests.count == 2 && answer.reason == .appleError)
  }

  /// A rate-limited environment is not waited for, and 21007 alone is no answer.
  @Test func aRateLimitedEnvironmentIsNotAwaited() async throws {
    let shut = RateGate(rate: nil)
    shut.shut(for: .hours(1))
    let (answer, requests) = try await ScriptedServer.run(["/production": [.json(#"{"status":21007}"#)]]) {
      server, port in
      let transport = HTTPTransport(timeout: .seconds(30))
      let client = try Self.client(port: port, transport: transport, sandboxGate: shut)
      #expect(client.isRateLimited(on: .sandbox) && !client.isRateLimited(on: .production))
      let answer = try await client.verify(payload: Self.payload, sharedSecret: nil)
      await transport.shutdown()
      return (answer, server.requests.count)
    }
    #expect(answer.outcome == .unanswered(.deferredByRateLimit) && answer.asked == [.production] && requests == 1)
  }

  @Test func theFirstStatusIsKeptIfTheSecondRequestFails() async throws {
    let (answer, _) = try await ask([
      "/production": [.json(#"{"status":21007}"#)], "/sandbox": [.bytesThenEnd([])],
    ])
    #expect(answer.reason == .unreachable && answer.asked == [.production, .sandbox])
    #expect(answer.appleStatus == 21_007 && answer.httpStatus == nil)
  }

  // MARK: Statuses

  @Test(arguments: [(21_003, nil as Silence.Reason?), (21_010, nil), (21_002, .appleError)])
  func anAnswerHasItsStatusOrTheReasonOfItsSilence(status: Int, reason: Silence.Reason?) async throws {
    let (answer, server) = try await ask(["/production": [.json(#"{"status":\#(status)}"#)]])
    #expect(answer.appleStatus == status && answer.httpStatus == 200 && answer.asked == [.production])
    #expect(answer.reason == reason && server.requests.count == 1)
  }

  // MARK: Damaged answers

  @Test(arguments: [
    ("empty", ScriptedServer.Reply.http(200, []), Silence.Reason.appleError),
    ("html", .http(200, "<html></html>".utf8, headers: ["Content-Type": "text/html"]), .appleError),
    ("truncated", .http(200, genuine.utf8.dropLast(9)), .appleError),
    ("wrong type", .json(#"[{"status":0}]"#), .appleError),
    ("not HTTP", .bytesThenEnd(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8)), .appleError),
    ("damaged gzip", .http(200, [0x1F, 0x8B, 8, 0, 1, 2, 3], headers: ["Content-Encoding": "gzip"]), .appleError),
    ("500", .http(500, genuine.utf8), .appleError), ("503", .http(503, []), .appleError),
    ("429", .http(429, []), .rateLimited),
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
    let (answer, server) = try await ask(["/production": [reply], "/sandbox": [.json(#"{"status":21003}"#)]])
    #expect(answer.reason == reason, "\(name): \(answer)")
    #expect(server.requests.count == 1, "\(name)")
  }

  // Not a table, because its arguments would be printed.
  @Test func moreThanSixteenMebibytesAreNoVerdict() async throws {
    let body = Array(Self.genuine.utf8) + [UInt8](repeating: 0x20, count: 16 << 20)
    let (answer, _) = try await ask(["/production": [.http(200, body)]])
    #expect(answer.outcome == .unanswered(Silence(reason: .appleError, detail: "answer too long")))
  }

  @Test func compressedAnswersAreRead() async throws {
    // gzip of {"status":21003}
    let gzip = try #require(Data(base64Encoded: "H4sIAAAAAAACA6tWKi5JLCktVrIyMjQwMK4FAI+xaO0QAAAA"))
    let (answer, _) = try await ask(["/production": [.http(200, gzip, headers: ["Content-Encoding": "gzip"])]])
    #expect(answer.outcome == .rejected)
  }

  // MARK: Missing answers

  @Test(arguments: [
    "", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"sta",
  ])
  func aSlowServerIsUnreachable(sent: String) async throws {
    let reply = sent.isEmpty ? ScriptedServer.Reply.silence : .bytes(Array(sent.utf8))
    let (answer, _) = try await ask(["/production": [reply]], timeout: Span(microseconds: 60_000))
    #expect(answer.outcome == .unanswered(Silence(reason: .unreachable, detail: "timeout")))
    #expect(answer.httpStatus == nil)
  }

  @Test func aClosedPortIsUnreachable() async throws {
    let port = try await ScriptedServer.run([:]) { _, port in port }
    let answer = try await Self.ask(port: port)
    #expect(answer.reason == .unreachable)
  }

  @Test func plainHTTPWhereTLSIsExpectedIsUnreachable() async throws {
    let answer = try await ScriptedServer.run([:]) { _, port in
      try await Self.ask(port: port, scheme: "https")
    }
    #expect(answer.reason == .unreachable)
  }

  @Test func cancellationIsTheOnlyThingThrown() async throws {
    try await ScriptedServer.run(["/production": [.silence]]) { server, port in
      let task = Task { try await Self.ask(port: port) }
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
    #expect(
      answer.outcome
        == .unanswered(Silence(reason: .rateLimited, detail: "HTTP 429", retryAfter: Self.now + .seconds(seconds))))
    try await production.admit()
    #expect(clock.slept == .seconds(seconds))
  }

  @Test func everyRequestPassesItsGate() async throws {
    let clock = StoppedClock()
    let gate = RateGate(rate: 1, clock: clock.gateClock)
    _ = try await ask(["/production": [.json(Self.genuine)]], gate: gate)
    _ = try await ask(["/production": [.json(Self.genuine)]], gate: gate)
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

  @Test func connectionsAreKept() async throws {
    try await ScriptedServer.run(["/production": [.json(Self.genuine)]]) { server, port in
      let transport = HTTPTransport()
      let client = try Self.client(port: port, transport: transport)
      for _ in 0..<5 { _ = try await client.verify(payload: Self.payload, sharedSecret: nil) }
      await transport.shutdown()
      #expect(server.requests.count == 5 && server.connections == 1)
    }
  }

  @Test func concurrentRequestsShareTheirConnections() async throws {
    try await ScriptedServer.run(["/production": [.json(Self.genuine)]]) { server, port in
      let transport = HTTPTransport(concurrency: 64)
      let client = try Self.client(port: port, transport: transport)
      let verified = try await withThrowingTaskGroup(of: ReceiptAnswer.self) { group in
        for _ in 0..<400 { group.addTask { try await client.verify(payload: Self.payload, sharedSecret: nil) } }
        return try await group.reduce(0) { $0 + ($1.appleStatus == 0 ? 1 : 0) }
      }
      await transport.shutdown()
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

  // MARK: Helpers

  private func ask(
    _ script: [String: [ScriptedServer.Reply]], payload: String = payload, secret: Secret? = nil,
    first: AppleHost = .production, timeout: Span = .seconds(30), gate: RateGate = RateGate(rate: nil)
  ) async throws -> (ReceiptAnswer, ScriptedServer) {
    try await ScriptedServer.run(script) { server, port in
      let answer = try await Self.ask(
        port: port, payload: payload, secret: secret, first: first, timeout: timeout, gate: gate)
      return (answer, server)
    }
  }

  private static func ask(
    port: Int, scheme: String = "http", payload: String = payload, secret: Secret? = nil,
    first: AppleHost = .production, timeout: Span = .seconds(30), gate: RateGate = RateGate(rate: nil)
  ) async throws -> ReceiptAnswer {
    let transport = HTTPTransport(timeout: timeout)
    do {
      let client = try client(port: port, scheme: scheme, transport: transport, gate: gate)
      let answer = try await client.verify(payload: payload, sharedSecret: secret, first: first)
      await transport.shutdown()
      return answer
    } catch {
      await transport.shutdown()
      throw error
    }
  }

  private static func client(
    port: Int, scheme: String = "http", transport: HTTPTransport, gate: RateGate = RateGate(rate: nil),
    sandboxGate: RateGate = RateGate(rate: nil)
  ) throws -> VerifyReceiptClient {
    VerifyReceiptClient(
      transport: transport,
      production: .init(url: try EndpointURL("\(scheme)://127.0.0.1:\(port)/production"), gate: gate),
      sandbox: .init(url: try EndpointURL("\(scheme)://127.0.0.1:\(port)/sandbox"), gate: sandboxGate),
      version: "9.9", now: { now })
  }
}
