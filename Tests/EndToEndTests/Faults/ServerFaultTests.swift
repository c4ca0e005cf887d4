import Foundation
import Postgres
import TestSupport
import Testing

/// Faults of the server or of a volume at any instant of a night. The night retries or reports them. One more run makes
/// the undisturbed report. `TEST_EFFORT=n` multiplies the faults; `TEST_SEED=s` repeats the instants.
@Suite(.serialized) struct ServerFaultTests {
  /// A night in a cluster that these tests stop and fill.
  private static let nightOfOwnCluster = Task { try await RepeatedNight(in: PrivatePostgres.start()) }

  private enum Trouble: String, CaseIterable {
    case terminated, cancelled, restarted, conflicting
    /// The report volume: replaced by a file, deleted, or unmounted with an empty folder below.
    case volumeGone, volumeDeleted, volumeUnmounted
    case full

    /// The possible exit statuses; 3, as without a fault, if the fault hit nothing relevant or was retried.
    var statuses: Set<Int32> {
      switch self {
      case .terminated, .cancelled, .restarted, .full: [3, 69]
      case .conflicting: [3, 69, 75]
      case .volumeGone, .volumeDeleted, .volumeUnmounted: [3, 73]
      }
    }

    /// True if the night is paused meanwhile. Only running statements can be cancelled, and a lock holder waits for
    /// nothing.
    var findsItStanding: Bool {
      switch self {
      case .cancelled, .conflicting: false
      case .terminated, .restarted, .volumeGone, .volumeDeleted, .volumeUnmounted, .full: true
      }
    }

    static let ofServers = [terminated, cancelled, restarted, conflicting]
    static let ofVolumes = [volumeGone, volumeDeleted, volumeUnmounted]

    /// Makes the fault; returns true if it interrupted something. `volume` has the database; nil: the default place.
    func make(
      for night: Process, in database: String, of cluster: PrivatePostgres, reports: String, volume: SmallVolume?
    ) async throws -> Bool {
      switch self {
      case .terminated: return try await signal("pg_terminate_backend", "true", database, cluster) > 0
      case .cancelled:
        while night.isRunning {
          if try await signal("pg_cancel_backend", "state = 'active'", database, cluster) > 0 { return true }
        }
        return false
      case .restarted:
        let isMet = night.isRunning
        try await cluster.stopImmediately()
        try await cluster.restart()
        return isMet
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
        // One by one, because locking several tables could deadlock.
        for table in Self.written {
          try await execute(
            """
            CREATE TRIGGER trouble BEFORE INSERT OR UPDATE ON night_audit.\(table)
              FOR EACH STATEMENT EXECUTE FUNCTION public.trouble();
            """, cluster.conninfo(database: database))
        }
        return false
      case .volumeGone, .volumeUnmounted:
        let files = FileManager.default
        if files.fileExists(atPath: reports) { try files.moveItem(atPath: reports, toPath: reports + "-away") }
        if self == .volumeGone {
          try Data().write(to: URL(fileURLWithPath: reports))
        } else {
          try files.createDirectory(atPath: reports, withIntermediateDirectories: true)
        }
        return false
      case .volumeDeleted:
        try? FileManager.default.removeItem(atPath: reports)
        return false
      case .full:
        try volume?.fill()
        return false
      }
    }

    /// Ends the fault. Returns true if only its end shows that the night was hit.
    func end(
      in database: String, of cluster: PrivatePostgres, reports: String, volume: SmallVolume?
    ) async throws -> Bool {
      switch self {
      case .terminated, .cancelled, .restarted, .volumeDeleted: return false
      case .conflicting:
        for table in Self.written {
          try await execute(
            "DROP TRIGGER IF EXISTS trouble ON night_audit.\(table)", cluster.conninfo(database: database))
        }
        return try await DatabaseRole.superuser.value(
          "SELECT last_value >= 4 FROM public.troubles", in: cluster.conninfo(database: database)) == "true"
      case .volumeGone:
        let files = FileManager.default
        var isFolder: ObjCBool = false
        if files.fileExists(atPath: reports, isDirectory: &isFolder), !isFolder.boolValue {
          try files.removeItem(atPath: reports)
        }
        let away = reports + "-away"
        if files.fileExists(atPath: away) { try files.moveItem(atPath: away, toPath: reports) }
        return false
      case .volumeUnmounted:
        let (files, away) = (FileManager.default, reports + "-away")
        guard files.fileExists(atPath: away) else { return false }
        try files.removeItem(atPath: reports)
        try files.moveItem(atPath: away, toPath: reports)
        return false
      case .full:
        try volume?.clear()
        return false
      }
    }

