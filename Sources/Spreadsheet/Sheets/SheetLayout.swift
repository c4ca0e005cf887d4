import CXLSXWriter

extension Sheet {
  /// Sets the width in characters (0...255) and the format of cells without one. On a streamed sheet the format applies
  /// to later rows.
  package func setColumns(
    _ columns: ClosedRange<Int>, width: Double, format: CellFormat? = nil
  ) throws(SpreadsheetError) {
    let operation: StaticString = "set columns"
    let area = try area(CellRange(rows: 0...0, columns: columns), operation)
    let style = unsafe try pointer(format, operation)
    guard (0...255).contains(width) else { throw failure(.parameterNotAllowed, operation) }
    try check(unsafe worksheet_set_column(worksheet, area.firstColumn, area.lastColumn, width, style), operation)
  }

  /// Sets the height in points (above 0, at most 409). A streamed sheet must not be past it.
  package func setRow(_ row: Int, height: Double) throws(SpreadsheetError) {
    let operation: StaticString = "set row"
    let cell = try cell(row, 0, operation)
    guard height > 0, height <= 409 else { throw failure(.parameterNotAllowed, operation, row) }
    try check(unsafe worksheet_set_row(worksheet, cell.row, height, nil), operation, row)
  }

  package func freezePanes(aboveRow row: Int, leftOfColumn column: Int = 0) throws(SpreadsheetError) {
    let cell = try cell(row, column, "freeze panes")
    unsafe worksheet_freeze_panes(worksheet, cell.row, cell.column)
  }

  /// Adds filter buttons to the first row of a range. One per sheet, and not together with a table.
  package func setAutofilter(_ range: CellRange) throws(SpreadsheetError) {
    let operation: StaticString = "set autofilter"
    let area = try area(range, operation)
    guard unsafe worksheet.pointee.table_count == 0 else { throw failure(.filterConflict, operation) }
    let result = withoutStreaming {
      unsafe worksheet_autofilter(worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn)
    }
    try check(result, operation)
  }

  /// Merges cells and sets their text. On a streamed sheet, a merge over several rows ends all of them but the last.
  package func mergeCells(_ range: CellRange, text: String, format: CellFormat) throws(SpreadsheetError) {
    let operation: StaticString = "merge cells"
    let area = try area(range, operation)
    let style = unsafe try pointer(format, operation)
    let (row, column) = (range.rows.lowerBound, range.columns.lowerBound)
    guard range.rows.count > 1 || range.columns.count > 1 else {
      throw failure(.parameterNotAllowed, operation, row, column)
    }
    // The library ignores the errors of its inner calls.
    if isStreamed, row < streamedRow { throw failure(.rowAlreadyWritten, operation, row, column) }
    let escaped = try located(row, column) { () throws(SpreadsheetError) in try CellText.encoded(text, operation) }
    try check(
      unsafe worksheet_merge_range(
        worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, escaped, style),
      operation, row, column)
  }

  /// Protects the sheet without a password, against accidental changes. Unlocked cells, widths and heights can be
  /// changed, and all cells selected.
  /// - Parameter isSortable: true for filters, and for sorting, which Excel does only if all cells are unlocked.
  package func protect(isSortable: Bool = false) throws(SpreadsheetError) {
    try ensureOpen("protect sheet")
    var options = lxw_protection()
    (options.format_columns, options.format_rows) = (1, 1)
    if isSortable { (options.sort, options.autofilter) = (1, 1) }
    unsafe worksheet_protect(worksheet, nil, &options)
  }

  package func setTabColour(_ colour: Colour) throws(SpreadsheetError) {
    try ensureOpen("set tab colour")
    unsafe worksheet_set_tab_color(worksheet, colour.value)
  }

  package func hideGridlines() throws(SpreadsheetError) {
    try ensureOpen("hide gridlines")
    unsafe worksheet_gridlines(worksheet, UInt8(LXW_HIDE_ALL_GRIDLINES.rawValue))
  }

  /// Shows this sheet when the file is opened, instead of the first.
  package func activate() throws(SpreadsheetError) {
    try ensureOpen("activate sheet")
    unsafe worksheet_activate(worksheet)
  }

  /// Runs a call that the library refuses on streamed sheets because it may write cells of past rows. Such cells stay
  /// in memory.
  func withoutStreaming(_ note: () -> lxw_error) -> lxw_error {
    let mode = unsafe worksheet.pointee.optimize
    unsafe worksheet.pointee.optimize = 0
    defer { unsafe worksheet.pointee.optimize = mode }
    return note()
  }
}
