import CXLSXWriter

extension Sheet {
  /// Excel's limit for hyperlinks per sheet. The library's own check allows one more.
  package static let maximumLinks = 65_530

  /// The number of hyperlinks that can still be added. Write plain text if it is zero.
  package var remainingLinks: Int {
    guard unsafe handle.workbook != nil else { return 0 }
    return max(0, unsafe Self.maximumLinks - Int(worksheet.pointee.hlink_count))
  }

  /// Writes text that links to a cell of this workbook, blue and underlined unless a format is given.
  package func writeLink(
    to target: CellReference, on sheet: SheetName, text: String, row: Int, column: Int, format: CellFormat? = nil
  ) throws(SpreadsheetError) {
    let operation: StaticString = "write link"
    _ = try self.cell(target.row, target.column, operation)
    guard sheet.isAllowed else { throw failure(.nameNotAllowed, operation, row, column) }
    let cell = try cell(row, column, operation)
    let style = unsafe try pointer(format, operation) ?? worksheet.pointee.default_url_format
    guard remainingLinks > 0 else { throw failure(.tooManyLinks, operation, row, column) }
    guard !text.isEmpty else { throw failure(.parameterNotAllowed, operation, row, column) }
    let escaped = try located(row, column) { () throws(SpreadsheetError) in try CellText.encoded(text, operation) }
    // The library copies the text unescaped into an attribute, and may cut it within a character. So a fixed word is
    // passed, and the cell's text replaces it at once.
    try check(
      unsafe worksheet_write_url_opt(
        worksheet, cell.row, cell.column, "internal:\(sheet.quoted)!\(target.a1)", style, "link", nil),
      operation, row, column)
    try check(
      unsafe worksheet_write_string(worksheet, cell.row, cell.column, escaped, style), operation, row, column)
  }
}
