import Reconciliation
import Testing

@testable import AppStore

struct NotificationReadingTests {
  private typealias Page = Result<JSONFields, ServerAPIRefusal>

  /// The steps after each page, and the answer at the end.
  private func read(
    of type: String? = nil, token: String? = nil, pages: Int = 100, appAppleId: Int64? = nil, _ events: Page...
  ) throws -> (steps: [NotificationReading.Step], answer: NotificationAnswer) {
    let verifier = JWSVerifier(roots: try TestCertificateAuthority.transactions.roots)
    var reading = NotificationReading(
      verifier: AnswerVerifier(verifier: verifier, bundleId: "com.example.game", appAppleId: appAppleId),
      host: .production, type: type, paginationToken: token, pages: pages)
    let steps = events.map { reading.received($0) }
    return (steps, reading.answer)
  }

  private func page(_ signed: [String], token: String? = nil, hasMore: Bool = false) throws -> Page {
    try page(ServerAPIScript.notifications(signed, token: token, hasMore: hasMore))
  }

  private func page(_ json: String) throws -> Page { .success(try #require(JSONFields(json.utf8))) }

  private func notification(_ uuid: String, type: String = "REFUND") throws -> String {
    try ServerAPIScript.notification(uuid, type: type)
  }

  @Test func pagesAreReadToTheEnd() throws {
    // An overlap repeats u2.
    let (steps, answer) = try read(
      page([notification("u1"), notification("u2")], token: "a", hasMore: true),
      page([notification("u2"), notification("u3")]))
    #expect(steps == [.ask(paginationToken: "a"), .finish])
    #expect(answer.notifications.map(\.uuid) == ["u1", "u2", "u3"])
    #expect(answer.end == .complete && answer.unverifiable.isEmpty)
    let first = try #require(answer.notifications.first)
    #expect(first.type == "REFUND" && first.subtype == nil)
    #expect(try first.transaction?.get().channel == .notification)
  }

  @Test func answersToOtherRequestsAreRejected() throws {
    let (steps, answer) = try read(of: "ONE_TIME_CHARGE", page([notification("u1")]))
    #expect(steps == [.finish] && answer.notifications.isEmpty && answer.reason == .appleError)
    // Another type among the requested ones is evidence like any other, also one that is unknown today.
    let mixed = try read(of: "REFUND", page([notification("u1"), notification("u2", type: "FUTURE_TYPE")]))
    #expect(mixed.steps == [.finish] && mixed.answer.end == .complete)
    #expect(mixed.answer.notifications.map(\.type) == ["REFUND", "FUTURE_TYPE"])
  }

  @Test func anExpiredTokenRestartsTheWindow() throws {
    let (steps, answer) = try read(token: "old", .failure(.windowExpired))
    #expect(steps == [.finish] && answer.end == .restartWindow && answer.paginationToken == nil)
  }

  @Test func pagesBeforeAFailureAreKept() throws {
    let silence = Silence(reason: .unreachable, detail: "timeout")
    let (steps, answer) = try read(
      page([notification("u1")], token: "a", hasMore: true), .failure(.unanswered(silence)))
    #expect(steps.last == .finish && answer.end == .unanswered(silence))
    #expect(answer.notifications.count == 1 && answer.paginationToken == "a")
  }

  @Test func endlessPagesAreLimited() throws {
    let repeated = try read(token: "a", page([], token: "a", hasMore: true))
    #expect(repeated.steps == [.finish] && repeated.answer.reason == .appleError)
    let endless = try read(page([], hasMore: true))
    #expect(endless.steps == [.finish] && endless.answer.reason == .appleError)
    let (steps, answer) = try read(pages: 1, page([], token: "a", hasMore: true))
    #expect(steps == [.finish] && answer.end == .pageLimit && answer.paginationToken == "a")
  }

  @Test(
    arguments: [
      (#"{"paginationToken":"a","notificationHistory":[]}"#, true),
      (#"{"paginationToken":"a","hasMore":null,"notificationHistory":[]}"#, true),
      (#"{"paginationToken":"a","hasMore":false,"notificationHistory":[]}"#, false),
      (#"{"notificationHistory":[]}"#, false),
    ])
  func aTokenWithoutHasMoreMeansMorePages(json: String, hasMore: Bool) throws {
    #expect(try read(page(json)).steps == [hasMore ? .ask(paginationToken: "a") : .finish])
  }

  @Test func rejectedNotificationsAreCounted() throws {
    let other = try ServerAPIScript.notification("u2", bundleId: "com.example.other")
    let foreign = try TestJWS(payload: TestJWS.transaction { $0["bundleId"] = "com.example.other" }).text
    let inner = try ServerAPIScript.notification("u3", signed: foreign)
    let spoilt = ServerAPIScript.spoilt(try notification("u4"))
    let answer = try read(page([notification("u1"), other, inner, spoilt, "", "x"])).answer
    // The third is Apple's notification; only its transaction is rejected.
    #expect(answer.notifications.map(\.uuid) == ["u1", "u3"] && answer.unverifiable.count == 5)
    #expect(answer.notifications.last?.transaction == .failure(.otherBundle))
  }

  /// Apple's own server library compares the app's Apple ID in production notifications.
  @Test(arguments: [(nil, 1, 0), (1_234_567_890, 1, 0), (1_234_567_891, 0, 1)] as [(Int64?, Int, Int)])
  func theAppleIDOfTheAppIsCompared(configured: Int64?, believed: Int, refused: Int) throws {
    let signed = try ServerAPIScript.notification("u1", appAppleId: 1_234_567_890)
    let answer = try read(appAppleId: configured, page([signed])).answer
    #expect(answer.notifications.count == believed && answer.unverifiable.count == refused)
  }

  @Test func theWindowCoversApplesRetentionPeriod() {
    let now = Instant(seconds: 1_795_212_000)
    let long = NotificationQuery(start: Instant(seconds: 0), end: now, type: "REFUND", now: now)
    #expect(long.start > now - .days(180) && long.start < now - .days(179))
    let short = NotificationQuery(start: now - .days(2), end: now, type: nil, now: now)
    #expect(short.start == now - .days(2))
  }
}
