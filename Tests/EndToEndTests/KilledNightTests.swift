import Foundation
import TestSupport
import Testing

/// A night may be killed, or told to end, at any instant: one more run completes it, with the bytes of a night that nobody disturbed, and
/// asks nothing twice whose answer was stored. A run of the next minutes, which is what cron starts, comes to the same, but
/// for what was asked and seen when.
///
/// Instants are counted in what the program sends to the database, so that they lie everywhere and need no clock. Six are
/// drawn; `TEST_EFFORT=17` draws a hundred. `TEST_SEED` draws the same again.
@Suite(.serialized) struct KilledNightTests {
  private static let effort = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  private static let seed =
    ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1_000_000)

  /// What a night of another as-of says as well: files that name no instant of it, and the rows of others without those.
  private func truth(_ files: [String: Data]) throws -> [String: [[String: String]]] {
    let instants: Set = ["first_seen", "checked_at", "due", "age_days", "days_since", "occurred_at"]
    let names = [
      "findings.csv", "orders.csv", "amounts.csv", "users.csv", "refunds.csv", "sandbox.csv", "changes.csv",
    ]
    return try Dictionary(
      uniqueKeysWithValues: names.map { name in
        let text = String(decoding: try #require(files[name]), as: UTF8.self).replacing(/after \d+ attempts?/, with: "")
        return (name, rows(Data(text.utf8)).map { $0.filter { !instants.contains($0.key) } })
      })
  }

  private static let endings: [(Passage.Ending, Int32)] = [
    (.kill, SIGKILL), (.kill, SIGKILL), (.terminate, SIGTERM), (.hangUp, SIGTERM), (.hangUp, SIGTERM),
    (.terminate, SIGTERM), (.kill, SIGKILL), (.kill, SIGKILL),
  ]

  /// What a run of the next minutes asks again: what is due after a minute without an answer, and before an accusation that
  /// nobody has seen yet, of whom is accused, and of who has the payment that they wanted.
  private static let dueByThen = """
    SELECT string_agg(subject_id, ',') FROM night_audit.receipt_checks c LEFT JOIN sales.receipts r
      ON r.receipt_id::text = c.subject_id
    WHERE outcome = 'unanswered' OR EXISTS (
      SELECT FROM night_audit.findings f LEFT JOIN night_audit.claims p USING (transaction_id)
      WHERE f.severity = 'critical' AND (f.user_id = r.user_id::text OR p.order_id = r.order_id::text))
    """

  @Test func oneRunCompletesANightThatWasKilled() async throws {
    let repeated = try await RepeatedNight()
    let later = Rehearsal.asOf.replacing("T03:00", with: "T03:07")
    let calmLater = try await repeated.begin()
    #expect(await (try calmLater.start(asOf: later)).finish().status == 3)
    let wantedLater = try truth(try calmLater.files())

    print("KilledNightTests: \(6 * Self.effort) of \(repeated.sent) instants, TEST_SEED=\(Self.seed)")
    var state = Self.seed
    var killed = 0
    for number in 0..<6 * Self.effort {
      // Any sequence will do that can be drawn again (Knuth, MMIX).
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let instant = Int(state >> 33) % repeated.sent + 1
      let attempt = try await repeated.begin()
      let (ending, signal) = Self.endings[number % Self.endings.count]
      let passage = try await Passage(to: attempt.conninfo, ending, at: instant)
      let first = await (try attempt.start(through: passage)).finish()
      let what: Comment = "\(ending) at instant \(instant): \(first)"
      // Who is told while the last things are done has done them.
      #expect(first.status == 128 + signal || first.status == 3, what)
      killed += first.status == 3 ? 0 : 1
      // It may still hold the dead run's connections open.
      passage.stop()
      try attempt.isWholeOrSaid(first, of: repeated.wanted, what)
      if number % 2 == 0 {
        try await attempt.isMadeWhole(what)
        #expect(try attempt.files() == repeated.wanted, what)
      } else {
        try await attempt.isMadeWhole(asOf: later, mayBeAsked: Self.dueByThen, what)
        let files = try attempt.files()
        #expect(files.keys.sorted() == repeated.wanted.keys.sorted(), what)
        let truth = try truth(files)
        for (name, rows) in wantedLater {
          let others = Set(truth[name] ?? []).symmetricDifference(rows)
          #expect(others.isEmpty, "\(what): \(name)")
        }
      }
    }
    #expect(killed > 0)
  }

  /// Five seconds; what hangs would hang for minutes, so that a loaded machine gets a minute.
  @Test(arguments: [0.02, 0.3, 0.6, 0.97])
  func whateverARunWaitsForItEndsWhenItIsTold(_ share: Double) async throws {
    let repeated = try await RepeatedNight()
    var instant = max(1, Int(Double(repeated.sent) * share))
    while true {
      let attempt = try await repeated.begin()
      let stalled = try await Passage(to: attempt.conninfo, .stall, at: instant)
      let running = try attempt.start(through: stalled)
      while stalled.count < instant, running.process.isRunning { await Task.yield() }
      let told = ContinuousClock.now
      if running.process.isRunning { kill(running.process.processIdentifier, SIGTERM) }
      let result = await running.finish()
      // How much a night sends depends on how its answers come together: this one was through before the instant.
      if result.status == 3, instant > 1 {
        instant = instant * 9 / 10
        continue
      }
      #expect(result.status == 143, "\(result)")
      #expect(ContinuousClock.now - told < .seconds(60))
      return
    }
  }
}
