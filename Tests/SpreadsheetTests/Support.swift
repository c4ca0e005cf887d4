import Foundation
import Spreadsheet
import TestSupport
import Testing

extension DocumentProperties {
  // The fixed instant makes files comparable.
  static let sample = DocumentProperties(title: "Night audit", created: 1_763_510_400)
}

extension Workbook {
  /// Creates `book.xlsx` in the directory of its temporary files.
  init(in directory: String, properties: DocumentProperties = .sample) throws(SpreadsheetError) {
    try self.init(path: "\(directory)/book.xlsx", temporaryDirectory: directory, properties: properties)
  }
}

/// Writes a workbook and reads it back with openpyxl.
func roundTrip(
  properties: DocumentProperties = .sample, _ write: (borrowing Workbook) throws -> Void
) throws -> ReadWorkbook {
  try withTemporaryDirectory { directory in
    let workbook = try Workbook(in: directory, properties: properties)
    try write(workbook)
    try workbook.close()
    return try ReadWorkbook(path: "\(directory)/book.xlsx")
  }
}

/// Writes the sheet `Orders` and reads it back with openpyxl.
func roundTrip(
  _ storage: Workbook.Storage = .streamed, _ write: (Sheet, borrowing Workbook) throws -> Void
) throws -> ReadWorkbook.Sheet {
  try roundTrip { workbook in try write(workbook.addSheet(named: "Orders", storage: storage), workbook) }
    .sheet("Orders")
}

/// Runs `body` with the sheet `Orders` of a workbook that is never closed.
func withSheet(_ storage: Workbook.Storage = .streamed, _ body: (Sheet, borrowing Workbook) throws -> Void) throws {
  try withTemporaryDirectory { directory in
    let workbook = try Workbook(in: directory)
    try body(workbook.addSheet(named: "Orders", storage: storage), workbook)
  }
}

/// Returns the code of the error that the body throws; nil if it throws none.
func code(_ body: () throws -> Void) -> SpreadsheetError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? SpreadsheetError)?.code
  }
}
