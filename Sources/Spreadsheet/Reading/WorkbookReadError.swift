/// A reason why a workbook cannot be read, worded for its sender. It quotes nothing but shortened sheet names.
package enum WorkbookReadError: Error, Equatable, Sendable, CustomStringConvertible {
  case cannotOpen(path: String, reason: String)
  case notAWorkbook(String)
  case damaged(part: String, String)
  /// A part is larger than any workbook of night-audit: a mistake, or an attempt to exhaust memory.
  case tooLarge(part: String, String)
  case noSheet(String, present: [String])
  case noColumn(String, sheet: String)
  case columnTwice(String, sheet: String)

  package var description: String {
    switch self {
    case .cannotOpen(let path, let reason): "cannot open \(path): \(reason)"
    case .notAWorkbook(let reason): "this is not an .xlsx workbook: \(reason)"
    case .damaged(let part, let reason): "the workbook is damaged: \(part): \(reason); save it again and send that file"
    case .tooLarge(let part, let reason): "the workbook is refused: \(part): \(reason)"
    case .noSheet(let name, let present):
      "the workbook has no sheet \(name); its sheets are: \(present.prefix(12).joined(separator: ", "))"
    case .noColumn(let name, let sheet):
      "sheet \(sheet) has no column headed \(name); restore the header row of the report"
    case .columnTwice(let name, let sheet):
      "sheet \(sheet) has two columns headed \(name); remove or rename the one that is not the report's"
    }
  }
}
