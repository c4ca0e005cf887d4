import AppStore
import AuditStore
import Reconciliation
import Testing

@testable import Asking

/// Transcripts of the asking loop: events in, actions out.
@Suite struct AskingLoopTests {
  /// A loop with the world around it.
  private struct Transcript {
    var loop: AskingLoop
    var now = ContinuousClock.now
    var reasonToEnd: String?
    /// The places on the lane of the app `silent`.
    var silentPlaces = 0

    init(concurrency: Int = 2, isWhole: Bool = true, isOffline: Bool = false, memory: Int = 1_000) {
      let lanes = ["game", "silent"].map { AskingGate.Lane(app: $0, side: .production) }
      loop = AskingLoop(
        concurrency: concurrency, batchSize: 10, isWhole: isWhole, isOffline: isOffline, lanes: lanes, memory: memory,
        now: now)
    }

    /// Returns the actions after the last of these events, up to one that an event must answer.
    mutating func actions(after first: AskingLoop.Event, _ others: AskingLoop.Event...) -> [String] {
      var actions: [String] = []
      for event in [first] + others {
        loop.handle(event, now: now)
        actions = self.actions()
      }
      return actions
    }

    /// Returns the next actions, up to one that an event must answer.
    mutating func actions() -> [String] {
      var actions: [String] = []
      while true {
        let silentPlaces = silentPlaces
        let conditions = AskingLoop.Conditions(now: now, reasonToEnd: reasonToEnd) {
          $0.app == "silent" ? silentPlaces : .max
        }
        switch loop.next(conditions) {
        case .ask(let check): actions.append("ask \(check.subject.id)")
        case .announceWait: actions.append("announce")
        case .end(let reason, let left, _): actions.append("end \(reason), \(left.count) left")
        case .take: return actions + ["take"]
        case .takeNew: return actions + ["take new"]
        case .takeAgain(let subjects): return actions + ["take again \(ids(subjects))"]
        case .read(let checks): return actions + ["read \(ids(checks.map(\.subject)))"]
        case .look: return actions + ["look"]
        case .reacquire: return actions + ["reacquire"]
        case .wait: return actions + ["wait"]
        case .finish(let isContinued): return actions + [isContinued ? "leave to others" : "finish"]
        }
      }
    }

    private func ids(_ subjects: [CheckSubject]) -> String { subjects.map(\.id.text).joined(separator: " ") }

    /// Takes, reads and asks about checks.
    mutating func ask(_ checks: [CheckInProgress]) -> [String] { actions(after: .took(checks), .read(checks)) }
  }

  private func check(_ id: Identifier, bytes: Int = 1) -> CheckInProgress {
    let subject = CheckSubject(kind: .receipt, id: id)
    let dated = RecheckFixture.asOf
    var check = CheckInProgress(row: CheckRow(subject: subject, history: CheckHistory(dated: dated, knownSince: dated)))
    check.shop.payloadBytes = bytes
    return check
  }

  private let silent = AskingGate.Lane(app: "silent", side: .production)

  @Test func checksAreAskedAboutInTheirOrderAndOnlySomeAtATime() {
    var script = Transcript()
    let checks = (["a", "b", "c"] as [Identifier]).map { check($0) }
    #expect(script.actions() == ["take"])
    #expect(script.actions(after: .took(checks)) == ["read a b c"])
    #expect(script.actions(after: .read(checks)) == ["ask a", "ask b", "wait"])
    #expect(script.actions(after: .ended(checks[1], .done)) == ["ask c", "take"])
    #expect(script.actions(after: .took([]), .ended(checks[0], .done)) == ["wait"])
    #expect(script.actions(after: .ended(checks[2], .done)) == ["take new"])
    #expect(script.actions(after: .tookNew([])) == ["look"])
    #expect(script.actions(after: .looked(.nothing)) == ["finish"])
  }

  @Test func payloadsInMemoryAreLimited() {
    var script = Transcript(concurrency: 9, memory: 100)
    let checks = [("a", 40), ("b", 40), ("c", 40), ("large", 1_000)].map { check(Identifier($0.0), bytes: $0.1) }
    #expect(script.actions(after: .took(checks)) == ["read a b"])
    // The result of `a` needed no question, which makes room for the next payload.
    #expect(script.actions(after: .read([checks[1]])) == ["ask b", "read c"])
    #expect(script.actions(after: .read([checks[2]])) == ["ask c", "wait"])
    #expect(script.actions(after: .ended(checks[1], .done)) == ["wait"])
    // A payload larger than the limit is read alone.
    #expect(script.actions(after: .ended(checks[2], .done)) == ["read large"])
  }

  /// Checks of a silent app take no place. A few of them probe it, and all return once it answers.
  @Test func checksOfASilentAppWaitAsideAndProbeIt() {
    var script = Transcript()
    let quiet = (1...6).map { check(Identifier("quiet \($0)")) }
    #expect(script.ask(Array(quiet[..<2])) == ["ask quiet 1", "ask quiet 2", "take"])
    #expect(script.actions(after: .ended(quiet[0], .waits(quiet[0], silent))) == ["take"])
    #expect(script.ask([check("loud")]) == ["ask loud", "take"])
    #expect(script.actions(after: .ended(quiet[1], .waits(quiet[1], silent))) == ["take"])
    #expect(script.actions(after: .ended(check("loud"), .done)) == ["take"])
    #expect(script.ask(Array(quiet[2...])) == ["ask quiet 3", "ask quiet 4", "wait"])
    for check in quiet[2...4] { _ = script.actions(after: .ended(check, .waits(check, silent))) }
    #expect(script.actions(after: .ended(quiet[5], .waits(quiet[5], silent))) == ["take"])
    #expect(script.actions(after: .took([])) == ["wait"])
    script.silentPlaces = 1
    #expect(script.actions() == ["take again quiet 1 quiet 2 quiet 3 quiet 4"])
    script.silentPlaces = .max
    #expect(script.actions(after: .tookAgain([])) == ["take again quiet 5 quiet 6"])
  }

