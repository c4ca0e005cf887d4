import AuditStore
import Reconciliation
import Reporting
import Run

package struct ImportText {
  private let outcome: WorkbookImport.Outcome
  private let isDryRun: Bool

  package init(_ outcome: WorkbookImport.Outcome, isDryRun: Bool) {
    self.outcome = outcome
    self.isDryRun = isDryRun
  }

  package var lines: String {
    var lines: [String] = []
    if let asOf = outcome.writtenFor {
      lines.append("This is the workbook of the report as of \(asOf.text).")
    } else {
      lines.append(
        "No run of this database wrote this workbook. A cell is imported if its finding has not had this value since "
          + "the workbook's as-of. Empty cells clear nothing.")
    }
    for column in outcome.missingColumns { lines.append("The workbook has no column \(column); it stays as it is.") }
    for change in outcome.changes {
      lines.append(
        "\(change.sheet), row \(change.row): \(change.findingId.prefix(12)) \(change.column): "
          + "\(ImportText.quoted(change.before)) -> \(ImportText.quoted(change.after))")
    }
    for note in outcome.notes { lines.append("NOTE  \(note.sheet), row \(note.row): \(note.note)") }
    for line in outcome.signOff { lines.append("Signed: \(line.label): \(ImportText.quoted(line.text))") }
    for refusal in outcome.refusals { lines.append("REFUSED  \(refusal.sheet), row \(refusal.row): \(refusal.reason)") }
    let findings = Set(outcome.changes.map(\.findingId)).count
    lines.append(
      "\(outcome.rows) findings read: \(outcome.changes.count) entries of "
        + "\(findings == 1 ? "1 finding" : "\(findings) findings") "
        + "\(isDryRun ? "would change" : "changed"), \(outcome.refusals.count) refused.")
    if isDryRun { lines.append("Nothing was changed.") }
    if let change = outcome.changeId { lines.append("To take it back: night-audit findings undo \(change.prefix(8))") }
    return lines.joined(separator: "\n")
  }

  private static func quoted(_ text: String?) -> String {
    guard let text else { return "nothing" }
    let line = text.map { $0.isNewline || $0 == "\t" ? " " : $0 }
    return "\"" + String(line.prefix(60)) + (line.count > 60 ? "…" : "") + "\""
  }

  package struct Document: Encodable {
    let asOf: String?
    let rows: Int
    let dryRun: Bool
    let changeId: String?
    let missingColumns: [String]
    let changes: [WorkbookImport.Outcome.Change]
    let refusals: [WorkbookImport.Refusal]
    let notes: [WorkbookImport.Note]
    let signOff: [String: String]
  }

  package var document: Document {
    Document(
      asOf: outcome.writtenFor?.text, rows: outcome.rows, dryRun: isDryRun, changeId: outcome.changeId,
      missingColumns: outcome.missingColumns, changes: outcome.changes, refusals: outcome.refusals,
      notes: outcome.notes, signOff: Dictionary(outcome.signOff.map { ($0.label, $0.text) }, uniquingKeysWith: { $1 }))
  }

  /// 1 when a row was refused: its finding does not exist or the row does not match it.
  package var exitStatus: ExitStatus { outcome.refusals.isEmpty ? .complete : .nothingThere }
}
