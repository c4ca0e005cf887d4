import AuditStore
import Foundation
import Postgres
import Reconciliation
import Reporting
import Run
import Spreadsheet

/// Imports the sign-off on the first sheet of a returned workbook as events of its run.
package enum SignOffImport {
  package struct Line: Hashable, Sendable {
    /// The label on the sheet, such as `Prepared by`.
    package var label: String
    package var text: String
  }

  private static let lines: [String: StoredSignOff.Line] = [
    SignOff.preparedBy: .preparedBy, SignOff.reviewedBy: .reviewedBy, SignOff.date: .date, SignOff.remark: .remark,
  ]

  /// The result of the control totals that is stored in a workbook.
  enum Balance {
    case balanced, notBalanced
    /// A library that writes formulas without their results has saved the workbook.
    case notCalculated
  }

  private struct Sheet {
    var lines: [Line] = []
    var refusals: [WorkbookImport.Refusal] = []
    var row: Int?
    var balance = Balance.notCalculated

    mutating func refuse(_ row: Int, _ reason: String) {
      refusals.append(WorkbookImport.Refusal(sheet: SignOff.sheet, row: row, reason: reason))
    }
  }

  /// Records the sign-off beside earlier ones of the report, or refuses it as a whole.
  static func take(
    from reader: borrowing WorkbookReader, of origin: WorkbookOrigin, by actor: String, changeId: String,
    acceptsIncomplete: Bool, isDryRun: Bool, into outcome: inout WorkbookImport.Outcome,
    on connection: borrowing BlockingConnection
  ) throws {
    let signed = Result { () throws(PeopleText.Refusal) in try origin.signed() }
    var sheet = try read(reader, signed)
    guard case .success(let run) = signed, let row = sheet.row, sheet.refusals.isEmpty else {
      outcome.refusals += sheet.refusals
      return
    }
    let new = StoredSignOff(
      lines: Dictionary(sheet.lines.compactMap { line in lines[line.label].map { ($0, line.text) } }) { $1 })
    let current = try StoredSignOff.current(ofRun: run.runId, on: connection)
    if current.contains(new) { return }
    if let reason = refusal(
      of: new, beside: current, incompleteReasons: acceptsIncomplete ? [] : run.incompleteReasons,
      balance: sheet.balance)
    {
      sheet.refuse(row, reason)
      outcome.refusals += sheet.refusals
      return
    }
    outcome.signOff = sheet.lines
    if isDryRun { return }
    try new.record(ofRun: run.runId, by: actor, changeId: changeId, on: connection)
  }

  private static func read(
    _ reader: borrowing WorkbookReader, _ signed: Result<WorkbookOrigin.Run, PeopleText.Refusal>
  ) throws -> Sheet {
    var sheet = Sheet()
    var isBelowHeading = false
    _ = try reader.rows(of: SignOff.sheet, columns: [0: "label", 1: "entry", 4: "control"]) { row in
      // The banner is in the first column, the results of the controls are in the fifth.
      for result in ["label", "control"].compactMap({ row.cells[$0]?.result }) {
        if result.hasPrefix(SignOff.notBalanced) {
          sheet.balance = .notBalanced
        } else if result.hasPrefix(SignOff.balanced), sheet.balance == .notCalculated {
          sheet.balance = .balanced
        }
      }
      guard case .text(let label) = row.cells["label"] else { return }
      if label == SignOff.heading { isBelowHeading = true }
      guard isBelowHeading, lines[label] != nil, let cell = row.cells["entry"] else { return }
      do throws(PeopleText.Refusal) {
        guard let text = try text(cell, label) else { return }
        sheet.row = sheet.row ?? row.number
        _ = try signed.get()
        sheet.lines.append(Line(label: label, text: text))
      } catch {
        sheet.refuse(row.number, "\(label): \(error.description)")
      }
    }
    return sheet
  }

  /// The reason to refuse a sign-off; nil to accept it. `incompleteReasons` are empty if accepted.
  static func refusal(
    of new: StoredSignOff, beside current: [StoredSignOff], incompleteReasons: [String], balance: Balance
  ) -> String? {
    func people(_ line: StoredSignOff.Line) -> Set<String> {
      let own = new.lines[line].map { [$0] }
      return Set((own ?? current.compactMap { $0.lines[line] }).map(person))
    }
    let (prepared, reviewed) = (new.lines[.preparedBy], new.lines[.reviewedBy])
    if prepared != nil || reviewed != nil, let name = reviewed ?? prepared,
      !people(.preparedBy).isDisjoint(with: people(.reviewedBy))
    {
      return
        "the sign-off was not taken: \(name) cannot both prepare and review a report; another person has to review it"
    }
    switch balance {
    case .balanced: break
    case .notBalanced:
      return
        "the sign-off was not taken: a control of this workbook is \(SignOff.notBalanced), so its numbers were changed; "
        + "sign the workbook of the report folder"
    case .notCalculated:
      return
        "the sign-off was not taken: this workbook holds no results of its control totals; open it in a spreadsheet "
        + "program, save it there, and import it again"
    }
    if !incompleteReasons.isEmpty {
      return "the sign-off was not taken: the report is incomplete (\(incompleteReasons.joined(separator: " "))); "
        + "make the night again, or sign it as it is with --accept-incomplete"
    }
    return nil
  }

  private static func person(_ name: String) -> String {
    name.precomposedStringWithCompatibilityMapping.lowercased().split(whereSeparator: \.isWhitespace)
      .joined(separator: " ")
  }

  static func text(_ cell: ReadCell, _ label: String) throws(PeopleText.Refusal) -> String? {
    if label == SignOff.date { return try PeopleText.due(cell.entry("date", isDay: true)) }
    if case .number(let number) = cell { return number }
    return try PeopleText.remark(cell.entry("entry"))
  }
}
