import Foundation
import Spreadsheet
import Testing

@Suite("Tables")
struct TableTests {
  static let headers = ["Order", "Amount", "Odd '#[1]"]

  // The totals of the table's three rows.
  private static let totals = (sum: 6.75, count: 3.0)

  /// Writes a table of three rows with totals, from the second row and column on.
  private func writeTable(
    named name: StaticString, to sheet: Sheet, of workbook: borrowing Workbook, totals: (sum: Double, count: Double)
  ) throws {
    let money = try workbook.addFormat(CellStyle { $0.numberFormat = "#,##0.00" })
    let bold = try workbook.addFormat(CellStyle { $0.isBold = true })
    let table = ExcelTable(
      name: name,
      columns: [
        .init(header: Self.headers[0], headerFormat: bold, total: .label("Total")),
        .init(header: Self.headers[1], headerFormat: bold, format: money, total: .function(.sum, result: totals.sum)),
        .init(header: Self.headers[2], total: .function(.count, result: totals.count)),
      ])
    #expect(table.hasTotals)
    try sheet.writeHeader(of: table, row: 1, firstColumn: 1)
    for row in 0..<3 {
      try sheet.writeText("order \(row)", row: row + 2, column: 1)
      try sheet.writeNumber(1.25 + Double(row), row: row + 2, column: 2, format: money)
      try sheet.writeText("=\(row)", row: row + 2, column: 3)
    }
    try sheet.addTable(table, firstRow: 1, firstColumn: 1, rowCount: 3)
  }

  /// Writes a streamed sheet and one in memory, each with a table, and a sheet without a table between them.
  private func write(
    to workbook: borrowing Workbook, totals: (sum: Double, count: Double) = TableTests.totals
  ) throws {
    let streamed = try workbook.addSheet(named: "Streamed", storage: .streamed)
    try writeTable(named: "Streamed", to: streamed, of: workbook, totals: totals)
    let orders = try workbook.addSheet(named: "Orders", storage: .streamed)
    for row in 0..<1_000 { try orders.writeText("order \(row)", row: row, column: 0) }
    let inMemory = try workbook.addSheet(named: "In memory", storage: .inMemory)
    try writeTable(named: "In_memory", to: inMemory, of: workbook, totals: totals)
  }

  @Test("streamed sheets and sheets in memory can have tables in one file", arguments: ["Streamed", "In memory"])
  func tables(name: String) throws {
    let sheet = try roundTrip { try write(to: $0) }.sheet(name)
    let table = try #require(sheet.tables[name.replacing(" ", with: "_")])
    #expect(table.range == "B2:D6")
    #expect(table.columns == Self.headers)
    #expect(table.totals == ["Total", "sum", "count"])
    // Excel repairs a file whose header cells differ from the column names.
    #expect(["B2", "C2", "D2"].map { sheet.raw[$0] } == Self.headers)
    #expect(sheet.cells["B2"]?.isBold == true)
    #expect(["B3", "B4", "B5", "B6"].map { sheet.raw[$0] } == ["order 0", "order 1", "order 2", "Total"])
    #expect(["C3", "C4", "C5", "C6"].map { sheet.cells[$0]?.number } == [1.25, 2.25, 3.25, 6.75])
    let tableName = name.replacing(" ", with: "_")
    #expect(sheet.cells["C6"]?.formula == "=SUBTOTAL(109,\(tableName)[Amount])")
    #expect(sheet.cells["D6"]?.formula == "=SUBTOTAL(103,\(tableName)[Odd '''#'[1']])")
    #expect(sheet.cells["C6"]?.numberFormat == "#,##0.00")
    #expect(sheet.cells.count == 15)
  }

