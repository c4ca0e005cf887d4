import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Settings
import Spreadsheet

/// Imports finance's entries by finding ID; ``PeopleColumnMerge`` tells edited cells from unchanged ones.
package enum WorkbookImport {
  package struct Refusal: Encodable, Hashable, Sendable {
    package var sheet: String
    package var row: Int
    package var reason: String
  }

  /// A warning about an imported row.
  package struct Note: Encodable, Hashable, Sendable {
    package var sheet: String
    package var row: Int
    package var note: String
  }

  package struct Outcome: Sendable {
    package struct Change: Encodable, Hashable, Sendable {
      package var sheet: String
      package var row: Int
      package var findingId: String
      /// `status`, `owner`, `remark` or `due day`.
      package var column: String
      package var before: String?
      package var after: String?
    }

    /// The change that `findings undo` takes back; nil if nothing was changed.
    package var changeId: String?
    package var rows = 0
    package var changes: [Change] = []
    package var refusals: [Refusal] = []
    package var notes: [Note] = []
    /// As-of of the report; nil if no run of this database wrote the workbook.
    package var writtenFor: Instant?
    package var signOff: [SignOffImport.Line] = []
    /// Columns for people's entries that no sheet has.
    package var missingColumns: [String] = []
  }

  /// Applies all changes in one transaction. Throws `WorkbookReadError`, `PostgresError`, `SchemaError`.
  package static func run(
    _ path: String, _ settings: Settings, by actor: String, now: Instant, acceptsIncomplete: Bool, isDryRun: Bool
  ) async throws -> Outcome {
    let editor = FindingsEditor(settings: settings, now: now)
    return try await editor.withDatabase(isDryRun ? .snapshot : .readWrite) { connection in
      let reader = try WorkbookReader(path: path)
      let origin = try WorkbookOrigin(of: reader, on: connection)
      var merge = RowMerge(
        runs: origin.runs, asOf: origin.asOf, owners: settings.owners,
        today: Period.dayText(of: now, in: settings.timeZone))
      merge.outcome.writtenFor = origin.runs.last?.asOf
      let people = [FindingsSheet.status, FindingsSheet.owner, FindingsSheet.remark, FindingsSheet.due]
      let wanted =
        people + [
          FindingsSheet.key, FindingsSheet.order, FindingsSheet.kind, FindingsSheet.severity, FindingsSheet.amount,
          FindingsSheet.atStake,
        ]
      var found: Set<String> = []
      for sheet in [FindingsSheet.name] + reader.sheetNames.filter(FindingsSheet.isContinuation) {
        let columns = try reader.columns(of: sheet, among: wanted, key: FindingsSheet.key)
        found.formUnion(columns)
        try reader.rows(of: sheet, columns: wanted, key: FindingsSheet.key) { row in
          try merge.add(row, of: columns, sheet: sheet, connection)
        }
      }
      try merge.mergeBatch(connection)
      merge.outcome.missingColumns = people.filter { !found.contains($0) }
      let changeId = UUID().uuidString.lowercased()
      if !isDryRun, !merge.changes.isEmpty {
        _ = try FindingChange.apply(merge.changes, by: actor, at: now, changeId: changeId, on: connection)
      }
      try SignOffImport.take(
        from: reader, of: origin, by: actor, changeId: changeId, acceptsIncomplete: acceptsIncomplete,
        isDryRun: isDryRun, into: &merge.outcome, on: connection)
      if !isDryRun, !merge.changes.isEmpty || !merge.outcome.signOff.isEmpty { merge.outcome.changeId = changeId }
      return merge.outcome
    }
  }
}
