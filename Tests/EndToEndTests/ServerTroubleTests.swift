import Foundation
import Postgres
import TestSupport
import Testing

/// A server that ends sessions, cancels statements, starts anew or has others in the way at any instant of a night, or a
/// volume for the reports that is gone: it is gone on with or said, and one more run makes the night that nothing had
/// disturbed.
///
/// `TEST_EFFORT=n` makes n times as much trouble; `TEST_SEED=s` draws the same instants.
@Suite(.serialized) struct ServerTroubleTests {
  private static let effort = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  private static let seed =
    ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1_000_000)

  private enum Trouble: String, CaseIterable {
    case terminated, cancelled, restarted, conflicting
    /// The reports' folder: a file lies in its place; it is deleted; it was a mount, and an empty folder lies below.
    case volumeGone, volumeDeleted, volumeUnmounted
    /// The server's own volume has no room left.
    case full

    /// How a run may end that met it: 3, as undisturbed, where nothing that counts was met, or it was done again.
    var statuses: Set<Int32> {
      switch self {
      case .terminated, .cancelled, .restarted, .full: [3, 69]
      case .conflicting: [3, 69, 75]
      case .volumeGone, .volumeDeleted, .volumeUnmounted: [3, 73]
      }
    }

    /// What can happen to every database.
    static let common = allCases.filter { $0 != .full }
    static let ofVolumes = [volumeGone, volumeDeleted, volumeUnmounted]

    /// - Parameters:
    ///   - reports: where the reports' folder is.
    ///   - volume: where the database is, if not where all are.
    func make(in database: String, reports: String, volume: SmallVolume?) async throws {
      let cluster = try await PrivatePostgres.shared()
      switch self {
      case .terminated: try await signal("pg_terminate_backend", database, cluster)
      case .cancelled: try await signal("pg_cancel_backend", database, cluster)
      case .restarted:
        try await cluster.stopImmediately()
        try await cluster.restart()
      case .conflicting:
        try await execute(
          """
          CREATE SEQUENCE public.troubles;
          GRANT ALL ON SEQUENCE public.troubles TO PUBLIC;
          GRANT USAGE ON SCHEMA public TO PUBLIC;
          CREATE FUNCTION public.trouble() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            IF nextval('public.troubles') % 4 = 0 THEN
              RAISE EXCEPTION 'others are in the way'
                USING ERRCODE = (ARRAY['40001', '40P01', '55P03'])[1 + currval('public.troubles') / 4 % 3];
            END IF;
            RETURN NULL;
          END $$;
          """, cluster.conninfo(database: database))
        // One by one: who locks several tables is in the way of others, and they in his.
        for table in Self.written {
          try await execute(
            """
            CREATE TRIGGER trouble BEFORE INSERT OR UPDATE ON night_audit.\(table)
              FOR EACH STATEMENT EXECUTE FUNCTION public.trouble();
            """, cluster.conninfo(database: database))
        }
      case .volumeGone:
        let files = FileManager.default
        if files.fileExists(atPath: reports) { try files.moveItem(atPath: reports, toPath: reports + "-away") }
        try Data().write(to: URL(fileURLWithPath: reports))
      case .volumeDeleted:
        try? FileManager.default.removeItem(atPath: reports)
      case .volumeUnmounted:
        let files = FileManager.default
        if files.fileExists(atPath: reports) { try files.moveItem(atPath: reports, toPath: reports + "-away") }
        try files.createDirectory(atPath: reports, withIntermediateDirectories: true)
      case .full: try volume?.fill()
      }
    }

    /// Makes it good again, for the run that follows.
    func end(in database: String, reports: String, volume: SmallVolume?) async throws {
      let cluster = try await PrivatePostgres.shared()
      switch self {
      case .terminated, .cancelled, .restarted, .volumeDeleted: return
      case .conflicting:
        for table in Self.written {
          try await execute(
            "DROP TRIGGER IF EXISTS trouble ON night_audit.\(table)", cluster.conninfo(database: database))
        }
      case .volumeGone:
        let files = FileManager.default
        var isFolder: ObjCBool = false
        if files.fileExists(atPath: reports, isDirectory: &isFolder), !isFolder.boolValue {
          try files.removeItem(atPath: reports)
        }
        let away = reports + "-away"
        if files.fileExists(atPath: away) { try files.moveItem(atPath: away, toPath: reports) }
      case .volumeUnmounted:
        let (files, away) = (FileManager.default, reports + "-away")
        guard files.fileExists(atPath: away) else { return }
        // What was written below the mount is seen no more.
        try files.removeItem(atPath: reports)
        try files.moveItem(atPath: away, toPath: reports)
      case .full: try volume?.clear()
      }
    }

    /// What a night writes, and folds.
    private static let written = ["answers", "evidence", "transactions", "receipt_checks", "findings", "runs"]

    private func execute(_ sql: String, _ conninfo: String) async throws {
      let session = try await PostgresSession.connect(conninfo, applicationName: "night-audit tests")
      try await session.executeScript(sql)
      await session.close()
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

  /// A shop that many nights begin with, and what a night of it makes that nothing disturbs.
  private struct Beginning {
    let shop: Rehearsal
    /// How much such a night sends to the server.
    let total: Int
    let wanted: [String: Data]

    init() async throws {
      shop = try await Rehearsal.sampleShop()
      let calm = try await Passage(to: try await PrivatePostgres.shared().copyDatabase(shop.conninfo))
      let night = await (try Beginning.start("calm", calm.conninfo, shop)).finish()
      #expect(night.status == 3, "\(night)")
      total = calm.count
      wanted = try Beginning.report("calm", shop)
    }

    static func start(_ name: String, _ conninfo: String, _ shop: Rehearsal) throws -> Program.Running {
      try Program.nightAudit.start(
        ["run", "--as-of", Rehearsal.asOf, "--config", shop.directory.file("night-audit.yaml")],
        environment: [
          "NIGHT_AUDIT_DATABASE_URL": conninfo, "NIGHT_AUDIT_REPORT_DIRECTORY": shop.directory.file("reports-\(name)"),
        ])
    }

    static func report(_ name: String, _ shop: Rehearsal) throws -> [String: Data] {
      var files = try shop.files(shop.directory.file("reports-\(name)/2026-11-19"))
      files["run.json"] = nil
      return files
    }

    /// A night that meets the trouble when it has sent so much, and the next one.
    ///
    /// - Parameters:
    ///   - name: of its folder, which no other night has.
    ///   - volume: what the database is moved to.
    /// - Returns: how the night ended that met it.
    @discardableResult
    func meet(
      _ trouble: Trouble, at instant: Int, _ name: String, on volume: SmallVolume? = nil
    ) async throws -> Int32 {
      let reports = shop.directory.file("reports-\(name)")
      let what = "\(trouble) at \(instant)"
      let conninfo = try await PrivatePostgres.shared().copyDatabase(shop.conninfo)
      let database = try #require(conninfo.split(separator: "=").last.map(String.init))
      try await volume?.take(database)
      let passage = try await Passage(to: conninfo, .tell, at: instant)
      let running = try Beginning.start(name, passage.conninfo, shop)
      while passage.count < instant, running.process.isRunning { await Task.yield() }
      try await trouble.make(in: database, reports: reports, volume: volume)
      let first = await running.finish()
      passage.stop()
      try await trouble.end(in: database, reports: reports, volume: volume)
      #expect(trouble.statuses.contains(first.status), "\(what): \(first)")
      if first.status != 3 { #expect(first.errors.contains("night-audit: "), "\(what): \(first)") }
      #expect(!first.errors.contains("Bad file descriptor"), "\(what): \(first)")
      if trouble == .full, first.status == 69 { #expect(first.errors.contains("disk is full"), "\(what): \(first)") }
      if FileManager.default.fileExists(atPath: reports + "/2026-11-19") {
        #expect(try Beginning.report(name, shop) == wanted, "\(what)")
      }
      let second = await (try Beginning.start(name, conninfo, shop)).finish()
      #expect(second.status == 3, "\(what): \(second)")
      #expect(try Beginning.report(name, shop) == wanted, "\(what)")
      let entries = try FileManager.default.contentsOfDirectory(atPath: reports).sorted()
      #expect(entries == ["2026-11-19", "latest"], "\(what)")
      let verified = try await shop.nightAudit("verify", environment: ["NIGHT_AUDIT_DATABASE_URL": conninfo])
      #expect(verified.status == 0, "\(what): \(verified)")
      try await volume?.remove(database)
      return first.status
    }
  }

  @Test func whateverTheServerDoesOneMoreRunMakesTheNight() async throws {
    let beginning = try await Beginning()
    print("ServerTroubleTests: \(Self.effort) of \(beginning.total) instants, TEST_SEED=\(Self.seed)")
    var state = Self.seed
    for number in 0..<Self.effort {
      let troubles = Trouble.common
      let trouble = troubles[(number + Int(Self.seed % UInt64(troubles.count))) % troubles.count]
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      try await beginning.meet(trouble, at: Int(state >> 33) % beginning.total + 1, "trouble\(number)")
    }
  }

  @Test func aVolumeThatIsGoneBetweenTheStartAndPublishingIsSaid() async throws {
    let beginning = try await Beginning()
    for trouble in Trouble.ofVolumes {
      for tenths in Self.effort > 1 ? [1, 7, 9] : [9] {
        try await beginning.meet(trouble, at: max(1, beginning.total * tenths / 10), "\(trouble)-\(tenths)")
      }
    }
  }

  @Test(.enabled(if: SmallVolume.isPossible)) func aServerWithoutRoomIsSaid() async throws {
    let beginning = try await Beginning()
    var disturbed = 0
    for tenth in Self.effort > 1 ? Array(0...9) : [1] {
      let volume = try await SmallVolume.make(for: PrivatePostgres.shared())
      let instant = max(1, beginning.total * tenth / 10)
      disturbed += try await beginning.meet(.full, at: instant, "full-\(tenth)", on: volume) == 69 ? 1 : 0
    }
    #expect(disturbed > 0)
  }
}
