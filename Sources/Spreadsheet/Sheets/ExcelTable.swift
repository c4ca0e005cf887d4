import CXLSXWriter

/// An Excel table (ListObject): a named range with header, filter buttons and an optional totals row.
package struct ExcelTable {
  package enum Function: Sendable {
    case average, count, countNumbers, maximum, minimum, sum
  }

  /// The total of a column. A table has a totals row if any of its columns has a total.
  package enum Total {
    case none
    case label(String)
    /// Excel computes it over the filtered rows; `result` is shown by viewers that do not compute.
    case function(Function, result: Double)
  }

  package struct Column {
    /// At most 255 characters without control characters, unique in the table regardless of case.
    package var header: String
    package var headerFormat: CellFormat?
    package var format: CellFormat?
    package var total: Total

    package init(
      header: String, headerFormat: CellFormat? = nil, format: CellFormat? = nil, total: Total = .none
    ) {
      self.header = header
      self.headerFormat = headerFormat
      self.format = format
      self.total = total
    }
  }

  package enum Style: Sendable {
    /// 1...21
    case light(Int)
    /// 1...28
    case medium(Int)
    /// 1...11
    case dark(Int)
  }

  package let name: String
  package let columns: [Column]
  package let style: Style

  /// - Parameter part: the number of a continuation table; the first has the bare name.
  package init(name: StaticString, part: Int = 1, columns: [Column], style: Style = .medium(2)) {
    self.name = part == 1 ? name.description : "\(name)\(part)"
    self.columns = columns
    self.style = style
  }

  package var hasTotals: Bool {
    columns.contains { column in
      switch column.total {
      case .none: false
      case .label, .function: true
      }
    }
  }
}

extension Sheet {
  package func writeHeader(of table: ExcelTable, row: Int, firstColumn: Int) throws(SpreadsheetError) {
    for (offset, column) in table.columns.enumerated() {
      try writeText(column.header, row: row, column: firstColumn + offset, format: column.headerFormat)
    }
  }

  /// Declares the rows below a written header a table, and writes the totals row below them. The library refuses tables
  /// on streamed sheets, because it would write the header into past rows. Here the header exists already, and the
  /// table is a separate part of the file.
  /// - Parameter rowCount: rows of data, at least 1: Excel has no empty tables.
  package func addTable(
    _ table: ExcelTable, firstRow: Int, firstColumn: Int, rowCount: Int
  ) throws(SpreadsheetError) {
    let operation: StaticString = "add table"
    guard rowCount >= 1, !table.columns.isEmpty, table.style.isAllowed else {
      throw failure(.parameterNotAllowed, operation, firstRow, firstColumn)
    }
    let lastRow = firstRow + rowCount + (table.hasTotals ? 1 : 0)
    let lastColumn = firstColumn + table.columns.count - 1
    let area = try area(CellRange(rows: firstRow...lastRow, columns: firstColumn...lastColumn), operation)
    guard unsafe worksheet.pointee.autofilter.in_use == 0 else { throw failure(.filterConflict, operation) }
    try checkNames(of: table, operation)
    // In memory the library also writes the totals, but with formulas that only Excel understands.
    if isStreamed { try writeTotals(of: table, row: lastRow, firstColumn: firstColumn) }

    var strings = CStrings()
    var columns: [lxw_table_column] = unsafe []
    for column in table.columns {
      unsafe columns.append(try description(of: column, &strings, operation))
    }
    let result = unsafe columns.withUnsafeMutableBufferPointer { columns in
      var pointers: [UnsafeMutablePointer<lxw_table_column>?] = unsafe columns.indices.map { index in
        unsafe columns.baseAddress.map { unsafe $0 + index }
      }
      return unsafe pointers.withUnsafeMutableBufferPointer { list in
        var options = unsafe lxw_table_options()
        unsafe na_set_name(&options, strings.copy(table.name))
        unsafe options.style_type = table.style.type
        unsafe options.style_type_number = table.style.number
        unsafe options.total_row = table.hasTotals ? 1 : 0
        unsafe options.columns = list.baseAddress
        return withoutStreaming {
          unsafe worksheet_add_table(
            worksheet, area.firstRow, area.firstColumn, area.lastRow, area.lastColumn, &options)
        }
      }
    }
    try check(result, operation, firstRow, firstColumn)
    if !isStreamed { try writeTotals(of: table, row: lastRow, firstColumn: firstColumn) }
  }

