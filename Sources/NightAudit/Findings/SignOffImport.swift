import AuditStore
import Foundation
import Postgres
import Reporting
import Spreadsheet

/// What people sign on the first sheet, as events of the run whose report it is.
package enum SignOffImport {
  /// One line that was filled in.
  package struct Line: Hashable, Sendable {
    /// As the sheet calls it: `Prepared by`.
    package var label: String
    package var text: String
  }

  /// The word of each line in `night_audit.run_events`.
  private static let words = [
    SignOff.preparedBy: "prepared_by", SignOff.reviewedBy: "reviewed_by", SignOff.date: "signed_on",
    SignOff.remark: "remark",
  ]

  /// Takes the lines that say something new, and refuses those that cannot be read or are signed below nobody's report.
  static func take(
    from reader: borrowing WorkbookReader, of origin: WorkbookOrigin, by actor: String, isDryRun: Bool,
    into outcome: inout WorkbookImport.Outcome, on connection: borrowing BlockingConnection
  ) throws {
    let signed = Result { () throws(PeopleText.Refusal) in try origin.signed() }
    var lines: [Line] = []
    var refusals: [WorkbookImport.Refusal] = []
    var isBelowHeading = false
    _ = try reader.rows(of: SignOff.sheet, columns: [0: "label", 1: "entry"]) { row in
      guard case .text(let label) = row.cells["label"] else { return }
      if label == SignOff.heading { isBelowHeading = true }
      guard isBelowHeading, words[label] != nil, let cell = row.cells["entry"] else { return }
      do throws(PeopleText.Refusal) {
        guard let text = try text(cell, label) else { return }
        _ = try signed.get()
        lines.append(Line(label: label, text: text))
      } catch {
        refusals.append(
          WorkbookImport.Refusal(sheet: SignOff.sheet, row: row.number, reason: "\(label): \(error.description)"))
      }
    }
    outcome.refusals += refusals
    guard case .success(let run) = signed else { return }
    for line in lines {
      guard let word = words[line.label] else { continue }
      let newest = try connection.execute(
        """
        SELECT detail FROM night_audit.run_events WHERE run_id = $1::uuid AND event = $2 ORDER BY event_id DESC LIMIT 1
        """, [.text(run), .text(word)]
      ).map { row throws(PostgresError) in try row.optionalText(0) }
      if newest.first == .some(line.text) { continue }
      outcome.signOff.append(line)
      if isDryRun { continue }
      try connection.execute(
        "INSERT INTO night_audit.run_events (run_id, event, actor, detail) VALUES ($1::uuid, $2, $3, $4)",
        [.text(run), .text(word), .text(actor), .text(line.text)])
    }
  }

  private static func text(_ cell: ReadCell, _ label: String) throws(PeopleText.Refusal) -> String? {
    if case .number(let serial) = cell {
      return label == SignOff.date ? CalendarDay.text(serial: serial) ?? serial : serial
    }
    return try PeopleText.remark(cell.entry("entry"))
  }
}
