import CXLSXWriter

/// One sheet of a ``Workbook``, written cell by cell; rows and columns count from zero. On a streamed sheet rows must
/// ascend. A sheet keeps the workbook's memory alive. Every call checks that the workbook is open, which costs a load
/// and a branch, and throws `closed` instead of writing to freed memory.
@safe
package struct Sheet {
  package let name: SheetName
  let worksheet: UnsafeMutablePointer<lxw_worksheet>
  let handle: WorkbookHandle

  /// Writes text; `=1+1` stays text. Throws `textTooLong` and `textNotRepresentable`, see
  /// ``CellText/fitting(_:marker:)``.
  package func writeText(_ text: String, row: Int, column: Int, format: CellFormat? = nil) throws(SpreadsheetError) {
    let operation: StaticString = "write text"
    let cell = try cell(row, column, operation)
    let style = unsafe try pointer(format, operation)
    let direct: lxw_error? = unsafe text.withCString { bytes in
      let (length, isPlain) = unsafe CellText.scan(bytes)
      guard isPlain, length <= CellText.maximumLength, length == text.utf8.count else { return nil }
      return unsafe worksheet_write_string(worksheet, cell.row, cell.column, bytes, style)
    }
    if let direct {
      try check(direct, operation, row, column)
    } else {
      let escaped = try located(row, column) { () throws(SpreadsheetError) in try CellText.encoded(text, operation) }
      try check(unsafe worksheet_write_string(worksheet, cell.row, cell.column, escaped, style), operation, row, column)
    }
  }

  /// Writes a number. Throws `notFinite`, for which the library would write an unreadable file.
  package func writeNumber(
    _ number: Double, row: Int, column: Int, format: CellFormat? = nil
  ) throws(SpreadsheetError) {
    let operation: StaticString = "write number"
    let cell = try cell(row, column, operation)
    let style = unsafe try pointer(format, operation)
    guard number.isFinite else { throw failure(.notFinite, operation, row, column) }
    try check(unsafe worksheet_write_number(worksheet, cell.row, cell.column, number, style), operation, row, column)
  }

  /// Writes a whole number of at most 15 digits, which Excel keeps exactly. Write identifiers as text.
  package func writeInteger(_ number: Int, row: Int, column: Int, format: CellFormat? = nil) throws(SpreadsheetError) {
    let operation: StaticString = "write integer"
    guard number.magnitude < 1_000_000_000_000_000 else { throw failure(.integerTooLarge, operation, row, column) }
    try writeNumber(Double(number), row: row, column: column, format: format)
  }

  /// Writes a date and time from local seconds since 1970: UTC seconds plus the zone's offset.
  package func writeDateTime(
    localSecondsSince1970 seconds: Int64, row: Int, column: Int, format: CellFormat
  ) throws(SpreadsheetError) {
    guard let serial = ExcelDate.serial(secondsSince1970: seconds) else {
      throw failure(.dateOutOfRange, "write date", row, column)
    }
    try writeNumber(serial, row: row, column: column, format: format)
  }

  /// Writes a formula with the result that is shown by viewers that do not compute.
  package func writeFormula(
    _ formula: Formula, result: Double, row: Int, column: Int, format: CellFormat? = nil
  ) throws(SpreadsheetError) {
    let operation: StaticString = "write formula"
    let cell = try cell(row, column, operation)
    let style = unsafe try pointer(format, operation)
    guard result.isFinite else { throw failure(.notFinite, operation, row, column) }
    try check(formula, operation, row, column)
    try check(
      unsafe worksheet_write_formula_num(worksheet, cell.row, cell.column, formula.text, style, result),
      operation, row, column)
  }

  package func writeFormula(
    _ formula: Formula, result: String, row: Int, column: Int, format: CellFormat? = nil
  ) throws(SpreadsheetError) {
    let operation: StaticString = "write formula"
    let cell = try cell(row, column, operation)
    let style = unsafe try pointer(format, operation)
    try check(formula, operation, row, column)
    let escaped = try located(row, column) { () throws(SpreadsheetError) in try CellText.encoded(result, operation) }
    try check(
      unsafe worksheet_write_formula_str(worksheet, cell.row, cell.column, formula.text, style, escaped),
      operation, row, column)
  }

  package func writeBlank(row: Int, column: Int, format: CellFormat) throws(SpreadsheetError) {
    let operation: StaticString = "write blank"
    let cell = try cell(row, column, operation)
    let style = unsafe try pointer(format, operation)
    try check(unsafe worksheet_write_blank(worksheet, cell.row, cell.column, style), operation, row, column)
  }

  // Excel's limit for the text of a formula.
  private func check(
    _ formula: Formula, _ operation: StaticString, _ row: Int, _ column: Int
  ) throws(SpreadsheetError) {
    guard formula.text.utf16.count <= 8_192 else { throw failure(.textTooLong, operation, row, column) }
  }
}

