import AuditStore
import Foundation
import Postgres
import Reconciliation
import Run
import SalesStore

/// A row of `night_audit.runs`.
package struct PastRun: Sendable {
  package var runId: String
  package var command: String
  package var asOf: Instant
  package var startedAt: Instant
  /// nil if the run is still working or was killed.
  package var finishedAt: Instant?
  package var since: String
  package var until: String
  package var timeZone: String
  package var configuration: String
  package var isNightly: Bool
  package var host: String
  package var version: String
  /// nil if the run left no report.
  package var isComplete: Bool?
  package var isForgotten: Bool
  package var isHeld: Bool
  /// True if a run that was then forgotten had replaced the report, so that none is left.
  package var isGone: Bool
  package var incompleteReasons: [String]
  package var ordersRead: Int64?
  package var opening: Int64?
  package var new: Int64?
  package var closed: Int64?
  package var closing: Int64?
  /// Open findings whose amount at risk is unknown; nil if the run recorded no such count.
  package var atStakeUnknown: Int64?
  package var directory: String?
  package var exitStatus: Int32?
  /// Valid sign-offs of the report, oldest first.
  package var signOffs: [String]

  package static let columns = """
    run_id::text, command, as_of, started_at, finished_at, period_since::text, period_until::text, time_zone,
    configuration, is_nightly, host, version, complete, incomplete_reasons, orders_read, findings_opening, findings_new,
    findings_closed, findings_closing, directory, exit_status,
    \(StoredSignOff.texts(ofRun: "runs.run_id")),
    publication IS NOT DISTINCT FROM 'forgotten',
    (SELECT sum(u.at_stake_unknown)::bigint FROM night_audit.run_findings u WHERE u.run_id = runs.run_id),
    \(PublishedReport.isGone("runs", from: "directory")), publication IS NOT DISTINCT FROM 'held'
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
    signOffs = try row.textArray(21).compactMap { $0 }
    isForgotten = try row.bool(22)
    atStakeUnknown = try row.optionalInt64(23)
    isGone = try row.bool(24)
    isHeld = try row.bool(25)
  }

  package var period: String { since == until ? until : "\(since) to \(until)" }
}

/// A run that cannot be shown, compared or forgotten.
package enum RunsError: RunEndingError, Equatable, CustomStringConvertible {
  case unknown(String)
  case ambiguous(String)
  case unfinished(String, exitStatus: Int32?)
  case forgotten(String)
  /// Later runs reported their changes against this one.
  case followed(String, by: String)

  package var exitStatus: ExitStatus {
    switch self {
    case .unknown, .unfinished, .forgotten: .nothingThere
    case .ambiguous, .followed: .usage
    }
  }

  package var description: String {
    switch self {
    case .unknown(let name):
      "there is no run \(name); night-audit runs lists all runs. Name a run by its ID or the first digits of it, a night "
        + "by its day, or the newest night as latest"
    case .ambiguous(let name): "several runs have IDs that begin with \(name); give more digits"
    case .unfinished(let name, let status):
      "run \(name) left no report (\(status.map { "it ended with \($0)" } ?? "it is still running, or was killed")); name "
        + "another one"
    case .followed(let name, let newest):
      "later runs are compared with run \(name), so it cannot be forgotten before them. Forget the newest run first: "
        + "night-audit runs forget \(newest)"
    case .forgotten(let name): "run \(name) was forgotten before: it left nothing that could be taken back"
    }
  }
}
