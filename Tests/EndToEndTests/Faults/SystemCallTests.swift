import Foundation
import TestSupport
import Testing

/// Each file system call of a night fails, or the night is killed before it. The report is whole or absent, the night
/// reports the problem, and the next run removes all traces.
///
/// Some calls are drawn; `TEST_EFFORT` draws more, `TEST_SEED` repeats, `TEST_CALLS=169-180` selects calls.
@Suite(.serialized) struct SystemCallTests {
  private enum Trouble: CustomStringConvertible {
    case fails(Int32)
    /// All later calls that need space or write permission fail too.
    case failsFromThenOn(Int32)
    case kill

    var environment: [String: String] {
      switch self {
      case .fails(let error): ["FAULT_ERROR": String(error)]
      case .failsFromThenOn(let error): ["FAULT_ERROR": String(error), "FAULT_LASTS": "1"]
      case .kill: ["FAULT_KILLS": "1"]
      }
    }

    var description: String {
      switch self {
      case .fails(let error): String(cString: strerror(error))
      case .failsFromThenOn(let error): "\(String(cString: strerror(error))) from then on"
      case .kill: "killed"
      }
    }
  }

  private struct Stage {
    /// For tests that only add nights. Its reports have sheets, which make most calls.
    static let shared = Task {
      let stage = try await Stage(formats: "csv, xlsx")
      #expect(stage.calls.count > 40, "\(stage.calls)")
      return stage
    }

    let shop: Rehearsal
    let library: TestLibrary
    private(set) var calls: [String] = []
    private(set) var wanted: [String: Data] = [:]

    init(formats: String = "csv") async throws {
      shop = try await Rehearsal.sampleShop(formats: formats)
      library = try await TestLibrary("faults", in: shop.directory)
      try shop.configure("  deliver: [hook]\ndeliver:\n  hook:\n    command: [/bin/true]")
      // The first night stores answers that later ones need not request.
      for name in ["first", "wanted"] {
        #expect(try await night(name).status == 3)
        calls = try callsMade()
      }
      wanted = try #require(try report("wanted"))
    }

    /// - Parameter call: the number of the call; 0: none.
    func night(
      _ name: String, asOf: String = Rehearsal.asOf, more: [String] = [], at call: Int = 0,
      _ trouble: Trouble = .kill, environment: [String: String] = [:]
    ) async throws -> Program.Result {
      let arguments = ["run", "--as-of", asOf] + more
      return try await nightAudit(arguments, in: name, at: call, trouble, environment: environment)
    }

    func nightAudit(
      _ arguments: [String], in name: String, at call: Int = 0, _ trouble: Trouble = .kill,
      environment: [String: String] = [:]
    ) async throws -> Program.Result {
      let place = shop.directory.file(name)
      try FileManager.default.createDirectory(atPath: place + "/temporary", withIntermediateDirectories: true)
      return try await shop.nightAudit(
        more: arguments,
        environment: [
          "LD_PRELOAD": library.path, "FAULT_BELOW": shop.directory.url.path, "FAULT_PROGRAM": "night-audit",
          "FAULT_LOG": shop.directory.file("calls"), "FAULT_AT": String(call),
          "TMPDIR": place + "/temporary", "NIGHT_AUDIT_REPORT_DIRECTORY": place + "/reports",
          "NIGHT_AUDIT_METRICS_TEXTFILE": place + "/metrics.prom",
        ].merging(trouble.environment) { $1 }.merging(environment) { $1 })
    }

    func callsMade() throws -> [String] {
      let log = shop.directory.file("calls")
      defer { try? FileManager.default.removeItem(atPath: log) }
      return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// The night's folder without `run.json`; nil if there is none.
    func report(_ name: String) throws -> [String: Data]? {
      let folder = shop.directory.file("\(name)/reports/2026-11-19")
      return try FileManager.default.fileExists(atPath: folder) ? shop.report(folder) : nil
    }

    func entries(_ path: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: shop.directory.file(path)).sorted()
    }
  }

  private func drawn<Fault>(_ all: [Fault], _ count: Int, call: (Fault) -> Int) -> [Fault] {
    var generator = SeededGenerator(seed: TortureSettings.seed)
    let chosen = ProcessInfo.processInfo.environment["TEST_CALLS"]?.split(separator: "-").compactMap { Int($0) }
    let drawn =
      if let chosen {
        all.filter { (chosen[0]...chosen[chosen.count - 1]).contains(call($0)) }
      } else if count >= all.count {
        all
      } else {
        (0..<count).map { _ in all[generator.number(0...all.count - 1)] }
      }
    print("SystemCallTests: \(drawn.count) of \(all.count) faults, TEST_SEED=\(TortureSettings.seed)")
    return drawn
  }

