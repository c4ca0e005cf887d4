import AuditStore
import Foundation
import Postgres
import Reconciliation
import Run
import SalesStore

/// One run as `night_audit.runs` has it.
package struct PastRun: Sendable {
  package var runId: String
  package var command: String
  package var asOf: Instant
  package var startedAt: Instant
  /// nil: it is at work, or it was killed.
  package var finishedAt: Instant?
  package var since: String
  package var until: String
  package var timeZone: String
  package var configuration: String
  package var isNightly: Bool
  package var host: String
  package var version: String
  /// nil: it left no report.
  package var isComplete: Bool?
  package var incompleteReasons: [String]
  package var ordersRead: Int64?
  package var opening: Int64?
  package var new: Int64?
  package var closed: Int64?
  package var closing: Int64?
  package var directory: String?
  package var exitStatus: Int32?
  /// Who prepared and who reviewed its report, as the first sheet came back: `prepared by Dana, reviewed by Zoë`.
  package var signed: String?

  package static let columns = """
    run_id::text, command, as_of, started_at, finished_at, period_since::text, period_until::text, time_zone,
    configuration, is_nightly, host, version, complete, incomplete_reasons, orders_read, findings_opening, findings_new,
    findings_closed, findings_closing, directory, exit_status,
    (SELECT string_agg(replace(s.event, '_', ' ') || ' ' || s.detail, ', ' ORDER BY s.event) FROM (
      SELECT DISTINCT ON (e.event) e.event, e.detail FROM night_audit.run_events e
      WHERE e.run_id = runs.run_id AND e.event IN ('prepared_by', 'reviewed_by')
      ORDER BY e.event, e.event_id DESC) s)
    """

  init(_ row: PostgresRow) throws(PostgresError) {
    runId = try row.text(0)
    command = try row.text(1)
    asOf = Instant(microseconds: try row.timestamp(2))
    startedAt = Instant(microseconds: try row.timestamp(3))
    finishedAt = try row.optionalTimestamp(4).map { Instant(microseconds: $0) }
    since = try row.text(5)
    until = try row.text(6)
    timeZone = try row.text(7)
    configuration = try row.text(8)
    isNightly = try row.bool(9)
    host = try row.text(10)
    version = try row.text(11)
    isComplete = try row.optionalBool(12)
    incompleteReasons = try row.textArray(13).compactMap { $0 }
    ordersRead = try row.optionalInt64(14)
    opening = try row.optionalInt64(15)
    new = try row.optionalInt64(16)
    closed = try row.optionalInt64(17)
    closing = try row.optionalInt64(18)
    directory = try row.optionalText(19)
    exitStatus = try row.optionalInt32(20)
    signed = try row.optionalText(21)
  }

  /// `2026-11-19`, or `2026-11-01 to 2026-11-30`.
  package var period: String { since == until ? until : "\(since) to \(until)" }
}

/// Why there is nothing to say about a run.
package enum RunsError: EndsRun, Equatable, CustomStringConvertible {
  case unknown(String)
  case ambiguous(String)
  /// The run left no report.
  case unfinished(String, exitStatus: Int32?)

  package var exitStatus: ExitStatus {
    switch self {
    case .unknown, .unfinished: .nothingThere
    case .ambiguous: .usage
    }
  }

  package var description: String {
    switch self {
    case .unknown(let name):
      "there is no run \(name); night-audit runs lists them. Name a run by its id or the first digits of it, a night by "
        + "its day, or say latest"
    case .ambiguous(let name): "several runs have ids that begin with \(name); give more digits"
    case .unfinished(let name, let status):
      "run \(name) left no report (\(status.map { "it ended with \($0)" } ?? "it is at work, or was killed")); name "
        + "another one"
    }
  }
}

/// The runs of the past.
package struct RunHistory: Sendable {
  private let settings: Settings

  package init(settings: Settings) { self.settings = settings }

  /// The newest runs, newest first. Throws `PostgresError`, `SchemaError`.
  package func list(limit: Int) async throws -> [PastRun] {
    try await withSnapshot { connection in
      try connection.execute(
        "SELECT \(PastRun.columns) FROM night_audit.runs ORDER BY started_at DESC, run_id LIMIT $1",
        [.int(Int64(limit))]
      ).map { row throws(PostgresError) in try PastRun(row) }
    }
  }

  /// What changed from one run to another, the one of the earlier instant first. Throws `RunsError`, `PostgresError`,
  /// `SchemaError`.
  package func difference(_ first: String, _ second: String) async throws -> RunDifference {
    let sales = try SalesRows(schema: settings.salesSchema)
    return try await withSnapshot { connection in
      let runs = [try RunHistory.find(first, connection), try RunHistory.find(second, connection)]
        .sorted { ($0.asOf, $0.startedAt) < ($1.asOf, $1.startedAt) }
      return try RunDifference(from: runs[0], to: runs[1], sales: sales, on: connection)
    }
  }

  /// Any run, whether it has left a report or not. Throws `RunsError`, `PostgresError`, `SchemaError`.
  package func find(_ name: String) async throws -> PastRun {
    try await withSnapshot { connection in
      try RunHistory.find(name, needsReport: false, connection)
    }
  }

  /// A run by the words of the command line: `latest`, the day of a night, or the beginning of an id.
  private static func find(
    _ name: String, needsReport: Bool = true, _ connection: borrowing BlockingConnection
  ) throws -> PastRun {
    let night = "is_nightly AND complete IS NOT NULL"
    let newest = "ORDER BY as_of DESC, started_at DESC LIMIT 1"
    let condition: String
    if name == "latest" {
      condition = "\(night) AND $1 <> '' ORDER BY period_until DESC, as_of DESC, started_at DESC LIMIT 1"
    } else if name.utf8.count == 10, name.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/) != nil {
      condition = "\(night) AND period_until::text = $1 \(newest)"
    } else if name.wholeMatch(of: /[0-9A-Fa-f-]{4,36}/) != nil {
      condition = "starts_with(run_id::text, lower($1)) LIMIT 2"
    } else {
      throw RunsError.unknown(name)
    }
    let rows = try connection.execute(
      "SELECT \(PastRun.columns) FROM night_audit.runs WHERE \(condition)", [.text(name)])
    let found = try rows.map { row throws(PostgresError) in try PastRun(row) }
    if found.count > 1 { throw RunsError.ambiguous(name) }
    guard let run = found.first else { throw RunsError.unknown(name) }
    if needsReport, run.isComplete == nil { throw RunsError.unfinished(name, exitStatus: run.exitStatus) }
    return run
  }

  private func withSnapshot<Result: Sendable>(
    _ body: @Sendable (borrowing BlockingConnection) throws -> Result
  ) async throws -> Result {
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit runs")
    do {
      let result = try await session.withConnection { connection in
        try Migrator.requireCurrent(connection)
        return try connection.transaction(.snapshot, body)
      }
      await session.close()
      return result
    } catch {
      await session.close()
      throw error
    }
  }
}