// Checks before and after every call of the library.
extension Sheet {
  var isStreamed: Bool { unsafe worksheet.pointee.optimize != 0 }

  /// The current row of a streamed sheet; earlier rows can no longer be written.
  var streamedRow: Int { unsafe Int(worksheet.pointee.optimize_row.pointee.row_num) }

  func ensureOpen(_ operation: StaticString) throws(SpreadsheetError) {
    guard unsafe handle.workbook != nil else { throw failure(.closed, operation) }
  }

  func cell(
    _ row: Int, _ column: Int, _ operation: StaticString
  ) throws(SpreadsheetError) -> (row: lxw_row_t, column: lxw_col_t) {
    try ensureOpen(operation)
    guard
      row >= 0, row < CellRange.maximumRows, column >= 0, column < CellRange.maximumColumns
    else { throw failure(.outOfRange, operation, row, column) }
    return (lxw_row_t(truncatingIfNeeded: row), lxw_col_t(truncatingIfNeeded: column))
  }

  func area(
    _ range: CellRange, _ operation: StaticString
  ) throws(SpreadsheetError) -> (
    firstRow: lxw_row_t, firstColumn: lxw_col_t, lastRow: lxw_row_t, lastColumn: lxw_col_t
  ) {
    let first = try cell(range.rows.lowerBound, range.columns.lowerBound, operation)
    let last = try cell(range.rows.upperBound, range.columns.upperBound, operation)
    return (first.row, first.column, last.row, last.column)
  }

  func pointer(
    _ format: CellFormat?, _ operation: StaticString
  ) throws(SpreadsheetError) -> UnsafeMutablePointer<lxw_format>? {
    guard let format else { return nil }
    guard format.handle === handle else { throw failure(.wrongWorkbook, operation) }
    return unsafe format.pointer
  }

  func check(
    _ result: lxw_error, _ operation: StaticString, _ row: Int? = nil, _ column: Int? = nil
  ) throws(SpreadsheetError) {
    guard result != LXW_NO_ERROR else { return }
    var code = SpreadsheetError.Code(result)
    // The sheet's limits were checked before, so the library's code has its other meaning.
    if code == .outOfRange, isStreamed { code = .rowAlreadyWritten }
    throw SpreadsheetError(code, operation, sheet: name.description, row: row, column: column, libraryCode: result)
  }

  func failure(
    _ code: SpreadsheetError.Code, _ operation: StaticString, _ row: Int? = nil, _ column: Int? = nil
  ) -> SpreadsheetError {
    SpreadsheetError(code, operation, sheet: name.description, row: row, column: column)
  }

  func located<Value>(
    _ row: Int? = nil, _ column: Int? = nil, _ body: () throws(SpreadsheetError) -> Value
  ) throws(SpreadsheetError) -> Value {
    do {
      return try body()
    } catch {
      throw error.at(name, row: row, column: column)
    }
  }
}
