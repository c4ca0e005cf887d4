import Reconciliation
import Spreadsheet

extension DataSheet {
  func prepare() throws(SpreadsheetError) {
    for (position, column) in columns.enumerated() {
      try sheet.setColumns(position...position, width: column.width, format: formats[.blank])
    }
    let shape = table.shape
    try sheet.freezePanes(aboveRow: 1, leftOfColumn: shape.frozenColumns)
    try sheet.setTabColour(shape.tabColour)
    try sheet.setRow(0, height: 32)
    try sheet.writeHeader(of: excelTable, row: 0, firstColumn: 0)
    for (position, column) in columns.enumerated() {
      try sheet.addNote(note(on: column), row: 0, column: position)
    }
    try sheet.protect(isSortable: true)
  }

  private func note(on column: ColumnHead) -> String {
    guard column.type.isMoney else { return column.meaning }
    return "\(column.meaning) \(ReportTable.moneyRule)\(table.shape.moneyNote)"
  }

  private var excelTable: ExcelTable {
    ExcelTable(
      name: table.shape.formulaName, part: parts.count,
      columns: columns.indices.map { ExcelTable.Column(header: title(of: columns[$0]), headerFormat: header($0)) })
  }

  private func title(of column: ColumnHead) -> String {
    column.type == .instant ? "\(column.title) (\(zoneName))" : column.title
  }

  private func header(_ position: Int) -> CellFormat {
    let type = columns[position].type
    if type.isNumber { return formats[.headerRight] }
    if type == .instant || type == .due { return formats[.headerCentre] }
    return needsIndent(position) ? formats[.headerIndented] : formats[.header]
  }

  /// True for text that would touch the cell to its left.
  func needsIndent(_ position: Int) -> Bool {
    position > 0 && (columns[position - 1].type.isNumber || columns[position - 1].type == .prose)
  }

  mutating func finish() throws(SpreadsheetError) { try finish(isLast: true) }

  mutating func finish(isLast: Bool) throws(SpreadsheetError) {
    let lastRow = row - 1
    try setUpPrinting(lastRow: lastRow)
    guard lastRow > 0 else {
      if let note = table.shape.emptyNote {
        try sheet.writeText(note, row: 1, column: 0, format: formats[.text])
      }
      return try sheet.setAutofilter(area(rows: 0...0))
    }
    if table.shape.totalLabelColumn != nil { try writeTotals(lastRow: lastRow, isLast: isLast) }
    for (position, column) in columns.enumerated() where widths[position] > column.width {
      try sheet.setColumns(position...position, width: widths[position], format: formats[.blank])
    }
    try sheet.addTable(excelTable, firstRow: 0, firstColumn: 0, rowCount: lastRow)
    for (position, column) in columns.enumerated() {
      let cells = CellRange(rows: 1...lastRow, columns: position...position)
      if isOpen(column.type), column.type == .status {
        try sheet.addChoice(of: FindingStatus.allCases.map(\.rawValue), in: cells)
      }
      if isOpen(column.type), column.type == .due { try sheet.addDayEntry(in: cells) }
      if column.type == .severity { try colourSeverity(cells) }
      if column.type == .days { try markOld(cells) }
      if column.name == "deadline", let asOfSerial {
        try sheet.addConditionalFormat(.number(.less, asOfSerial, formats[.old]), in: cells)
      }
    }
    try refuseEntries(lastRow: lastRow)
    try sheet.ignoreNumbersAsText(
      in: columns.indices.filter { columns[$0].type.isId }.map {
        CellRange(rows: 1...lastRow, columns: $0...$0)
      })
  }

  private func setUpPrinting(lastRow: Int) throws(SpreadsheetError) {
    let shape = table.shape
    let area = shape.printedColumns.map { CellRange(rows: 0...max(1, lastRow), columns: 0...$0 - 1) }
    try sheet.setUpPrinting(
      PrintSetup {
        $0.pagesWide = shape.pagesWide
        $0.area = area
        $0.repeatedRows = 0...0
        if shape.pagesWide > 1 { $0.repeatedColumns = 0...shape.frozenColumns - 1 }
        $0.footer = shape.pageNote
      })
  }

