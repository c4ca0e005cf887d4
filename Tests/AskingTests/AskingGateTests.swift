import Reconciliation
import Synchronization
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run

/// A failure of one app, or of one side, stops no other.
@Suite struct AskingGateTests {
  /// A clock that a test advances.
  private final class Clock: Sendable {
    private let now = Mutex(Duration.zero)
    func advance(_ span: Duration) { now.withLock { $0 += span } }
    var rateClock: RateGate.Clock {
      RateGate.Clock(uptime: { self.now.withLock { $0 } }, sleep: { _ throws(CancellationError) in })
    }
  }

  private let clock = Clock()
  private let game = AskingGate.Lane(app: "game", side: .production)
  private let gameSandbox = AskingGate.Lane(app: "game", side: .sandbox)
  private let other = AskingGate.Lane(app: "other", side: .production)

  private func gate() -> AskingGate { AskingGate(apps: ["game", "other"], clock: clock.rateClock) }

  private func answer(_ meaning: ChannelAnswer.Meaning, asked: [AppleHost]) -> ChannelAnswer {
    var answer = ChannelAnswer(meaning)
    answer.asked = asked
    return answer
  }

  private let failure = ChannelAnswer.Meaning.silent(Silence(reason: .unreachable, detail: "timeout"))

  private func permit(_ lane: AskingGate.Lane, at gate: AskingGate) throws -> AskingGate.Permit {
    guard case .granted(let permit) = gate.admit(lane) else { throw CancellationError() }
    return permit
  }

  /// Asks failing questions while the gate admits them, and returns their number.
  private func fail(_ lane: AskingGate.Lane, at gate: AskingGate, asked: [AppleHost]? = nil, times: Int = 50) -> Int {
    for count in 0..<times {
      guard let permit = try? permit(lane, at: gate) else { return count }
      _ = gate.note(answer(failure, asked: asked ?? [lane.side]), permit)
    }
    return times
  }

  private func word(_ admission: AskingGate.Admission) -> String {
    switch admission {
    case .granted: "granted"
    case .refused: "refused"
    case .over: "over"
    }
  }

  @Test func anOutageOfOneAppStopsThatOne() throws {
    let gate = gate()
    #expect(fail(game, at: gate) == 20)
    #expect(word(gate.admit(game)) == "refused" && word(gate.admit(other)) == "granted")
    #expect(word(gate.admit(gameSandbox)) == "granted")
    #expect(gate.silent == ["game"] && gate.end == nil)
    // Failed probes do not end the outage. Their intervals grow.
    var probes = 0
    for _ in 0..<3_600 {
      clock.advance(.seconds(1))
      probes += fail(game, at: gate)
    }
    #expect((15...25).contains(probes) && gate.end == nil, "\(probes) probes in an hour")
    clock.advance(.seconds(300))
    for _ in 0..<3 { _ = gate.note(answer(.unknown, asked: [.production]), try permit(game, at: gate)) }
    #expect(gate.silent.isEmpty && word(gate.admit(game)) == "granted")
  }

  @Test func aRefusedCredentialEndsTheApp() {
    let gate = gate()
    for id in ["1", "2"] {
      #expect(gate.refuse(.accessRefused, app: "game", id: id, isSecondAttempt: false) == .askAgain)
      #expect(gate.refuse(.accessRefused, app: "game", id: id, isSecondAttempt: true) == .park)
    }
    #expect(gate.refuse(.accessRefused, app: "game", id: "3", isSecondAttempt: true) == .endApp)
    #expect(word(gate.admit(game)) == "over" && word(gate.admit(gameSandbox)) == "over")
    #expect(word(gate.admit(other)) == "granted")
    #expect(gate.faults == ["game": AppleFault.accessRefused.message] && gate.end == nil)
  }

  /// A receipt of another developer's app, or an ID that a client made up, ends no app.
  @Test func oneAcceptedQuestionClearsTheCredential() throws {
    let gate = gate()
    _ = gate.note(answer(.unknown, asked: [.production]), try permit(game, at: gate))
    for id in 1...100 {
      #expect(gate.refuse(.tokenRefused(.production), app: "game", id: "\(id)", isSecondAttempt: true) == .park)
      #expect(gate.refuse(.requestRefused(code: 4_000_000), app: "game", id: "\(id)", isSecondAttempt: true) == .park)
    }
    #expect(gate.faults.isEmpty)
  }

