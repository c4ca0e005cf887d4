import AuditStore
import Auditing
import Postgres
import Reconciliation

/// A row of `night_audit.runs`.
@dynamicMemberLookup
package struct PastRun: Sendable {
  package struct Document: Encodable, Sendable {
    struct Period: Encodable, Sendable {
      let since: String
      let until: String
      let timeZone: String

      var text: String { since == until ? until : "\(since) to \(until)" }
    }

    struct Findings: Encodable, Sendable {
      let opening: Int64
      let new: Int64
      let closed: Int64
      let closing: Int64
      /// Open findings whose amount at risk is unknown; nil if the run recorded no such count.
      let atStakeUnknown: Int64?
    }

    let runId: String
    let command: String
    let asOf: Instant
    let startedAt: Instant
    /// nil if the run is still working or was killed.
    let finishedAt: Instant?
    let period: Period
    let nightly: Bool
    let configuration: String
    let host: String
    let version: String
    /// nil if the run left no report.
    let complete: Bool?
    let incompleteReasons: [String]
    let ordersRead: Int64?
    let findings: Findings?
    let directory: String?
    let exitStatus: Int32?
    let signed: String?
  }

  package let document: Document
  /// Valid sign-offs of the report, oldest first.
  let signOffs: [String]
  let isForgotten: Bool
  let isHeld: Bool
  /// True if a run that was then forgotten had replaced the report, so that none is left.
  let isGone: Bool
  /// SHA-256 of the report's `SHA256SUMS`.
  let content: String?

  package subscript<Value>(dynamicMember path: KeyPath<Document, Value>) -> Value { document[keyPath: path] }

  static let columns = """
    run_id::text, command, as_of, started_at, finished_at, period_since::text, period_until::text, time_zone,
    configuration, is_nightly, host, version, complete, incomplete_reasons, orders_read, findings_opening, findings_new,
    findings_closed, findings_closing, directory, exit_status,
    \(StoredSignOff.texts(ofRun: "runs.run_id")),
    publication IS NOT DISTINCT FROM 'forgotten',
    (SELECT sum(u.at_stake_unknown)::bigint FROM night_audit.run_findings u WHERE u.run_id = runs.run_id),
    \(PublishedReport.isGone("runs", from: "directory")), publication IS NOT DISTINCT FROM 'held', content
    """

  init(_ row: PostgresRow) throws(PostgresError) {
    var findings: Document.Findings?
    if let opening = try row.optionalInt64(15), let new = try row.optionalInt64(16),
      let closed = try row.optionalInt64(17), let closing = try row.optionalInt64(18)
    {
      findings = Document.Findings(
        opening: opening, new: new, closed: closed, closing: closing, atStakeUnknown: try row.optionalInt64(23))
    }
    signOffs = try row.textArray(21).compactMap { $0 }
    isForgotten = try row.bool(22)
    isGone = try row.bool(24)
    isHeld = try row.bool(25)
    content = try row.optionalText(26)
    let finishedAt = try row.optionalTimestamp(4)
    document = Document(
      runId: try row.text(0), command: try row.text(1), asOf: Instant(microseconds: try row.timestamp(2)),
      startedAt: Instant(microseconds: try row.timestamp(3)), finishedAt: finishedAt.map { Instant(microseconds: $0) },
      period: Document.Period(since: try row.text(5), until: try row.text(6), timeZone: try row.text(7)),
      nightly: try row.bool(9), configuration: try row.text(8), host: try row.text(10), version: try row.text(11),
      complete: try row.optionalBool(12), incompleteReasons: try row.textArray(13).compactMap { $0 },
      ordersRead: try row.optionalInt64(14), findings: findings, directory: try row.optionalText(19),
      exitStatus: try row.optionalInt32(20), signed: signOffs.isEmpty ? nil : signOffs.joined(separator: "; "))
  }

  var state: String {
    switch document.complete {
    case .some where isGone: "gone"
    case true?: "complete"
    case false?: "incomplete"
    case nil where isForgotten: "forgotten"
    case nil where isHeld: "held"
    case nil: document.finishedAt == nil ? "unfinished" : "none"
    }
  }
}