  @Test func aFailedSystemCallDamagesNoReport() async throws {
    let stage = try await Stage.shared.value
    let errors = [ENOSPC, EIO, EACCES]
    let all = stage.calls.indices.flatMap { call in errors.map { (call: call + 1, error: $0) } }
    for fault in drawn(all, 2 * TortureSettings.effort, call: \.call) {
      try await endures(.fails(fault.error), at: fault.call, endingWith: [3, 73, 78], stage)
    }
    let verified = try await stage.shop.nightAudit("verify")
    #expect(verified.status == 0, "\(verified)")
  }

  /// Kills at database writes are tested by `KilledNightTests`.
  @Test func aKillAtASystemCallDamagesNoReport() async throws {
    let stage = try await Stage.shared.value
    for call in drawn(stage.calls.indices.map { $0 + 1 }, TortureSettings.effort, call: \.self) {
      try await endures(.kill, at: call, endingWith: [128 + SIGKILL], stage)
    }
    let verified = try await stage.shop.nightAudit("verify")
    #expect(verified.status == 0, "\(verified)")
  }

  /// The trail shows if a missing folder was removed after its retention.
  @Test func aNightKilledDuringCleanupIsCompleted() async throws {
    let stage = try await Stage()
    let retention = ["NIGHT_AUDIT_REPORT_RETENTION": "1d"]
    try await stage.shop.execute(
      "DELETE FROM night_audit.retention; INSERT INTO night_audit.retention (reports) VALUES ('1 day')")
    func leaveOldReport(_ number: Int) async throws -> String {
      let asOf = String(format: "2026-11-%02dT%02d:00:00Z", number / 24 + 1, number % 24)
      let night = try await stage.night("night", asOf: asOf, more: ["--date", "2026-10-31", "--user", "800"])
      #expect([0, 3].contains(night.status), "\(night)")
      _ = try stage.callsMade()
      return try await stage.shop.value("SELECT run_id::text FROM night_audit.runs WHERE as_of = '\(asOf)'")
    }
    var calls: [String] = []
    // The calls of the second night count, because it repeats no delivery of the first one.
    for number in 0...1 {
      try? FileManager.default.removeItem(atPath: stage.shop.directory.file("night"))
      _ = try await leaveOldReport(number)
      #expect(try await stage.night("night", environment: retention).status == 3)
      calls = try stage.callsMade()
    }
    let first = try #require(calls.firstIndex { $0.contains("rename") && $0.contains("ad-hoc") })
    for (number, call) in drawn(Array(first + 1...calls.count), 2 * TortureSettings.effort, call: \.self).enumerated() {
      try? FileManager.default.removeItem(atPath: stage.shop.directory.file("night"))
      let run = try await leaveOldReport(number + 2)
      try await endures(
        .kill, at: call, endingWith: [128 + SIGKILL], stage, in: "night", environment: retention, leaving: ["ad-hoc"])
      let verified = try await stage.shop.nightAudit("verify", "--run", run)
      #expect(verified.status == 0, "call \(call) (\(calls[call - 1])): \(verified)")
    }
  }

  /// Forgetting is atomic: after a kill it can be repeated.
  @Test func aKilledUndoOfARunIsRestarted() async throws {
    let stage = try await Stage()
    func forget(at call: Int = 0) async throws -> (Program.Result, [String]) {
      #expect(try await stage.night("night").status == 3)
      _ = try stage.callsMade()
      let newest = try await stage.shop.value(
        "SELECT run_id::text FROM night_audit.runs ORDER BY started_at DESC LIMIT 1")
      let first = try await stage.nightAudit(["runs", "forget", newest], in: "night", at: call)
      let calls = try stage.callsMade()
      if call == 0 { return (first, calls) }
      #expect(first.status == 128 + SIGKILL, "\(first)")
      return (try await stage.nightAudit(["runs", "forget", newest], in: "night"), calls)
    }
    let (undisturbed, calls) = try await forget()
    #expect(undisturbed.status == 0 && calls.count > 5, "\(undisturbed) \(calls)")
    for call in drawn(calls.indices.map { $0 + 1 }, TortureSettings.effort, call: \.self) {
      let (second, _) = try await forget(at: call)
      #expect(second.status == 0, "call \(call) (\(calls[call - 1])): \(second)")
      #expect(try stage.entries("night/reports") == [], "call \(call) (\(calls[call - 1]))")
    }
    let verified = try await stage.shop.nightAudit("verify")
    #expect(verified.status == 0, "\(verified)")
  }