  /// "Not found" is not signed, so it shows nothing about the root certificates.
  @Test(arguments: [false, true]) func onlyAVerifiedAnswerShowsThatTheRootsAreApples(isVerified: Bool) throws {
    let gate = gate()
    let found = ChannelAnswer.Meaning.genuine(environment: .production, bundleId: nil, facts: [.test("1", .serverApi)])
    _ = gate.note(answer(isVerified ? found : .unknown, asked: [.production]), try permit(game, at: gate))
    for id in 1...3 { _ = gate.refuse(.rootMissing, app: "game", id: "\(id)", isSecondAttempt: true) }
    #expect(gate.faults == (isVerified ? [:] : ["game": AppleFault.rootMissing.message]))
  }

  /// Production answers "not found", and the sandbox does not answer.
  @Test func aSandboxOutageDoesNotAffectProduction() {
    let gate = gate()
    #expect(fail(game, at: gate, asked: [.production, .sandbox]) == 50)
    #expect(word(gate.admit(game)) == "granted" && word(gate.admit(gameSandbox)) == "refused")
    #expect(gate.end == nil)
  }

  /// Status 21002 counts as an outage unless the receipt was refused offline.
  @Test func aDamagedReceiptDoesNotCountAsAnOutage() {
    var unread = answer(.silent(Silence(reason: .appleError, detail: "status")), asked: [.production])
    for (isRefusedHere, status, wanted) in [(true, 21_002, 50), (false, 21_002, 20), (true, 21_009, 20)] {
      let gate = gate()
      unread.appleStatus = status
      var count = 0
      while count < 50, let permit = try? permit(game, at: gate) {
        _ = gate.note(unread, permit, isRefusedHere: isRefusedHere)
        count += 1
      }
      #expect(count == wanted, "\(status), refused here: \(isRefusedHere)")
    }
  }

  @Test func answersWithoutARequestDoNotAffectTheBreaker() throws {
    let gate = gate()
    #expect(fail(game, at: gate, times: 19) == 19)
    _ = gate.note(ChannelAnswer(.unknown), try permit(game, at: gate))
    #expect(fail(game, at: gate) == 1)
  }

  /// In an outage, a question that failed on an earlier night waits a limited time only.
  @Test(arguments: [true, false]) func theWaitOfAQuestionThatFailedBeforeIsLimited(hasFailedBefore: Bool) {
    func silent(for duration: Duration) -> AskingGate.Condition {
      AskingGate.Condition(answered: 0, unansweredDuration: duration)
    }
    var history = CheckHistory(dated: RecheckFixture.asOf, knownSince: RecheckFixture.asOf)
    if hasFailedBefore { history.unansweredSince = RecheckFixture.asOf - .days(1) }
    var trials = RetryBudget(history, asOf: RecheckFixture.asOf, isFurther: false)
    let isOutage = trials.fail(on: silent(for: RetryBudget.waitLimit - .seconds(1)))
    #expect(isOutage && trials.count == 0)
    let isStillOne = trials.fail(on: silent(for: RetryBudget.waitLimit))
    #expect(isStillOne != hasFailedBefore && trials.count == (hasFailedBefore ? 1 : 0))
    #expect(trials.meaning(on: silent(for: RetryBudget.waitLimit)) == (hasFailedBefore ? .abandoned : .failure))
  }

  /// A permit of an earlier state of the breaker allows no question, and its result counts for nothing.
  @Test func aStalePermitNeitherStandsNorCounts() throws {
    let gate = gate()
    let stale = try permit(game, at: gate)
    #expect(gate.stands(stale))
    #expect(fail(game, at: gate) == 20 && !gate.stands(stale))
    clock.advance(.seconds(2))
    let probe = try permit(game, at: gate)
    #expect(gate.stands(probe) && !gate.stands(stale))
    // Answers to questions from before the outage are no successful probes.
    for _ in 0..<3 { _ = gate.record(.success, stale) }
    #expect(gate.silent == ["game"])
    for each in try [probe, permit(game, at: gate), permit(game, at: gate)] { _ = gate.record(.success, each) }
    #expect(gate.silent.isEmpty && !gate.stands(probe))
  }
}
