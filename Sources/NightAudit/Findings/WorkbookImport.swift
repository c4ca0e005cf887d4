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
  private let acceptsIncomplete: Bool

  /// - Parameters:
  ///   - now: what the changes are dated with.
  ///   - actor: who is recorded for them.
  ///   - acceptsIncomplete: whether the sign-off of an incomplete report is taken.
  package init(
    path: String, settings: Settings, by actor: String, now: Instant, acceptsIncomplete: Bool = false
  ) {
    self.acceptsIncomplete = acceptsIncomplete
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
      let origin = try WorkbookOrigin(of: reader, on: connection)
      var merge = RowMerge(written: origin.runs.map(\.written))
      merge.outcome.writtenFor = origin.runs.last?.written.asOf
      let people = [FindingsSheet.status, FindingsSheet.owner, FindingsSheet.remark, FindingsSheet.due]
      let wanted = people + [FindingsSheet.key, FindingsSheet.order]
      var found: Set<String> = []
      for sheet in [FindingsSheet.name] + reader.sheetNames.filter(FindingsSheet.isContinuation) {
        let columns = try reader.columns(of: sheet, among: wanted, key: FindingsSheet.key)
        found.formUnion(columns)
        try reader.rows(of: sheet, columns: wanted, key: FindingsSheet.key) { row in
          try merge.add(row, of: columns, sheet: sheet, connection)
        }
      }
      try merge.settle(connection)
      merge.outcome.missingColumns = people.filter { !found.contains($0) }
      let changeId = UUID().uuidString.lowercased()
      if !isDryRun, !merge.changes.isEmpty {
        _ = try PeopleChange.apply(merge.changes, by: actor, at: now, changeId: changeId, on: connection)
      }
      try SignOffImport.take(
        from: reader, of: origin, by: actor, changeId: changeId, acceptsIncomplete: acceptsIncomplete,
        isDryRun: isDryRun, into: &merge.outcome, on: connection)
      if !isDryRun, !merge.changes.isEmpty || !merge.outcome.signOff.isEmpty { merge.outcome.changeId = changeId }
      return merge.outcome
    }
  }
}