  @Test func aKilledReleaseOfANightIsRestarted() async throws {
    let stage = try await Stage()
    try await stage.shop.execute(
      """
      SET session_replication_role = replica; UPDATE night_audit.runs SET complete = true; TRUNCATE sales.deliveries
      """)
    let next = "2026-11-21T03:00:00Z"
    #expect(try await stage.night("night", asOf: next).status == 4)
    _ = try stage.callsMade()
    let held = try await stage.shop.value("SELECT run_id::text FROM night_audit.runs WHERE publication = 'held'")
    let (night, kept) = (stage.shop.directory.file("night"), stage.shop.directory.file("kept"))
    try FileManager.default.moveItem(atPath: night, toPath: kept)
    func accept(killedAt call: Int?) async throws -> [String] {
      let database = ["NIGHT_AUDIT_DATABASE_URL": try await PrivatePostgres.shared().copyDatabase(stage.shop.conninfo)]
      try FileManager.default.copyItem(atPath: kept, toPath: night)
      defer { try? FileManager.default.removeItem(atPath: night) }
      if let call {
        let killed = try await stage.night("night", asOf: next, more: ["--accept"], at: call, environment: database)
        #expect(killed.status == 128 + SIGKILL, "call \(call): \(killed)")
        _ = try stage.callsMade()
      }
      let accepted = try await stage.night("night", asOf: next, more: ["--accept"], environment: database)
      let calls = try stage.callsMade()
      let what = "after call \(call ?? 0): \(accepted)"
      #expect([0, 3].contains(accepted.status), "\(what)")
      #expect(try stage.entries("night/reports") == ["2026-11-20", "held", "latest"], "\(what)")
      #expect(try stage.entries("night/reports/held") == [], "\(what)")
      for arguments in [["verify", "--run", held], ["verify", night + "/reports/2026-11-20"]] {
        let verified = try await stage.nightAudit(arguments, in: "night", environment: database)
        #expect(verified.status == 0, "\(what) \(verified)")
      }
      _ = try stage.callsMade()
      return calls
    }
    let calls = try await accept(killedAt: nil)
    for call in drawn(calls.indices.map { $0 + 1 }, TortureSettings.effort, call: \.self) {
      _ = try await accept(killedAt: call)
    }
  }

  /// The volume becomes read-only or full and stays so until the end.
  @Test(arguments: [EROFS, ENOSPC])
  func aFullVolumeIsReported(error: Int32) async throws {
    let stage = try await Stage.shared.value
    for call in [1] + drawn(stage.calls.indices.map { $0 + 1 }, TortureSettings.effort, call: \.self) {
      let night = try await endures(.failsFromThenOn(error), at: call, endingWith: [3, 73], stage)
      if night.status == 73 { #expect(night.errors.contains(String(cString: strerror(error))), "\(night)") }
    }
  }

  /// Expects the whole report or none, and only the whole report after one more run.
  @discardableResult private func endures(
    _ trouble: Trouble, at call: Int, endingWith statuses: [Int32], _ stage: Stage,
    in name: String = UUID().uuidString, environment: [String: String] = [:], leaving others: [String] = []
  ) async throws -> Program.Result {
    let night = try await stage.night(name, at: call, trouble, environment: environment)
    let met = try stage.callsMade()
    let what = "call \(call) (\(met.indices.contains(call - 1) ? met[call - 1] : "")), \(trouble): \(night)"
    #expect(statuses.contains(night.status), "\(what)")
    if night.status != 3, night.status < 128 { #expect(night.errors.contains("night-audit: "), "\(what)") }
    if let found = try stage.report(name) {
      #expect(found == stage.wanted, "\(what)")
    } else {
      #expect(night.status != 3, "\(what)")
    }

    let next = try await stage.night(name, environment: environment)
    _ = try stage.callsMade()
    #expect(next.status == 3, "after \(what): \(next)")
    #expect(try stage.report(name) == stage.wanted, "after \(what)")
    #expect(try stage.entries("\(name)/reports") == ["2026-11-19"] + others + ["latest"], "after \(what)")
    for other in others { #expect(try stage.entries("\(name)/reports/\(other)") == [], "after \(what)") }
    #expect(try stage.entries("\(name)/temporary") == [], "after \(what)")
    #expect(try stage.entries(name) == ["metrics.prom", "reports", "temporary"], "after \(what)")
    try FileManager.default.removeItem(atPath: stage.shop.directory.file(name))
    return night
  }
}