  /// Opens the cells, because a protected sheet sorts only open ones, and refuses typing into the audit's own columns.
  private func refuseEntries(lastRow: Int) throws(SpreadsheetError) {
    let message: StaticString =
      table.shape.takesEntries
      ? "The audit wrote this column. Status, Owner, Due and Remark are for you; sorting and filtering are open."
      : "The audit wrote this sheet. Sorting and filtering are open; a changed amount turns a control on Summary red."
    for (position, column) in columns.enumerated() {
      let rows = isOpen(column.type) ? 0...0 : 0...lastRow
      try sheet.refuseEntry(
        in: CellRange(rows: rows, columns: position...position), title: "Not for typing", message: message)
    }
  }

  /// Marks ages above a week; of receipts only unsettled ones.
  private func markOld(_ cells: CellRange) throws(SpreadsheetError) {
    guard let outcome = columns.firstIndex(where: { $0.name == "outcome" }) else {
      return try sheet.addConditionalFormat(.number(.greater, 7, formats[.old]), in: cells)
    }
    let state = CellReference(row: 1, column: outcome)
    let age = CellReference(row: 1, column: cells.columns.lowerBound)
    try sheet.addConditionalFormat(.formula("AND(\(state)<>\"verified\",\(age)>7)", formats[.old]), in: cells)
  }

  private func area(rows: ClosedRange<Int>) -> CellRange {
    CellRange(rows: rows, columns: 0...columns.count - 1)
  }

  private func colourSeverity(_ cells: CellRange) throws(SpreadsheetError) {
    for severity in Severity.allCases {
      let format =
        switch severity {
        case .critical: formats[.critical]
        case .major: formats[.major]
        case .minor: formats[.minor]
        }
      try sheet.addConditionalFormat(.text(equals: severity.rawValue, format), in: cells)
    }
  }

  /// One line for each currency, below an empty row that keeps it out of the table.
  private mutating func writeTotals(lastRow: Int, isLast: Bool) throws(SpreadsheetError) {
    guard let currencyColumn else { return }
    totalsBefore.add(totals)
    let lines = isLast ? totalsBefore : totals
    totals = SheetTotals()
    let label =
      switch (parts.count, isLast) {
      case (1, true): "Total"
      case (_, true): "Total of all sheets"
      case (_, false): "Total of this sheet"
      }
    for (offset, line) in lines.sorted.enumerated() {
      let totalRow = lastRow + 2 + offset
      let name = CellReference(row: totalRow, column: currencyColumn)
      for (position, column) in columns.enumerated() {
        if position == currencyColumn {
          try sheet.writeText(line.currency, row: totalRow, column: position, format: formats[.totalLabel])
        } else if let sum = line.sums[position] {
          widths.fit(sum.units, digits: sum.digits ?? 0, column: position, isBold: true)
          try sheet.writeFormula(
            isLast && parts.count > 1
              ? .sum(of: sums(position, currencyColumn, name))
              : sheetTotal(position, currencyColumn, name, lastRow: lastRow),
            result: Money.number(sum.units, digits: sum.digits ?? 0), row: totalRow, column: position,
            format: sum.digits.map { formats.total(digits: $0) } ?? formats[.totalCount])
        } else if column.name == table.shape.totalLabelColumn {
          try sheet.writeText(label, row: totalRow, column: position, format: formats[.totalLabel])
        } else {
          try sheet.writeBlank(row: totalRow, column: position, format: formats[.totalLabel])
        }
      }
    }
  }

  private func sheetTotal(
    _ position: Int, _ currencyColumn: Int, _ code: CellReference, lastRow: Int
  ) -> Formula {
    let codes = CellRange(rows: 1...lastRow, columns: currencyColumn...currencyColumn)
    let cells = CellRange(rows: 1...lastRow, columns: position...position)
    return "SUMIF(\(absolute: codes),\(code),\(absolute: cells))"
  }
}