  private func checkNames(of table: ExcelTable, _ operation: StaticString) throws(SpreadsheetError) {
    var seen: Set<String> = []
    for column in table.columns {
      try located { () throws(SpreadsheetError) in try OwnText.check(column.header, limit: 255, operation) }
      guard !column.header.isEmpty, seen.insert(column.header.lowercased()).inserted else {
        throw failure(.nameNotAllowed, operation)
      }
      if case .label(let text) = column.total {
        try located { () throws(SpreadsheetError) in try OwnText.check(text, limit: 255, operation) }
      }
    }
    guard DefinedName.isAllowed(table.name) else { throw failure(.nameNotAllowed, operation) }
  }

  private func description(
    of column: ExcelTable.Column, _ strings: inout CStrings, _ operation: StaticString
  ) throws(SpreadsheetError) -> lxw_table_column {
    var description = unsafe lxw_table_column()
    unsafe na_set_header(&description, strings.copy(column.header))
    unsafe description.header_format = try pointer(column.headerFormat, operation)
    unsafe description.format = try pointer(column.format, operation)
    switch column.total {
    case .none: break
    case .label(let text): unsafe na_set_total(&description, strings.copy(text))
    case .function(let function, let result):
      unsafe description.total_function = UInt8(function.subtotal)
      unsafe description.total_value = result
    }
    return unsafe description
  }

  private func writeTotals(of table: ExcelTable, row: Int, firstColumn: Int) throws(SpreadsheetError) {
    for (offset, column) in table.columns.enumerated() {
      let position = firstColumn + offset
      switch column.total {
      case .none: break
      case .label(let text): try writeText(text, row: row, column: position, format: column.format)
      case .function(let function, let result):
        try writeFormula(
          Formula(subtotal: function.subtotal, of: column.header, in: table.name), result: result,
          row: row, column: position, format: column.format)
      }
    }
  }
}

extension Formula {
  /// `SUBTOTAL(109,Orders[Amount])`, with special characters of the reference escaped by an apostrophe.
  fileprivate init(subtotal function: Int, of header: String, in table: String) {
    let escaped = header.reduce(into: "") { text, character in
      if "'#[]".contains(character) { text.append("'") }
      text.append(character)
    }
    self.init(text: "SUBTOTAL(\(function),\(table)[\(escaped)])")
  }
}

extension ExcelTable.Function {
  // SUBTOTAL's functions that ignore hidden rows.
  fileprivate var subtotal: Int {
    switch self {
    case .average: 101
    case .countNumbers: 102
    case .count: 103
    case .maximum: 104
    case .minimum: 105
    case .sum: 109
    }
  }
}

extension ExcelTable.Style {
  fileprivate var isAllowed: Bool {
    switch self {
    case .light(let number): (1...21).contains(number)
    case .medium(let number): (1...28).contains(number)
    case .dark(let number): (1...11).contains(number)
    }
  }

  fileprivate var type: UInt8 {
    let type =
      switch self {
      case .light: LXW_TABLE_STYLE_TYPE_LIGHT
      case .medium: LXW_TABLE_STYLE_TYPE_MEDIUM
      case .dark: LXW_TABLE_STYLE_TYPE_DARK
      }
    return UInt8(type.rawValue)
  }

  fileprivate var number: UInt8 {
    switch self {
    case .light(let number), .medium(let number), .dark(let number): UInt8(number)
    }
  }
}
