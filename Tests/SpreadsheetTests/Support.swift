import Foundation
import Spreadsheet
import TestSupport
import Testing

/// Creates a directory for one test and removes it afterwards.
func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
  let directory = FileManager.default.temporaryDirectory.appending(path: "spreadsheet-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(at: directory) }
  return try body(directory.path)
}

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

/// Returns the code of the error that the body throws; nil if it throws none.
func code(_ body: () throws -> Void) -> SpreadsheetError.Code? {
  do {
    try body()
    return nil
  } catch {
    return (error as? SpreadsheetError)?.code
  }
}

/// Runs a program to its end and returns its output.
func run(_ program: String, _ arguments: [String], input: String = "") throws -> Data {
  try Command.run([program] + arguments, input: input)
}
