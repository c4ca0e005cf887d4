import Spreadsheet
import TestSupport
import Testing

struct TableTests {
  static let headers = ["Order", "Amount", "Odd '#[1]"]

  /// Writes a table of three rows, from the second row and column on.
  private func writeTable(named name: StaticString, to sheet: Sheet, of workbook: borrowing Workbook) throws {
    let bold = try workbook.addFormat(CellStyle { $0.isBold = true })
    let table = ExcelTable(name: name, columns: Self.headers.map { .init(header: $0, headerFormat: bold) })
    try sheet.writeHeader(of: table, row: 1, firstColumn: 1)
    for row in 0..<3 {
      try sheet.writeText("order \(row)", row: row + 2, column: 1)
      try sheet.writeNumber(1.25 + Double(row), row: row + 2, column: 2)
      try sheet.writeText("=\(row)", row: row + 2, column: 3)
    }
    try sheet.addTable(table, firstRow: 1, firstColumn: 1, rowCount: 3)
  }

  @Test(arguments: ["Streamed", "In memory"])
  func streamedSheetsAndSheetsInMemoryCanHaveTablesInOneFile(name: String) throws {
    let sheet = try roundTrip { workbook in
      let streamed = try workbook.addSheet(named: "Streamed", storage: .streamed)
      try writeTable(named: "Streamed", to: streamed, of: workbook)
      // A sheet without a table between those with one.
      let orders = try workbook.addSheet(named: "Orders", storage: .streamed)
      for row in 0..<1_000 { try orders.writeText("order \(row)", row: row, column: 0) }
      let inMemory = try workbook.addSheet(named: "In memory", storage: .inMemory)
      try writeTable(named: "In_memory", to: inMemory, of: workbook)
    }.sheet(name)
    let table = try #require(sheet.tables[name.replacing(" ", with: "_")])
    #expect(table.range == "B2:D5" && table.columns == Self.headers)
    // Excel repairs a file whose header cells differ from the column names.
    #expect(["B2", "C2", "D2"].map { sheet.raw[$0] } == Self.headers)
    #expect(sheet.cells["B2"]?.isBold == true)
    #expect(["B3", "B4", "B5"].map { sheet.raw[$0] } == ["order 0", "order 1", "order 2"])
    #expect(["C3", "C4", "C5"].map { sheet.cells[$0]?.number } == [1.25, 2.25, 3.25])
    #expect(sheet.cells.count == 12)
  }

  @Test(arguments: [Workbook.Storage.streamed, .inMemory])
  func tablesThatExcelWouldRepairAreRejected(storage: Workbook.Storage) throws {
    try withSheet(storage) { sheet, workbook in
      let rows = CellRange(rows: 0...1, columns: 0...0)
      func add(_ name: StaticString, _ headers: [String], rows: Int = 1, to other: Sheet? = nil) throws {
        let table = ExcelTable(name: name, columns: headers.map { .init(header: $0) })
        try (other ?? sheet).addTable(table, firstRow: 0, firstColumn: 0, rowCount: rows)
      }
      #expect(code { try add("Orders", ["a", "A"]) } == .nameNotAllowed)
      #expect(code { try add("Orders", [""]) } == .nameNotAllowed)
      #expect(code { try add("Orders", ["a\nb"]) } == .textNotRepresentable)
      #expect(code { try add("Orders", [String(repeating: "a", count: 256)]) } == .textTooLong)
      for name: StaticString in ["A1", "r1c1", "My orders"] {
        #expect(code { try add(name, ["a"]) } == .nameNotAllowed)
      }
      #expect(code { try add("Orders", []) } == .parameterNotAllowed)
      #expect(code { try add("Orders", ["a"], rows: 0) } == .parameterNotAllowed)
      #expect(code { try add("Orders", ["a"], rows: 1_048_576) } == .outOfRange)
      try add("Orders", ["a"])
      #expect(code { try sheet.setAutofilter(rows) } == .filterConflict)
      let filtered = try workbook.addSheet(named: "Filtered", storage: storage)
      try filtered.setAutofilter(rows)
      #expect(code { try add("Filtered", ["a"], to: filtered) } == .filterConflict)
    }
  }
}
