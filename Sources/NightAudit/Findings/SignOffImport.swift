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

  /// Takes the lines that say something new.
  ///
  /// - Parameter run: whose report it is; nil: nobody's, and then nothing is taken.
  static func take(
    from reader: borrowing WorkbookReader, run: String?, by actor: String, isDryRun: Bool,
    on connection: borrowing BlockingConnection
  ) throws -> [Line] {
    guard let run else { return [] }
    var lines: [Line] = []
    var isBelowHeading = false
    _ = try reader.rows(of: SignOff.sheet, columns: [0: "label", 1: "entry"]) { row in
      guard case .text(let label) = row.cells["label"] else { return }
      if label == SignOff.heading { isBelowHeading = true }
      guard isBelowHeading, words[label] != nil, let text = row.cells["entry"].flatMap({ text($0, label) }) else {
        return
      }
      lines.append(Line(label: label, text: text))
    }
    var taken: [Line] = []
    for line in lines {
      guard let word = words[line.label] else { continue }
      let newest = try connection.execute(
        """
        SELECT detail FROM night_audit.run_events WHERE run_id = $1::uuid AND event = $2 ORDER BY event_id DESC LIMIT 1
        """, [.text(run), .text(word)]
      ).map { row throws(PostgresError) in try row.optionalText(0) }
      if newest.first == .some(line.text) { continue }
      taken.append(line)
      if isDryRun { continue }
      try connection.execute(
        "INSERT INTO night_audit.run_events (run_id, event, actor, detail) VALUES ($1::uuid, $2, $3, $4)",
        [.text(run), .text(word), .text(actor), .text(line.text)])
    }
    return taken
  }

  private static func text(_ cell: ReadCell, _ label: String) -> String? {
    let text: String
    switch cell {
    case .text(let entry): text = entry
    case .number(let serial): text = label == SignOff.date ? CalendarDay.text(serial: serial) ?? serial : serial
    case .boolean, .error, .formula: return nil
    }
    return (try? PeopleText.remark(text)) ?? nil
  }
}
