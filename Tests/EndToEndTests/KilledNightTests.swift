import Foundation
import Postgres
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

  /// A shop that many nights begin with: each gets a copy of its database and reports of its own.
  private struct Beginning {
    let shop: Rehearsal

    func copy() async throws -> String { try await PrivatePostgres.shared().copyDatabase(shop.conninfo) }

    func start(
      _ database: String, _ reports: TemporaryDirectory, asOf: String = Rehearsal.asOf
    ) throws -> Program.Running {
      try Program.nightAudit.start(
        ["run", "--as-of", asOf, "--config", shop.directory.file("night-audit.yaml")],
        environment: ["NIGHT_AUDIT_DATABASE_URL": database, "NIGHT_AUDIT_REPORT_DIRECTORY": reports.file("reports")])
    }

    /// What lies in the night's folder, without what differs from run to run.
    func files(_ reports: TemporaryDirectory) throws -> [String: Data] {
      var files = try shop.files(reports.file("reports/2026-11-19"))
      files["run.json"] = nil
      return files
    }

    /// What a night of another as-of says as well: files that name no instant of it, and the rows of others without those.
    func truth(_ reports: TemporaryDirectory) throws -> [String: [[String: String]]] {
      let instants: Set = ["first_seen", "checked_at", "due", "age_days", "days_since", "occurred_at"]
      let names = [
        "findings.csv", "orders.csv", "amounts.csv", "users.csv", "refunds.csv", "sandbox.csv", "changes.csv",
      ]
      let files = try files(reports)
      let texts = files.mapValues {
        Data(String(decoding: $0, as: UTF8.self).replacing(/after \d+ attempts/, with: "").utf8)
      }
      return Dictionary(
        uniqueKeysWithValues: names.map { name in
          (name, rows(texts[name] ?? Data()).map { $0.filter { !instants.contains($0.key) } })
        })
    }
  }

  private func value(_ database: String, _ sql: String) async throws -> String {
    let session = try await PostgresSession.connect(database, applicationName: "night-audit tests")
    let value = try await session.execute("SELECT (\(sql))::text").single().optionalText(0)
    await session.close()
    return value ?? ""
  }

  private static let endings: [(Passage.Ending, Int32)] = [
    (.kill, SIGKILL), (.kill, SIGKILL), (.terminate, SIGTERM), (.hangUp, SIGTERM), (.hangUp, SIGTERM),
    (.terminate, SIGTERM), (.kill, SIGKILL), (.kill, SIGKILL),
  ]

  @Test func oneRunCompletesANightThatWasKilled() async throws {
    let beginning = Beginning(shop: try await Rehearsal.sampleShop())
    let undisturbed = try TemporaryDirectory()
    let passage = try await Passage(to: try await beginning.copy())
    let calm = await (try beginning.start(passage.conninfo, undisturbed)).finish()
    #expect(calm.status == 3, "\(calm.errors)")
    let wanted = try beginning.files(undisturbed)
    let later = Rehearsal.asOf.replacing("T03:00", with: "T03:07")
    let atLater = try TemporaryDirectory()
    let calmLater = await (try beginning.start(try await beginning.copy(), atLater, asOf: later)).finish()
    #expect(calmLater.status == 3, "\(calmLater.errors)")
    let wantedLater = try beginning.truth(atLater)
    let total = passage.count
    #expect(total > 100)

    print("KilledNightTests: \(6 * Self.effort) of \(total) instants, TEST_SEED=\(Self.seed)")
    var state = Self.seed
    var killed = 0
    for number in 0..<6 * Self.effort {
      // Any sequence will do that can be drawn again (Knuth, MMIX).
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let instant = Int(state >> 33) % total + 1
      let database = try await beginning.copy()
      let reports = try TemporaryDirectory()
      let (ending, signal) = Self.endings[number % Self.endings.count]
      let passage = try await Passage(to: database, ending, at: instant)
      let first = await (try beginning.start(passage.conninfo, reports)).finish()
      // Who is told while the last things are done has done them.
      #expect(first.status == 128 + signal || first.status == 3, "instant \(instant): \(first)")
      killed += first.status == 3 ? 0 : 1
      // It may still hold the dead run's connections open.
      passage.stop()
      let others = """
        SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        """
      while try await value(database, others) != "0" { await Task.yield() }
      let stored = """
        SELECT coalesce(string_agg(subject_id || ' ' || n, ',' ORDER BY subject_id), '') FROM (
          SELECT subject_id, count(*) AS n FROM night_audit.answers GROUP BY 1) a
        """
      let before = Set(try await value(database, stored).split(separator: ","))

      let isLater = number % 2 == 1
      let second = await (try beginning.start(database, reports, asOf: isLater ? later : Rehearsal.asOf)).finish()
      #expect(second.status == 3, "instant \(instant): \(second.errors)")
      let after = Set(try await value(database, stored).split(separator: ","))
      var twice = Set(before.subtracting(after).compactMap { $0.split(separator: " ").first.map(String.init) })
      if isLater {
        // Due again after a minute without an answer, and before an accusation that nobody has seen yet: of whom is accused,
        // and of who has the payment that they wanted.
        let mayBe = try await value(
          database,
          """
          SELECT string_agg(subject_id, ',') FROM night_audit.receipt_checks c LEFT JOIN sales.receipts r
            ON r.receipt_id::text = c.subject_id
          WHERE outcome = 'unanswered' OR EXISTS (
            SELECT FROM night_audit.findings f LEFT JOIN night_audit.claims p USING (transaction_id)
            WHERE f.severity = 'critical' AND (f.user_id = r.user_id::text OR p.order_id = r.order_id::text))
          """)
        twice.subtract(mayBe.split(separator: ",").map(String.init))
      }
      #expect(twice.isEmpty, "instant \(instant): asked twice")
      let files = try beginning.files(reports)
      if isLater {
        let truth = try beginning.truth(reports)
        for (name, rows) in wantedLater {
          let others = Set(truth[name] ?? []).symmetricDifference(rows)
          #expect(others.isEmpty, "instant \(instant): \(name)")
        }
      } else {
        for (name, content) in wanted { #expect(files[name] == content, "instant \(instant): \(name)") }
      }
      #expect(files.count == wanted.count, "instant \(instant): \(files.keys.sorted())")
      let entries = try FileManager.default.contentsOfDirectory(atPath: reports.file("reports")).sorted()
      #expect(entries == ["2026-11-19", "latest"], "instant \(instant)")
      // What the database says of the runs is so.
      let said = try await value(
        database,
        "SELECT count(*) FROM night_audit.runs WHERE publication = 'publishing' OR publication IS NULL AND complete")
      #expect(said == "0", "instant \(instant)")
    }
    #expect(killed > 0)
  }

  /// Five seconds; what hangs would hang for minutes, so that a loaded machine gets a minute.
  @Test(arguments: [0.02, 0.3, 0.6, 0.97])
  func whateverARunWaitsForItEndsWhenItIsTold(_ share: Double) async throws {
    let beginning = Beginning(shop: try await Rehearsal.sampleShop())
    let reports = try TemporaryDirectory()
    let passage = try await Passage(to: try await beginning.copy())
    _ = await (try beginning.start(passage.conninfo, reports)).finish()
    var instant = max(1, Int(Double(passage.count) * share))
    while true {
      let stalled = try await Passage(to: try await beginning.copy(), .stall, at: instant)
      let running = try beginning.start(stalled.conninfo, reports)
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
