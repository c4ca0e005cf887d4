import Foundation
import TestSupport
import Testing

/// Any call of a night that opens, writes, syncs, renames or removes a file may fail once: the night ends with what that means
/// and what to do, whoever looks finds the whole report or none, and the next run leaves nothing of it.
///
/// Some are drawn; `TEST_EFFORT` draws more, and from enough of it on each call fails in each way. `TEST_SEED` draws the same;
/// `TEST_CALLS=169-180` tries these alone.
@Suite(.serialized) struct SystemCallTests {
  private static let effort = ProcessInfo.processInfo.environment["TEST_EFFORT"].flatMap { Int($0) } ?? 1
  private static let seed =
    ProcessInfo.processInfo.environment["TEST_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1_000_000)

  /// What a night is run with.
  private struct Stage {
    let shop: Rehearsal
    let library: TestLibrary

    init() async throws {
      shop = try await Rehearsal.sampleShop()
      library = try await TestLibrary("faults", in: shop.directory)
    }

    /// - Parameters:
    ///   - name: of the folder for its reports.
    ///   - call: which one fails; 0: none.
    ///   - lasting: whether all that come after it and need room or the right to write fail as well.
    func night(
      _ name: String, failing call: Int, with error: Int32 = 0, lasting: Bool = false
    ) async throws -> Program.Result {
      let place = shop.directory.file(name)
      try FileManager.default.createDirectory(atPath: place + "/temporary", withIntermediateDirectories: true)
      return try await shop.nightAudit(
        "run", more: ["--as-of", Rehearsal.asOf],
        environment: [
          "LD_PRELOAD": library.path, "FAULT_BELOW": shop.directory.url.path, "FAULT_PROGRAM": "night-audit",
          "FAULT_LOG": shop.directory.file("calls"), "FAULT_AT": String(call), "FAULT_ERROR": String(error),
          "TMPDIR": place + "/temporary", "NIGHT_AUDIT_REPORT_DIRECTORY": place + "/reports",
        ].merging(lasting ? ["FAULT_LASTS": "1"] : [:]) { $1 })
    }

    /// The calls of the last night, in their order; the log begins anew.
    func calls() throws -> [String] {
      let log = shop.directory.file("calls")
      defer { try? FileManager.default.removeItem(atPath: log) }
      return try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// The night's folder without what differs from run to run; nil when there is none.
    func report(_ name: String) throws -> [String: Data]? {
      let folder = shop.directory.file("\(name)/reports/2026-11-19")
      guard FileManager.default.fileExists(atPath: folder) else { return nil }
      var files = try shop.files(folder)
      files["run.json"] = nil
      return files
    }

    func entries(_ path: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: shop.directory.file(path)).sorted()
    }
  }

  @Test func oneCallThatFailsSpoilsNoReportAndLeavesNothing() async throws {
    let stage = try await Stage()
    #expect(try await stage.night("first", failing: 0).status == 3)
    _ = try stage.calls()
    #expect(try await stage.night("wanted", failing: 0).status == 3)
    let calls = try stage.calls()
    let wanted = try #require(try stage.report("wanted"))
    #expect(calls.count > 40, "\(calls)")
    let errors = [ENOSPC, EIO, EACCES]
    let all = calls.indices.flatMap { call in errors.map { (call: call + 1, error: $0) } }
    var generator = SeededGenerator(seed: Self.seed)
    let chosen = ProcessInfo.processInfo.environment["TEST_CALLS"]?.split(separator: "-").compactMap { Int($0) }
    let drawn =
      if let chosen {
        all.filter { (chosen[0]...chosen[chosen.count - 1]).contains($0.call) }
      } else if 2 * Self.effort >= all.count {
        all
      } else {
        (0..<2 * Self.effort).map { _ in all.randomElement(using: &generator)! }
      }
    print("SystemCallTests: \(drawn.count) of \(all.count) faults, TEST_SEED=\(Self.seed)")
    for (number, fault) in drawn.enumerated() {
      let name = "night-\(number)"
      let night = try await stage.night(name, failing: fault.call, with: fault.error)
      let met = try stage.calls()
      let what =
        "call \(fault.call) (\(met.indices.contains(fault.call - 1) ? met[fault.call - 1] : "")), "
        + "\(String(cString: strerror(fault.error))): \(night)"
      #expect([3, 73, 78].contains(night.status), "\(what)")
      try await expectNothingIsLeft(of: night, name, what, stage, wanted)
    }
    let verified = try await stage.shop.nightAudit("verify")
    #expect(verified.status == 0, "\(verified)")
  }

  /// A volume that becomes read-only, or is full, in the middle of a night, and stays so until its end.
  @Test(arguments: [EROFS, ENOSPC])
  func aVolumeThatTakesNothingMoreIsSaid(error: Int32) async throws {
    let stage = try await Stage()
    #expect(try await stage.night("first", failing: 0).status == 3)
    _ = try stage.calls()
    #expect(try await stage.night("wanted", failing: 0).status == 3)
    let calls = try stage.calls()
    let wanted = try #require(try stage.report("wanted"))
    var generator = SeededGenerator(seed: Self.seed)
    let drawn = [1] + (0..<Self.effort).map { _ in calls.indices.randomElement(using: &generator)! + 1 }
    print("SystemCallTests: \(drawn.count) of \(calls.count) instants, TEST_SEED=\(Self.seed)")
    for (number, call) in drawn.enumerated() {
      let name = "night-\(number)"
      let night = try await stage.night(name, failing: call, with: error, lasting: true)
      let met = try stage.calls()
      let what =
        "from call \(call) (\(met.indices.contains(call - 1) ? met[call - 1] : "")) on, "
        + "\(String(cString: strerror(error))): \(night)"
      #expect([3, 73].contains(night.status), "\(what)")
      if night.status == 73 { #expect(night.errors.contains(String(cString: strerror(error))), "\(what)") }
      try await expectNothingIsLeft(of: night, name, what, stage, wanted)
    }
  }

  /// Whoever looks after such a night finds the whole report or none, and after one more run nothing else.
  private func expectNothingIsLeft(
    of night: Program.Result, _ name: String, _ what: String, _ stage: Stage, _ wanted: [String: Data]
  ) async throws {
    if night.status != 3 { #expect(night.errors.contains("night-audit: "), "\(what)") }
    if let found = try stage.report(name) {
      #expect(found == wanted, "\(what)")
    } else {
      #expect(night.status != 3, "\(what)")
    }

    let next = try await stage.night(name, failing: 0)
    _ = try stage.calls()
    #expect(next.status == 3, "after \(what): \(next)")
    #expect(try stage.report(name) == wanted, "after \(what)")
    #expect(try stage.entries("\(name)/reports") == ["2026-11-19", "latest"], "after \(what)")
    #expect(try stage.entries("\(name)/temporary") == [], "after \(what)")
    try FileManager.default.removeItem(atPath: stage.shop.directory.file(name))
  }
}

/// Any sequence will do that can be drawn again (Knuth, MMIX).
private struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return (state >> 32) | (state << 32)
  }
}