  @Test("tables that Excel would repair are rejected", arguments: [Workbook.Storage.streamed, .inMemory])
  func refusals(storage: Workbook.Storage) throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      let sheet = try workbook.addSheet(named: "Orders", storage: storage)
      func add(_ name: StaticString, _ headers: [String], rows: Int = 1, style: ExcelTable.Style = .light(1)) throws {
        let table = ExcelTable(name: name, columns: headers.map { .init(header: $0) }, style: style)
        try sheet.addTable(table, firstRow: 0, firstColumn: 0, rowCount: rows)
      }
      #expect(code { try add("Orders", ["a", "A"]) } == .nameNotAllowed)
      #expect(code { try add("Orders", [""]) } == .nameNotAllowed)
      #expect(code { try add("Orders", ["a\nb"]) } == .textNotRepresentable)
      #expect(code { try add("Orders", [String(repeating: "a", count: 256)]) } == .textTooLong)
      #expect(code { try add("A1", ["a"]) } == .nameNotAllowed)
      #expect(code { try add("r1c1", ["a"]) } == .nameNotAllowed)
      #expect(code { try add("My orders", ["a"]) } == .nameNotAllowed)
      #expect(code { try add("Orders", []) } == .parameterNotAllowed)
      #expect(code { try add("Orders", ["a"], rows: 0) } == .parameterNotAllowed)
      #expect(code { try add("Orders", ["a"], rows: 1_048_576) } == .outOfRange)
      #expect(code { try add("Orders", ["a"], style: .medium(29)) } == .parameterNotAllowed)
      try add("Orders", ["a"])
      #expect(code { try sheet.setAutofilter(CellRange(rows: 0...1, columns: 0...0)) } == .filterConflict)
      let filtered = try workbook.addSheet(named: "Filtered", storage: storage)
      try filtered.setAutofilter(CellRange(rows: 0...1, columns: 0...0))
      let table = ExcelTable(name: "Filtered", columns: [.init(header: "a")])
      #expect(code { try filtered.addTable(table, firstRow: 0, firstColumn: 0, rowCount: 1) } == .filterConflict)
    }
  }

  @Test(
    "LibreOffice calculates the totals of both tables",
    .enabled(if: LibreOffice.isInstalled, "LibreOffice is an extra: apt-get install libreoffice-calc"))
  func recalculation() throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      // The stored results are wrong, to show that LibreOffice calculates its own.
      try write(to: workbook, totals: (-1, -1))
      try workbook.close()
      let converted = try ReadWorkbook(path: LibreOffice.recalculate("\(directory)/book.xlsx", in: directory))
      for name in ["Streamed", "In memory"] {
        let sheet = try converted.sheet(name)
        #expect(sheet.cells["C6"]?.number == Self.totals.sum, "\(name)")
        #expect(sheet.cells["D6"]?.number == Self.totals.count, "\(name)")
        #expect(sheet.cells["B6"]?.text == "Total", "\(name)")
      }
      #expect(try converted.sheet("Orders").cells.count == 1_000)
    }
  }
}

enum LibreOffice {
  private static let program = "/usr/bin/soffice"

  static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

  /// Opens the file in LibreOffice, computes every formula, and saves it.
  static func recalculate(_ path: String, in directory: String) throws -> String {
    let output = "\(directory)/converted"
    let profile = "\(directory)/profile"
    try FileManager.default.createDirectory(atPath: "\(profile)/user", withIntermediateDirectories: true)
    try Data(settings.utf8).write(to: URL(filePath: "\(profile)/user/registrymodifications.xcu"))
    _ = try run(
      program,
      [
        "-env:UserInstallation=file://\(profile)", "--headless", "--convert-to", "xlsx", "--outdir", output, path,
      ])
    return "\(output)/\((path as NSString).lastPathComponent)"
  }

  // By default LibreOffice shows the stored results.
  private static let settings = """
    <?xml version="1.0" encoding="UTF-8"?>
    <oor:items xmlns:oor="http://openoffice.org/2001/registry">
    <item oor:path="/org.openoffice.Office.Calc/Formula/Load">
    <prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop>
    </item>
    </oor:items>
    """
}
