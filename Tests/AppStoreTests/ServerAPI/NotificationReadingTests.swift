import Reconciliation
import Testing

@testable import AppStore

struct NotificationReadingTests {
  private func reading(
    of type: String? = nil, token: String? = nil, pages: Int = 100, appAppleId: Int64? = nil
  ) throws -> NotificationReading {
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    return NotificationReading(
      verifier: AnswerVerifier(verifier: verifier, bundleId: "com.example.game", appAppleId: appAppleId),
      host: .production, type: type, paginationToken: token, pages: pages)
  }

  private func page(
    _ signed: [String], token: String?, hasMore: Bool
  ) throws -> Result<JSONFields, ServerAPIRefusal> {
    .success(
      try #require(JSONFields(ServerAPIScript.notifications(signed, token: token, hasMore: hasMore).utf8)))
  }

  private func notification(_ uuid: String) throws -> String { try ServerAPIScript.notification(uuid) }

  @Test func pagesAreReadToTheEnd() throws {
    var reading = try reading()
    let first = try page([notification("u1"), notification("u2")], token: "a", hasMore: true)
    #expect(reading.received(first) == .ask(paginationToken: "a"))
    // An overlap repeats u2.
    let second = try page([notification("u2"), notification("u3")], token: nil, hasMore: false)
    #expect(reading.received(second) == .finish)
    #expect(reading.answer.notifications.map(\.uuid) == ["u1", "u2", "u3"])
    #expect(reading.answer.end == .complete && reading.answer.unverifiable.isEmpty)
    let notification = try #require(reading.answer.notifications.first)
    #expect(notification.type == "REFUND" && notification.subtype == nil)
    #expect(try notification.transaction?.get().fact.channel == .notification)
    #expect(notification.jws.split(separator: ".").count == 3)
  }

  @Test func unknownTypesAreKept() throws {
    var reading = try reading()
    _ = reading.received(
      try page([ServerAPIScript.notification("u1", type: "FUTURE_TYPE")], token: nil, hasMore: false))
    #expect(reading.answer.notifications.map(\.type) == ["FUTURE_TYPE"])
  }

  @Test func answersToOtherRequestsAreRejected() throws {
    var reading = try reading(of: "ONE_TIME_CHARGE")
    #expect(reading.received(try page([notification("u1")], token: nil, hasMore: false)) == .finish)
    #expect(reading.answer.notifications.isEmpty && reading.answer.health == .failure)
    // Another type among the requested ones is evidence like any other.
    var mixed = try self.reading(of: "REFUND")
    let stray = try ServerAPIScript.notification("u2", type: "FUTURE_TYPE")
    #expect(mixed.received(try page([notification("u1"), stray], token: nil, hasMore: false)) == .finish)
    #expect(mixed.answer.notifications.count == 2 && mixed.answer.end == .complete)
  }

  @Test func anExpiredTokenRestartsTheWindow() throws {
    var reading = try reading(token: "old")
    #expect(reading.received(.failure(.windowExpired)) == .finish)
    #expect(reading.answer.end == .restartWindow && reading.answer.paginationToken == nil)
  }

  @Test func pagesBeforeAFailureAreKept() throws {
    let silence = Silence(reason: .unreachable, detail: "timeout")
    var reading = try reading()
    _ = reading.received(try page([notification("u1")], token: "a", hasMore: true))
    #expect(reading.received(.failure(.unanswered(silence))) == .finish)
    #expect(reading.answer.notifications.count == 1 && reading.answer.paginationToken == "a")
    #expect(reading.answer.end == .unanswered(silence))
  }

  @Test func endlessPagesAreLimited() throws {
    var reading = try reading(token: "a")
    #expect(reading.received(try page([], token: "a", hasMore: true)) == .finish)
    #expect(reading.answer.health == .failure)
    var second = try self.reading()
    #expect(second.received(try page([], token: nil, hasMore: true)) == .finish)
    #expect(second.answer.health == .failure)
    var third = try self.reading(pages: 1)
    #expect(third.received(try page([], token: "a", hasMore: true)) == .finish)
    #expect(third.answer.end == .pageLimit && third.answer.paginationToken == "a")
  }

  @Test func aTokenWithoutHasMoreMeansMorePages() throws {
    let pages = [
      (#"{"paginationToken":"a","notificationHistory":[]}"#, NotificationReading.Step.ask(paginationToken: "a")),
      (#"{"paginationToken":"a","hasMore":null,"notificationHistory":[]}"#, .ask(paginationToken: "a")),
      (#"{"paginationToken":"a","hasMore":false,"notificationHistory":[]}"#, .finish),
      (#"{"notificationHistory":[]}"#, .finish),
    ]
    for (text, step) in pages {
      var reading = try reading()
      #expect(reading.received(.success(try #require(JSONFields(text.utf8)))) == step, "\(text)")
    }
  }

  @Test func rejectedNotificationsAreCounted() throws {
    var reading = try reading()
    let other = try ServerAPIScript.notification("u2", bundleId: "com.example.other")
    let inner = try ServerAPIScript.notification(
      "u3", transaction: TestJWS.transaction { $0["bundleId"] = "com.example.other" })
    let spoilt = ServerAPIScript.spoilt(try notification("u4"))
    _ = reading.received(try page([notification("u1"), other, inner, spoilt, "", "x"], token: nil, hasMore: false))
    // The third is Apple's notification; only its transaction is rejected.
    #expect(reading.answer.notifications.map(\.uuid) == ["u1", "u3"])
    #expect(reading.answer.notifications.last?.transaction == .failure(.otherBundle))
    #expect(reading.answer.unverifiable.count == 5)
  }

  /// Apple's own server library compares the app's Apple ID in production notifications.
  @Test(arguments: [(nil, 1, 0), (1_234_567_890, 1, 0), (1_234_567_891, 0, 1)] as [(Int64?, Int, Int)])
  func theAppleIDOfTheAppIsCompared(configured: Int64?, believed: Int, refused: Int) throws {
    var reading = try reading(appAppleId: configured)
    _ = reading.received(
      try page([ServerAPIScript.notification("u1", appAppleId: 1_234_567_890)], token: nil, hasMore: false))
    #expect(reading.answer.notifications.count == believed && reading.answer.unverifiable.count == refused)
  }

  @Test func theWindowCoversApplesRetentionPeriod() {
    let now = Instant(seconds: 1_795_212_000)
    let long = NotificationQuery(start: Instant(seconds: 0), end: now, type: "REFUND", now: now)
    #expect(long.start > now - .days(180) && long.start < now - .days(179))
    let short = NotificationQuery(start: now - .days(2), end: now, type: nil, now: now)
    #expect(short.start == now - .days(2))
  }
}
