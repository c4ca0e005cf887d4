import CXLSXWriter

extension Sheet {
  /// Adds a note of at most 1,000 characters of the program's own text. A streamed sheet must not be past the row.
  package func addNote(_ text: String, row: Int, column: Int) throws(SpreadsheetError) {
    let operation: StaticString = "add note"
    let cell = try cell(row, column, operation)
    try located(row, column) { () throws(SpreadsheetError) in try OwnText.check(text, limit: 1_000, operation) }
    if isStreamed, row < streamedRow { throw failure(.rowAlreadyWritten, operation, row, column) }
    var options = unsafe lxw_comment_options()
    unsafe options.width = 260
    // About 45 characters fit on a line of that width.
    unsafe options.height = UInt16(clamping: 24 + 15 * (text.count / 45 + 1))
    try check(
      unsafe worksheet_write_comment_opt(worksheet, cell.row, cell.column, text, &options), operation, row, column)
  }
}
