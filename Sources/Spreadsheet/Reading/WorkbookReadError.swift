/// Why a workbook cannot be read, in words for the person who sent it.
///
/// The description never quotes what the file holds beyond names of its own sheets, shortened.
package enum WorkbookReadError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file cannot be opened; the reason is the operating system's.
  case cannotOpen(path: String, reason: String)
  /// The file is no .xlsx at all.
  case notAWorkbook(String)
  /// A part of the archive is missing, damaged or not what the format says.
  case damaged(part: String, String)
  /// A part is larger than any workbook of ours: a mistake, or an attempt to exhaust the memory.
  case tooLarge(part: String, String)
  /// No sheet of this name; those that are there.
  case noSheet(String, present: [String])
  /// A sheet without the column that everything hangs on.
  case noColumn(String, sheet: String)
  /// Two columns of one name: nobody knows which one is meant.
  case columnTwice(String, sheet: String)

  package var description: String {
    switch self {
    case .cannotOpen(let path, let reason): "cannot open \(path): \(reason)"
    case .notAWorkbook(let reason): "this is no .xlsx workbook: \(reason)"
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
