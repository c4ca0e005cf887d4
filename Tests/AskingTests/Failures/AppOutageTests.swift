import AppStore
import Postgres
import Reconciliation
import Settings
import Synchronization
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Failures of one of two apps. Forty purchases of the first app are due before twenty of the second.
@Suite struct AppOutageTests {
  private static let apps = ["com.example.game", "com.example.quiz"]
  private let shop: RecheckFixture
  private let scripts: [AnswerScript]
  private let channels: [ScriptedChannel]

  init() async throws {
    var shop = try await RecheckFixture(apps: Self.apps)
    shop.settings.batchSize = 10
    var found: [String: [ChannelAnswer]] = [:]
    try await shop.orders(1...40, of: Self.apps[0], age: .days(3))
    try await shop.orders(41...60, of: Self.apps[1])
    for number in 1...60 { found["\(number)"] = [.found("\(number)", bundleId: Self.apps[number <= 40 ? 0 : 1])] }
    let scripts = [AnswerScript(found), AnswerScript(found)]
    channels = zip(scripts, Self.apps).map { ScriptedChannel($0, of: $1) }
    (self.shop, self.scripts) = (shop, scripts)
  }

  /// The channels with one answer of Apple's to each question about the first app.
  private func answering(_ answer: ChannelAnswer) -> (script: AnswerScript, channels: [ScriptedChannel]) {
    let script = AnswerScript.all(1...40, answer)
    return (script, [ScriptedChannel(script, of: Self.apps[0]), channels[1]])
  }

  private func gate(failures: Int) -> AskingGate { .gate(failures: failures, apps: Self.apps) { .zero } }

  /// Checks of other apps are asked about, however many checks of a silent app are due first, and however few run at a
  /// time. The silent app is asked once it answers again.
  @Test func anOutageOfOneAppDoesNotBlockOthers() async throws {
    let uptime = Mutex(Duration.zero)
    var channels = channels
    channels[1].beforeAnswer = { [scripts] count in
      uptime.withLock { uptime in
        guard count == 20, uptime == .zero else { return }
        #expect(scripts[0].asked.isEmpty)
        uptime = .seconds(60)
      }
    }
    let gate = AskingGate.gate(failures: 20, apps: Self.apps) { uptime.withLock { $0 } }
    let summary = try await shop.recheck(channels, gate: gate)
    #expect(scripts.map(\.asked.count) == [40, 20] && Set(scripts[0].asked).count == 40)
    #expect(summary.outcomes == [.verified: 60] && summary.endedEarly == nil)
  }

  /// Questions whose turn a 429 delays do not block others, and are not awaited at the deadline.
  @Test(.timeLimit(.minutes(5))) func aRateLimitedAppDoesNotBlockOthers() async throws {
    var channels = channels
    let turns = channels[0].turns
    channels[0].beforeAnswer = { _ in turns.shut(for: .seconds(600)) }
    let summary = try await shop.recheck(channels, limit: .seconds(6), gate: gate(failures: 0))
    #expect(scripts[0].asked.count <= shop.settings.concurrency && scripts[1].asked.count == 20)
    #expect(summary.outcomes == [.verified: 20 + scripts[0].asked.count] && summary.endedEarly != nil)
  }

  /// Questions that continue on a rate-limited side do not block others either.
  @Test func aRateLimitedSandboxDoesNotBlockOthers() async throws {
    let (game, channels) = answering(ChannelAnswer(.silent(.deferredByRateLimit)))
    channels[0].sandboxTurns.shut(for: .seconds(600))
    let summary = try await shop.recheck(channels, limit: .seconds(6), gate: gate(failures: 0))
    #expect(game.asked.count == 40 && Set(game.asked).count == 40 && scripts[1].asked.count == 20)
    // Their results are stored at the end.
    #expect(summary.outcomes == [.unanswered: 40, .verified: 20] && summary.endedEarly != nil)
  }

  /// The wait for a rate-limited app ends when Apple refuses the app's credentials.
  @Test func appsWithRejectedCredentialsAreNotAwaited() async throws {
    var channels = channels
    channels[0].turns.shut(for: .seconds(600))
    let gate = gate(failures: 0)
    channels[1].beforeAnswer = { count in
      guard count == 20 else { return }
      for id in 1...9 { _ = gate.refuse(.accessRefused, app: Self.apps[0], id: "\(id)", isSecondAttempt: true) }
    }
    let summary = try await shop.recheck(channels, limit: .seconds(120), gate: gate)
    #expect(summary.faults.keys.sorted() == [Self.apps[0]] && summary.endedEarly == nil)
    #expect(scripts.map(\.asked.count) == [0, 20] && summary.outcomes == [.verified: 20])
  }

  /// The checks that proved the fault are asked about again on the next night. All others are unchanged.
  @Test func aRejectedKeyStopsOnlyItsApp() async throws {
    let (refused, channels) = answering(ChannelAnswer(.fault(.accessRefused)))
    let summary = try await shop.recheck(channels)
    #expect(summary.faults == [Self.apps[0]: AppleFault.accessRefused.message])
    #expect(summary.exitStatus == .configuration && summary.endedEarly == nil)
    #expect(summary.outcomes == [.verified: 20, .review: 2] && refused.asked.count <= 3 * shop.settings.concurrency)
    #expect(try await shop.states() == ["pending never_checked 38", "review apple_error 2", "verified 20"])
    #expect(try await shop.rows("count(*)", from: "receipt_checks WHERE attempts = 0") == ["38"])
  }

  /// The sweep was accepted with the same key, so that the refusals end no app. The re-check is not complete.
  @Test func refusalsBesideAcceptedQuestionsLeaveAnswersOwed() async throws {
    let gate = gate(failures: 0)
    gate.accept(.serverAPIKey, of: Self.apps[0])
    let summary = try await shop.recheck(answering(ChannelAnswer(.fault(.accessRefused))).channels, gate: gate)
    #expect(summary.faults.isEmpty && summary.outcomes == [.verified: 20, .review: 40])
    #expect(summary.owed == 40 && summary.exitStatus == .incomplete)
    let owed = "receipt_checks WHERE outcome = 'review' AND unanswered_since = last_attempt"
    #expect(try await shop.rows("count(*)", from: owed) == ["40"])
  }
}
