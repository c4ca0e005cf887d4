import Foundation
import TestSupport
import Testing

/// A night may be killed or terminated at any instant: one more run completes it with the same bytes, and repeats no
/// question with a stored answer. A run minutes later, as cron starts it, differs only in times, and in actions that
/// rest on answers of the killed run.
///
/// Instants are counted in writes to the database, so no clock is needed. `TEST_EFFORT=17` draws a hundred; `TEST_SEED`
/// repeats.
@Suite(.serialized) struct KilledNightTests {
  /// The files without instants and actions, for a comparison with a night of another as-of. Actions on answers of the
  /// killed run differ, because these answers are older than the later as-of, and are left to people.
  private func truth(_ files: [String: Data]) throws -> [String: [[String: String]]] {
    let ignored: Set = [
      "first_seen", "checked_at", "due", "age_days", "days_since", "occurred_at", "suggested_action",
    ]
    let names = [
      "findings.csv", "orders.csv", "amounts.csv", "users.csv", "refunds.csv", "sandbox.csv", "changes.csv",
    ]
    return try Dictionary(
      uniqueKeysWithValues: names.map { name in
        let text = String(decoding: try #require(files[name]), as: UTF8.self).replacing(/after \d+ attempts?/, with: "")
        return (name, rows(Data(text.utf8)).map { $0.filter { !ignored.contains($0.key) } })
      })
  }

  private static let endings: [(DatabaseProxy.Ending, Int32)] = [
    (.kill, SIGKILL), (.kill, SIGKILL), (.terminate, SIGTERM), (.hangUp, SIGTERM), (.hangUp, SIGTERM),
    (.terminate, SIGTERM), (.kill, SIGKILL), (.kill, SIGKILL),
  ]

  /// Questions that a run minutes later may ask again. Unanswered ones are due after a minute, and evidence of new
  /// critical findings is requested.
  private static let dueByThen = """
    SELECT string_agg(subject_id, ',') FROM night_audit.receipt_checks c LEFT JOIN sales.receipts r
      ON r.receipt_id::text = c.subject_id
    WHERE outcome = 'unanswered' OR EXISTS (
      SELECT FROM night_audit.findings f LEFT JOIN night_audit.claims p USING (transaction_id)
      WHERE f.severity = 'critical' AND (f.user_id = r.user_id::text OR p.order_id = r.order_id::text))
    """

  @Test func oneRunCompletesANightThatWasKilled() async throws {
    let repeated = try await RepeatedNight.shared()
    let later = Rehearsal.asOf.replacing("T03:00", with: "T03:07")
    let calmLater = try await repeated.begin()
    #expect(await (try calmLater.start(asOf: later)).finish().status == 3)
    let wantedLater = try truth(try calmLater.files())

    // The first four endings are all kinds.
    let attempts = TortureSettings.effort > 1 ? 6 * TortureSettings.effort : 4
    print("KilledNightTests: \(attempts) of \(repeated.sent) instants, TEST_SEED=\(TortureSettings.seed)")
    var instants = SeededGenerator(seed: TortureSettings.seed)
    var killed = 0
    for number in 0..<attempts {
      let instant = instants.number(1...repeated.sent)
      let attempt = try await repeated.begin()
      let (ending, signal) = Self.endings[number % Self.endings.count]
      let passage = try await DatabaseProxy(to: attempt.conninfo, ending, at: instant)
      let first = await (try attempt.start(through: passage)).finish()
      let what: Comment = "\(ending) at instant \(instant): \(first)"
      // A signal during the last steps lets them finish.
      #expect(first.status == 128 + signal || first.status == 3, what)
      killed += first.status == 3 ? 0 : 1
      // The proxy may still keep connections of the killed run open.
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

  /// Five seconds are normal for each wait, and a hang would last.
  @Test(.timeLimit(.minutes(10)), arguments: [0.02, 0.5, 0.97])
  func aSignalEndsEveryWaitOfARun(_ share: Double) async throws {
    let repeated = try await RepeatedNight.shared()
    var instant = max(1, Int(Double(repeated.sent) * share))
    while true {
      let attempt = try await repeated.begin()
      let stalled = try await DatabaseProxy(to: attempt.conninfo, .stall, at: instant)
      let running = try attempt.start(through: stalled)
      while stalled.count < instant, running.process.isRunning { await pause() }
      if running.process.isRunning { kill(running.process.processIdentifier, SIGTERM) }
      let result = await running.finish()
      // The number of writes varies. This night finished before the instant.
      if result.status == 3, instant > 1 {
        instant = instant * 9 / 10
        continue
      }
      #expect(result.status == 143, "\(result)")
      return
    }
  }
}
