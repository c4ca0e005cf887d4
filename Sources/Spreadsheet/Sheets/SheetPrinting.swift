import CXLSXWriter

/// The pages of a printed sheet: A4, landscape.
package struct PrintSetup: Sendable {
  /// Shrinks the sheet to this number of pages in width, with any number in height.
  package var pagesWide = 1
  /// Rows with a page break before them; some programs ignore them in a sheet that is shrunk.
  package var pageBreakRows: [Int] = []
  package var repeatedRows: ClosedRange<Int>?
  package var repeatedColumns: ClosedRange<Int>?
  package var area: CellRange?
  /// Text with Excel's codes such as `&P`, at most 255 characters, no pictures. The program's own text only, because
  /// the library's handling has known overflows. The names of the sheet and the file are above a page.
  package var header: StaticString = "&L&A&R&F"
  package var footer: StaticString?

  package init() {}

  package init(_ change: (inout PrintSetup) -> Void) {
    self.init()
    change(&self)
  }
}

extension Sheet {
  package func setUpPrinting(_ setup: PrintSetup) throws(SpreadsheetError) {
    let operation: StaticString = "set up printing"
    try ensureOpen(operation)
    // A4.
    unsafe worksheet_set_paper(worksheet, 9)
    unsafe worksheet_set_landscape(worksheet)
    guard (1...100).contains(setup.pagesWide) else { throw failure(.parameterNotAllowed, operation) }
    unsafe worksheet_fit_to_pages(worksheet, UInt16(setup.pagesWide), 0)
    if !setup.pageBreakRows.isEmpty {
      // The list ends with a zero; Excel accepts 1,023 at most.
      guard setup.pageBreakRows.allSatisfy((1..<CellRange.maximumRows).contains), setup.pageBreakRows.count <= 1_023
      else { throw failure(.outOfRange, operation) }
      var rows = setup.pageBreakRows.map { lxw_row_t($0) } + [0]
      try check(unsafe worksheet_set_h_pagebreaks(worksheet, &rows), operation)
    }
    if let rows = setup.repeatedRows {
      let area = try area(CellRange(rows: rows, columns: 0...0), operation)
      try check(unsafe worksheet_repeat_rows(worksheet, area.firstRow, area.lastRow), operation)
    }
    if let columns = setup.repeatedColumns {
      let area = try area(CellRange(rows: 0...0, columns: columns), operation)
      try check(unsafe worksheet_repeat_columns(worksheet, area.firstColumn, area.lastColumn), operation)
    }
    if let range = setup.area {
      let area = try area(range, operation)
      try check(
        unsafe worksheet_print_area(worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn),
        operation)
    }
    try check(unsafe worksheet_set_header(worksheet, try line(setup.header, operation)), operation)
    if let footer = setup.footer {
      try check(unsafe worksheet_set_footer(worksheet, try line(footer, operation)), operation)
    }
  }

  private func line(_ text: StaticString, _ operation: StaticString) throws(SpreadsheetError) -> String {
    let line = text.description
    try located { () throws(SpreadsheetError) in try OwnText.check(line, limit: 255, operation) }
    guard !line.contains("&G"), !line.contains("&[Picture]") else { throw failure(.parameterNotAllowed, operation) }
    return line
  }
}
