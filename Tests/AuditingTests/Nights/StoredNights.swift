import Foundation
import Postgres
import Reconciliation
import Reporting
import ShopDatabases
import TestSupport

@testable import AuditStore
@testable import Auditing
@testable import Run

/// A database of our store with the runs of four nights.
enum StoredNights {
  static let asOf = Instant(seconds: 1_795_132_800)
  static let runs = ["a", "b", "c", "d"].map { "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d1\($0)" }

  static var dimensions: ReportDimensions { ReportDimensions(apps: [:], timeZone: .gmt) }

  static func asOf(_ night: Int) -> Instant { asOf + .days(Int64(night)) }

  static func with(_ body: @escaping @Sendable (borrowing BlockingConnection) throws -> Void) async throws {
    let url = try await PrivatePostgres.storeDatabase()
    try await withBlockingThread { scope in
      let connection = try scope.connect(url, applicationName: "night-audit tests")
      for (night, run) in runs.enumerated() {
        try connection.execute(
          """
          INSERT INTO night_audit.runs (run_id, command, as_of, period_since, period_until, time_zone, configuration,
            is_nightly, host, version, process_id)
          VALUES ($1::uuid, 'run', $2, '2026-11-19', '2026-11-19', 'UTC', '', true, 'host', '1', 1)
          """, [.text(run), .timestamp(asOf(night).microseconds)])
      }
      try body(connection)
    }
  }

  static func record(_ night: Int) -> RunRecord {
    RunRecord(
      runId: runs[night], command: "run", asOf: asOf(night), period: Period.dayBefore(asOf(night), in: .gmt),
      timeZone: "UTC", configuration: "", isNightly: true, host: "host")
  }

  static func base(_ night: Int) -> BaseNight {
    BaseNight(runId: runs[night], asOf: asOf(night), isComplete: true)
  }

  static func plan(asOf: Instant) -> AuditPlan {
    AuditPlan(
      rules: Rules(asOf: asOf, bundleIds: ["com.example.game"], lookbackStart: asOf - .days(120)),
      period: Period.dayBefore(asOf, in: .gmt), selection: Selection(), staleAfter: .days(7), refundWindow: .days(90))
  }

  static func collector() -> AuditCollector {
    AuditCollector(
      report: nil, temporaryDirectory: NSTemporaryDirectory(), testUsers: [], days: [], storesClaims: false)
  }
}

extension BlockingConnection {
  /// The first column of the rows.
  func texts(_ sql: String, _ parameters: [PostgresValue] = []) throws -> [String] {
    try execute(sql, parameters).map { try $0.text(0) }
  }

  func forget(_ runId: String) throws { try transaction { _ = try ForgottenRun.forget(runId: runId, on: $0) } }

  /// Applies the findings of a night, as order and reason; returns the fetched pages. `isNews` updates the open
  /// findings.
  @discardableResult
  func apply(
    _ night: Int, _ found: [String: String], by runId: String? = nil, isNews: Bool = true, isSaved: Bool = false,
    isLate: Bool = false
  ) throws -> Int64 {
    try transaction { connection in
      let before = try connection.pages()
      try connection.executeScript(FindingsHistory.tonightTable)
      _ = try connection.copyIn(into: try PostgresIdentifier("tonight"), columns: FindingsHistory.tonightColumns) {
        writer in
        var dimensions = StoredNights.dimensions
        for (order, reason) in found {
          let finding = Finding(kind: .paidNotDelivered, subject: .order(Identifier(order)), reason: Reason(reason))
          try FindingsHistory.write(
            ReportedFinding(finding, findingId: order, firstSeen: StoredNights.asOf(night)), in: &dimensions,
            to: &writer)
        }
      }
      if isNews {
        try FindingsHistory.apply(
          asOf: StoredNights.asOf(night), runId: runId ?? StoredNights.runs[night], on: connection)
      }
      if isSaved { try FindingsHistory.saveNight(StoredNights.record(night), on: connection) }
      if isLate { try FindingsHistory.saveOwnFindings(StoredNights.record(night), on: connection) }
      return try connection.pages() - before
    }
  }

  /// The pages of the tables of findings that the session has fetched. The server resets some statistics between
  /// transactions.
  private func pages() throws -> Int64 {
    try execute(
      """
      SELECT sum(pg_stat_get_xact_blocks_fetched(c))::bigint FROM (
        SELECT 'night_audit.findings'::regclass AS c UNION ALL SELECT 'night_audit.finding_nights'::regclass) t
      """
    ).single().int64(0)
  }
}