  /// A check that Apple was asked about keeps its attempts, and returns before all others.
  @Test func aBegunCheckReturnsWhole() {
    var script = Transcript()
    var begun = check("begun")
    begun.attempts = RetryBudget(begun.row.history, asOf: RecheckFixture.asOf, isFurther: false)
    _ = script.ask([check("begun"), check("other")])
    _ = script.actions(after: .ended(begun, .waits(begun, silent)), .took([]))
    script.silentPlaces = 3
    #expect(script.actions() == ["ask begun", "wait"])
  }

  /// Checks that another worker releases are taken over, although all known checks wait for a silent app.
  @Test func aWorkerWithWaitingChecksLooksForNewOnes() {
    var script = Transcript()
    let quiet = check("quiet")
    _ = script.ask([quiet])
    #expect(script.actions(after: .took([]), .ended(quiet, .waits(quiet, silent))) == ["wait"])
    script.now += .seconds(11)
    #expect(script.actions() == ["take new"])
    #expect(script.actions(after: .tookNew([])) == ["wait"])
    script.now += .seconds(11)
    #expect(script.actions() == ["take new"])
    #expect(script.actions(after: .tookNew([check("new")])) == ["read new"])
  }

  /// A worker without checks waits for the others, and takes over the checks of one that dies.
  @Test func anIdleWorkerTakesOverReleasedChecks() {
    var script = Transcript()
    #expect(script.actions(after: .took([]), .tookNew([])) == ["look"])
    #expect(script.actions(after: .looked(.others)) == ["announce", "wait"])
    script.now += .seconds(1)
    #expect(script.actions() == ["look"])
    // A free check that is locked for a moment.
    #expect(script.actions(after: .looked(.free)) == ["reacquire"])
    #expect(script.actions(after: .reacquired([], isLast: false)) == ["wait"])
    script.now += .seconds(2)
    #expect(script.actions() == ["look"])
    #expect(script.actions(after: .looked(.free)) == ["reacquire"])
    #expect(script.actions(after: .reacquired([check("a")], isLast: false)) == ["read a"])
  }

  /// Answers of other workers may have made checks due that no list has.
  @Test func theLastLookReadsFiltersAgain() {
    var script = Transcript()
    _ = script.actions(after: .took([]), .tookNew([]), .looked(.others))
    script.now += .seconds(1)
    _ = script.actions()
    #expect(script.actions(after: .looked(.nothing)) == ["reacquire"])
    #expect(script.actions(after: .reacquired([], isLast: true)) == ["finish"])
  }

  /// A person waits for a filtered run; a night has its deadline.
  @Test(arguments: [true, false]) func onlyUnfilteredRunsWaitWithoutALimit(isWhole: Bool) {
    var script = Transcript(isWhole: isWhole)
    _ = script.actions(after: .took([]), .tookNew([]))
    var last: [String] = []
    for _ in 1...100 where last != ["leave to others"] {
      last = script.actions(after: .looked(.others))
      script.now += .seconds(10)
      if last == ["wait"] { _ = script.actions() }
    }
    #expect(last == [isWhole ? "wait" : "leave to others"])
  }

  /// Otherwise, two workers that hold checks of an ended app would wait for each other.
  @Test func aWorkerThatGaveUpChecksOrIsOfflineDoesNotWaitForOthers() {
    var script = Transcript()
    _ = script.ask([check("a")])
    #expect(script.actions(after: .took([]), .ended(check("a"), .over)) == ["take new"])
    #expect(script.actions(after: .tookNew([])) == ["finish"])
    var offline = Transcript(isOffline: true)
    #expect(offline.actions(after: .took([]), .tookNew([])) == ["finish"])
  }

  /// At the end, waiting checks record their failed attempts, and no more are taken.
  @Test func theEndAsksBegunChecksOnceMore() {
    var script = Transcript()
    var begun = check("begun")
    begun.answers = [ChannelAnswer(.unknown)]
    _ = script.ask([check("begun")])
    #expect(script.actions(after: .ended(begun, .waits(begun, silent))) == ["take"])
    _ = script.actions(after: .took([check("b"), check("c")]))
    script.reasonToEnd = "deadline"
    #expect(script.actions(after: .read([])) == ["end deadline, 0 left", "ask begun", "wait"])
    #expect(script.actions(after: .ended(begun, .over)) == ["finish"])
  }

  /// Checks that Apple was not asked about stay due, so that nothing is waited for.
  @Test func theEndLeavesUnaskedChecks() {
    var script = Transcript()
    let quiet = check("quiet")
    _ = script.ask([quiet])
    #expect(script.actions(after: .took([]), .ended(quiet, .waits(quiet, silent))) == ["wait"])
    script.reasonToEnd = "deadline"
    #expect(script.actions() == ["end deadline, 0 left", "finish"])
  }

  /// Nothing is left that the deadline could end.
  @Test func aDeadlineAfterTheLastAnswerEndsNothing() {
    var script = Transcript()
    _ = script.actions(after: .took([]))
    script.reasonToEnd = "deadline"
    #expect(script.actions(after: .tookNew([])) == ["look"])
    #expect(script.actions(after: .looked(.nothing)) == ["finish"])
  }
}
