import Foundation
import Postgres
import TestSupport
import Testing

/// A server that ends sessions, cancels statements or starts anew at any instant of a night: it is gone on with or said, and
/// one more run makes the night that nothing had disturbed.
///
/// `TEST_EFFORT=n` makes n times as much trouble; `TEST_SEED=s` draws the same instants.
@Suite(.serialized) struct ServerTroubleTests {
  private static let effort = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  private static let seed =
    ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1_000_000)

  private enum Trouble: String, CaseIterable {
    case terminated, cancelled, restarted

    func make(in database: String) async throws {
      let cluster = try await PrivatePostgres.shared()
      switch self {
      case .terminated: try await signal("pg_terminate_backend", database, cluster)
      case .cancelled: try await signal("pg_cancel_backend", database, cluster)
      case .restarted:
        try await cluster.stopImmediately()
        try await cluster.restart()
      }
    }

    private func signal(_ function: String, _ database: String, _ cluster: PrivatePostgres) async throws {
      let session = try await PostgresSession.connect(
        cluster.conninfo(database: "postgres"), applicationName: "night-audit tests")
      try await session.execute(
        "SELECT \(function)(pid) FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'night-audit'",
        [.text(database)])
      await session.close()
    }
  }

  @Test func whateverTheServerDoesOneMoreRunMakesTheNight() async throws {
    let shop = try await Rehearsal.sampleShop()
    let original = try #require(shop.conninfo.split(separator: "=").last.map(String.init))
    let cluster = try await PrivatePostgres.shared()
    func copy(_ name: String) async throws -> String {
      let session = try await PostgresSession.connect(
        cluster.conninfo(database: "postgres"), applicationName: "night-audit tests")
      let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = '\(original)'"
      while try await session.execute(others).single().int64(0) > 0 { await Task.yield() }
      try await session.execute("CREATE DATABASE \(original)_\(name) TEMPLATE \(original)")
      await session.close()
      return "\(original)_\(name)"
    }
    func start(_ name: String, _ conninfo: String) throws -> Program.Running {
      try Program.nightAudit.start(
        ["run", "--as-of", Rehearsal.asOf, "--config", shop.directory.file("night-audit.yaml")],
        environment: [
          "NIGHT_AUDIT_DATABASE_URL": conninfo, "NIGHT_AUDIT_REPORT_DIRECTORY": shop.directory.file("reports-\(name)"),
        ])
    }
    func report(_ name: String) throws -> [String: Data] {
      var files = try shop.files(shop.directory.file("reports-\(name)/2026-11-19"))
      files["run.json"] = nil
      return files
    }
    let calm = try await Passage(to: cluster.conninfo(database: try await copy("calm")))
    #expect(await (try start("calm", calm.conninfo)).finish().status == 3)
    let (total, wanted) = (calm.count, try report("calm"))

    print("ServerTroubleTests: \(Self.effort) of \(total) instants, TEST_SEED=\(Self.seed)")
    var state = Self.seed
    for number in 0..<Self.effort {
      let trouble = Trouble.allCases[(number + Int(Self.seed % 3)) % 3]
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let instant = Int(state >> 33) % total + 1
      let (name, what) = ("trouble\(number)", "\(trouble) at \(instant)")
      let database = try await copy(name)
      let passage = try await Passage(to: cluster.conninfo(database: database), .tell, at: instant)
      let running = try start(name, passage.conninfo)
      while passage.count < instant, running.process.isRunning { await Task.yield() }
      try await trouble.make(in: database)
      let first = await running.finish()
      passage.stop()
      // 69: the database was away. 3, as undisturbed: nothing that counts was met, or it was done again.
      #expect([3, 69].contains(first.status), "\(what): \(first)")
      if FileManager.default.fileExists(atPath: shop.directory.file("reports-\(name)/2026-11-19")) {
        #expect(try report(name) == wanted, "\(what)")
      }
      let conninfo = cluster.conninfo(database: database)
      let second = await (try start(name, conninfo)).finish()
      #expect(second.status == 3, "\(what): \(second)")
      #expect(try report(name) == wanted, "\(what)")
      let entries = try FileManager.default.contentsOfDirectory(atPath: shop.directory.file("reports-\(name)")).sorted()
      #expect(entries == ["2026-11-19", "latest"], "\(what)")
      let verified = try await shop.nightAudit("verify", environment: ["NIGHT_AUDIT_DATABASE_URL": conninfo])
      #expect(verified.status == 0, "\(what): \(verified)")
    }
  }
}