    private static let written = ["answers", "evidence", "transactions", "receipt_checks", "findings", "runs"]

    private func execute(_ sql: String, _ conninfo: String) async throws {
      try await DatabaseRole.superuser.execute(sql, in: conninfo)
    }

    private func signal(
      _ function: String, _ condition: String, _ database: String, _ cluster: PrivatePostgres
    ) async throws -> Int64 {
      let count = try await DatabaseRole.superuser.value(
        """
        SELECT count(*) FILTER (WHERE \(function)(pid)) FROM pg_stat_activity
          WHERE datname = '\(database)' AND application_name = 'night-audit' AND \(condition)
        """, in: cluster.conninfo(database: "postgres"))
      return Int64(count) ?? 0
    }
  }

  /// Runs a night that meets the fault at `instant`, and the next one. Returns its status, and whether it was
  /// disturbed.
  private func meet(
    _ trouble: Trouble, at instant: Int, of repeated: RepeatedNight, on volume: SmallVolume? = nil
  ) async throws -> (status: Int32, isDisturbed: Bool) {
    let cluster = repeated.shop.cluster
    let attempt = try await repeated.begin()
    let database = try #require(attempt.conninfo.split(separator: "=").last.map(String.init))
    try await volume?.take(database)
    let passage = try await DatabaseProxy(to: attempt.conninfo, .hold, at: instant)
    let running = try attempt.start(through: passage)
    while passage.count < instant, running.process.isRunning { await pause() }
    if !trouble.findsItStanding { try passage.goOn() }
    let isMet = try await trouble.make(
      for: running.process, in: database, of: cluster, reports: attempt.reports, volume: volume)
    try passage.goOn()
    let first = await running.finish()
    passage.stop()
    let wasMet = try await trouble.end(in: database, of: cluster, reports: attempt.reports, volume: volume)
    let what: Comment = "\(trouble) at \(instant): \(first)"
    #expect(trouble.statuses.contains(first.status), what)
    #expect(!first.errors.contains("Bad file descriptor"), what)
    if trouble == .full, first.status == 69 { #expect(first.errors.contains("disk is full"), what) }
    // A published report may be gone with its volume.
    if !Trouble.ofVolumes.contains(trouble) || first.status != 3 {
      try attempt.isWholeOrSaid(first, of: repeated.wanted, what)
    }
    try await attempt.isMadeWhole(what)
    #expect(try attempt.files() == repeated.wanted, what)
    try await volume?.remove(database)
    return (first.status, first.status != 3 || isMet || wasMet)
  }

  @Test func oneMoreRunCompletesANightAfterServerFaults() async throws {
    let repeated = try await Self.nightOfOwnCluster.value
    let tried = TortureSettings.effort * Trouble.ofServers.count
    print("ServerFaultTests: \(tried) of \(repeated.sent) instants, TEST_SEED=\(TortureSettings.seed)")
    var instants = SeededGenerator(seed: TortureSettings.seed)
    var disturbed = 0
    for number in 0..<tried {
      let trouble = Trouble.ofServers[number % Trouble.ofServers.count]
      let night = try await meet(trouble, at: instants.number(1...repeated.sent), of: repeated)
      disturbed += night.isDisturbed ? 1 : 0
    }
    // Some faults hit an idle moment or the very end.
    #expect(disturbed * 2 >= tried, "\(disturbed) of \(tried)")
  }

  @Test func aVolumeLostBeforePublishingIsReported() async throws {
    let repeated = try await RepeatedNight.shared()
    var statuses: Set<Int32> = []
    for trouble in Trouble.ofVolumes {
      for tenths in TortureSettings.effort > 1 ? [1, 7, 9] : [7] {
        statuses.insert(try await meet(trouble, at: max(1, repeated.sent * tenths / 10), of: repeated).status)
      }
    }
    #expect(statuses.contains(73))
  }

  @Test(.enabled(if: SmallVolume.isPossible)) func aFullServerIsReported() async throws {
    let repeated = try await Self.nightOfOwnCluster.value
    var statuses: Set<Int32> = []
    for tenth in TortureSettings.effort > 1 ? Array(0...9) : [1] {
      let volume = try await SmallVolume.make(for: repeated.shop.cluster)
      statuses.insert(try await meet(.full, at: max(1, repeated.sent * tenth / 10), of: repeated, on: volume).status)
    }
    #expect(statuses.contains(69))
  }
}
