import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Settings

@testable import AuditStore
@testable import Auditing
@testable import Publishing
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

extension CrowdedShop {
  static let files = ["orders", "findings", "users", "amounts", "refunds", "sandbox", "receipts"].map { $0 + ".csv" }

  /// The columns that depend on when a question was asked or a finding was first seen.
  private static let history: Set<String> = [
    "checked_at", "first_seen", "age_days", "status", "attempts", "last_attempt", "next_attempt",
  ]

  @discardableResult
  static func audit(_ settings: Settings, _ asOf: Instant, _ folder: String) async throws -> [String: [[String]]] {
    _ = try await outcome(settings, asOf, folder)
    return try tables(folder)
  }

  static func tables(_ folder: String) throws -> [String: [[String]]] {
    try files.reduce(into: [:]) { $0[$1] = try withoutHistory(try bytes(folder, $1)) }
  }

  /// A plan of the whole shop.
  static func plan(_ settings: Settings) throws -> AuditPlan {
    AuditPlan(
      rules: settings.rules(asOf: asOf),
      period: try Period(since: "2026-01-01", until: "2026-12-31", in: settings.timeZone), selection: Selection(),
      staleAfter: settings.staleAfter, refundWindow: settings.refundWindow)
  }

  static func outcome(
    _ settings: Settings, _ asOf: Instant, _ folder: String, hasOneSnapshot: Bool = true, pieces: String? = nil
  ) async throws -> AuditOutcome {
    var plan = try plan(settings)
    plan.rules = settings.rules(asOf: asOf)
    (plan.parts, plan.hasOneSnapshot) = (pieces, hasOneSnapshot)
    let record = RunRecord(
      runId: UUID().uuidString.lowercased(), command: "run", asOf: asOf, period: plan.period,
      timeZone: settings.timeZoneName, configuration: settings.digest, isNightly: false, host: "here")
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await record.begin(session)
    await session.close()
    let audit = Audit(
      settings: settings, plan: plan, faults: [:], stop: StopSignal(),
      progress: .quiet)
    return try await withBlockingThread { scope in
      try audit.report(scope, destination: .exact(folder), saving: record) { _, _ in }
    }
  }

  static func bytes(_ folder: String, _ name: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
  }

  private static func withoutHistory(_ content: Data) throws -> [[String]] {
    let rows = [UInt8](content).split(separator: UInt8(ascii: "\n")).map { line -> [String] in
      var (cells, start, isQuoted) = ([String](), line.startIndex, false)
      for place in line.indices {
        if line[place] == UInt8(ascii: "\"") { isQuoted.toggle() }
        guard line[place] == UInt8(ascii: ","), !isQuoted else { continue }
        cells.append(String(decoding: line[start..<place], as: UTF8.self))
        start = place + 1
      }
      return cells + [String(decoding: line[start...].filter { $0 != 0x0D }, as: UTF8.self)]
    }
    let kept = rows.first.map { header in header.indices.filter { !history.contains(header[$0]) } } ?? []
    return rows.map { row in kept.map { row[$0] } }
  }
}

extension WorkProgress {
  static let quiet = WorkProgress(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, isQuiet: true)
}

extension Selection {
  static func narrowed(_ change: (inout Selection) -> Void) -> Selection {
    var selection = Selection()
    change(&selection)
    return selection
  }
}

/// Runs a script in a database.
func execute(_ url: String, _ script: String) async throws {
  let session = try await PostgresSession.connect(url, applicationName: "night-audit tests")
  try await session.executeScript(script)
  await session.close()
}
