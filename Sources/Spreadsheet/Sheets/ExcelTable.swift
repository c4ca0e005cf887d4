import CXLSXWriter

/// An Excel table (ListObject): a named range with header and filter buttons, in Excel's style Medium 2.
package struct ExcelTable {
  package struct Column {
    /// At most 255 characters without control characters, unique in the table regardless of case.
    package var header: String
    package var headerFormat: CellFormat?

    package init(header: String, headerFormat: CellFormat? = nil) {
      (self.header, self.headerFormat) = (header, headerFormat)
    }
  }

  package let name: String
  package let columns: [Column]

  /// - Parameter part: the number of a continuation table; the first has the bare name.
  package init(name: StaticString, part: Int = 1, columns: [Column]) {
    self.name = part == 1 ? name.description : "\(name)\(part)"
    self.columns = columns
  }
}

extension Sheet {
  package func writeHeader(of table: ExcelTable, row: Int, firstColumn: Int) throws(SpreadsheetError) {
    for (offset, column) in table.columns.enumerated() {
      try writeText(column.header, row: row, column: firstColumn + offset, format: column.headerFormat)
    }
  }

  /// Declares the rows below a written header a table. The library refuses tables on streamed sheets, because it would
  /// write the header into past rows. Here the header exists already, and the table is a separate part of the file.
  /// - Parameter rowCount: rows of data, at least 1: Excel has no empty tables.
  package func addTable(_ table: ExcelTable, firstRow: Int, firstColumn: Int, rowCount: Int) throws(SpreadsheetError) {
    let operation: StaticString = "add table"
    guard rowCount >= 1, !table.columns.isEmpty else {
      throw failure(.parameterNotAllowed, operation, firstRow, firstColumn)
    }
    let lastColumn = firstColumn + table.columns.count - 1
    let area = try area(CellRange(rows: firstRow...firstRow + rowCount, columns: firstColumn...lastColumn), operation)
    guard unsafe worksheet.pointee.autofilter.in_use == 0 else { throw failure(.filterConflict, operation) }
    try checkNames(of: table, operation)

    var strings = CStrings()
    var columns: [lxw_table_column] = unsafe []
    for column in table.columns {
      var description = unsafe lxw_table_column()
      unsafe na_set_header(&description, strings.copy(column.header))
      unsafe description.header_format = try pointer(column.headerFormat, operation)
      unsafe columns.append(description)
    }
    let result = unsafe columns.withUnsafeMutableBufferPointer { columns in
      var pointers: [UnsafeMutablePointer<lxw_table_column>?] = unsafe columns.indices.map { index in
        unsafe columns.baseAddress.map { unsafe $0 + index }
      }
      return unsafe pointers.withUnsafeMutableBufferPointer { list in
        var options = unsafe lxw_table_options()
        unsafe na_set_name(&options, strings.copy(table.name))
        unsafe options.style_type = UInt8(LXW_TABLE_STYLE_TYPE_MEDIUM.rawValue)
        unsafe options.style_type_number = 2
        unsafe options.columns = list.baseAddress
        return withoutStreaming {
          unsafe worksheet_add_table(
            worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, &options)
        }
      }
    }
    try check(result, operation, firstRow, firstColumn)
  }

  private func checkNames(of table: ExcelTable, _ operation: StaticString) throws(SpreadsheetError) {
    var seen: Set<String> = []
    for column in table.columns {
      try located { () throws(SpreadsheetError) in try OwnText.check(column.header, limit: 255, operation) }
      guard !column.header.isEmpty, seen.insert(column.header.lowercased()).inserted else {
        throw failure(.nameNotAllowed, operation)
      }
    }
    guard DefinedName.isAllowed(table.name) else { throw failure(.nameNotAllowed, operation) }
  }
}
