import CXLSXWriter

package struct PrintSetup: Sendable {
  package var isLandscape = false
  /// Shrinks the sheet to this number of pages in width, with any number in height; nil: original size.
  package var pagesWide: Int?
  /// Rows with a page break before them; some programs ignore them if `pagesWide` is set.
  package var pageBreakRows: [Int] = []
  package var repeatedRows: ClosedRange<Int>?
  package var repeatedColumns: ClosedRange<Int>?
  package var area: CellRange?
  /// Text with Excel's codes such as `&P`, at most 255 characters, no pictures. The program's own text only, because
  /// the library's handling has known overflows.
  package var header: StaticString?
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
    if setup.isLandscape { unsafe worksheet_set_landscape(worksheet) }
    if let pages = setup.pagesWide {
      guard (1...100).contains(pages) else { throw failure(.parameterNotAllowed, operation) }
      unsafe worksheet_fit_to_pages(worksheet, UInt16(pages), 0)
    }
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
    if let header = setup.header {
      try check(unsafe worksheet_set_header(worksheet, try line(header, operation)), operation)
    }
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
