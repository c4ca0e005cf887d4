import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Spreadsheet

/// Brings back what finance filled in on the sheet of findings: status, owner and remark, by finding id, and nothing else.
///
/// What the database knows about the time when the workbook was written tells a cell that somebody changed from one that
/// only shows what was true then: see ``PeopleMerge``.
package struct WorkbookImport: Sendable {
  /// A row that was not understood, or not all of it.
  package struct Refusal: Hashable, Sendable {
    package var sheet: String
    package var row: Int
    package var reason: String
  }

  /// What an import came to.
  package struct Outcome: Sendable {
    /// One cell that was taken.
    package struct Change: Hashable, Sendable {
      package var sheet: String
      package var row: Int
      package var findingId: String
      /// `status`, `owner` or `remark`.
      package var column: String
      package var before: String?
      package var after: String?
    }

    /// What `findings undo` takes back; nil where nothing was changed.
    package var changeId: String?
    /// Rows that name a finding.
    package var rows = 0
    package var changes: [Change] = []
    package var refusals: [Refusal] = []
    /// The report's as-of, when the workbook is one that a run of this database wrote.
    package var writtenFor: Instant?
    /// What was signed on the first sheet, and is new.
    package var signOff: [SignOffImport.Line] = []
    /// People's columns that no sheet has.
    package var missingColumns: [String] = []
  }

  private let path: String
  private let editor: FindingsEditor
  private let actor: String
  private let now: Instant

  /// - Parameters:
  ///   - now: what the changes are dated with.
  ///   - actor: who is recorded for them.
  package init(path: String, settings: Settings, by actor: String, now: Instant) {
    self.path = path
    self.actor = actor
    self.now = now
    editor = FindingsEditor(settings: settings, now: now)
  }

  /// Reads the workbook and makes its changes, all in one transaction.
  ///
  /// - Parameter isDryRun: says what would change and changes nothing.
  /// - Throws: `WorkbookReadError`, `PostgresError`, `SchemaError`.
  package func run(isDryRun: Bool) async throws -> Outcome {
    try await editor.withDatabase(isDryRun ? .snapshot : .readWrite) { connection in
      let reader = try WorkbookReader(path: path)
      let written = try reader.created.map { try WorkbookImport.written($0, connection) } ?? nil
      var merge = RowMerge(written: [written].compactMap(\.self))
      merge.outcome.writtenFor = written?.asOf
      var columns: Set<String> = []
      for sheet in [FindingsSheet.name] + reader.sheetNames.filter(FindingsSheet.isContinuation) {
        columns.formUnion(
          try reader.rows(
            of: sheet,
            columns: [
              FindingsSheet.key, FindingsSheet.status, FindingsSheet.owner, FindingsSheet.remark, FindingsSheet.due,
            ],
            key: FindingsSheet.key
          ) { row in try merge.add(row, sheet: sheet, connection) })
      }
      try merge.settle(connection)
      merge.outcome.missingColumns = [
        FindingsSheet.status, FindingsSheet.owner, FindingsSheet.remark, FindingsSheet.due,
      ]
      .filter { !columns.contains($0) }
      if !isDryRun, !merge.changes.isEmpty {
        let changeId = UUID().uuidString.lowercased()
        _ = try PeopleChange.apply(merge.changes, by: actor, at: now, changeId: changeId, on: connection)
        merge.outcome.changeId = changeId
      }
      try SignOffImport.take(
        from: reader, run: written?.runId, by: actor, isDryRun: isDryRun, into: &merge.outcome, on: connection)
      return merge.outcome
    }
  }

  /// The run whose report the workbook is, by the instant that workbooks carry as their time of creation.
  ///
  /// Made again for the same as-of, the older one counts: what changed between the two is settled by people then.
  private static func written(
    _ created: Int64, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> RowMerge.Written? {
    let rows = try connection.execute(
      """
      SELECT as_of, started_at, run_id::text, newest_event FROM night_audit.runs
      WHERE complete IS NOT NULL AND as_of >= $1 AND as_of < $1 + interval '1 second' ORDER BY started_at LIMIT 1
      """, [.timestamp(Instant(seconds: created).microseconds)])
    for row in rows {
      return RowMerge.Written(
        runId: try row.text(2), asOf: Instant(microseconds: try row.timestamp(0)),
        newestEvent: try row.optionalInt64(3), began: try row.timestamp(1))
    }
    return nil
  }
}
