import Spreadsheet
import TestSupport
import Testing

struct SheetFeatureTests {
  private static let all = CellRange(rows: 0...9, columns: 0...2)

  @Test(arguments: [Workbook.Storage.streamed, .inMemory])
  func layoutPrintSetupAndProtectionAreReadBack(storage: Workbook.Storage) throws {
    let read = try roundTrip { workbook in
      let first = try workbook.addSheet(named: "First", storage: storage)
      try first.writeText("plain", row: 0, column: 0)
      let sheet = try workbook.addSheet(named: "Second", storage: storage)
      let money = try workbook.addFormat(CellStyle { $0.numberFormat = "#,##0.00" })
      try sheet.setColumns(0...1, width: 20)
      try sheet.setColumns(2...2, width: 12, format: money)
      try sheet.setRow(0, height: 30)
      try sheet.mergeCells(
        CellRange(rows: 0...0, columns: 0...1), text: "Title & _x0041_", format: try workbook.addFormat(CellStyle()))
      try sheet.writeNumber(1.5, row: 1, column: 2)
      try sheet.freezePanes(aboveRow: 1, leftOfColumn: 2)
      try sheet.setAutofilter(Self.all)
      try sheet.setTabColour(Colour(0x00AA77))
      try sheet.hideGridlines()
      try sheet.activate()
      try sheet.protect(isSortable: true)
      try sheet.setUpPrinting(
        PrintSetup {
          $0.repeatedRows = 0...0
          $0.area = Self.all
          $0.header = "&CNight audit"
          $0.footer = "&CPage &P of &N"
        })
    }
    #expect(read.active == "Second")
    let sheet = try read.sheet("Second")
    #expect(sheet.widths["A"] == 20 && sheet.widths["C"] == 12 && sheet.heights["1"] == 30)
    #expect(sheet.merged == ["A1:B1"] && sheet.raw["A1"] == "Title & _x0041_")
    #expect(sheet.cells["C2"]?.format == "#,##0.00" && sheet.freeze == "C2" && sheet.filter == "A1:C10")
    #expect(sheet.tab == "FF00AA77" && !sheet.gridlines)
    #expect(
      sheet.isProtected
        && sheet.permissions == ["autoFilter", "formatColumns", "selectLockedCells", "sort"])
    #expect(sheet.landscape && sheet.pagesWide == 1 && sheet.pagesHigh == 0 && sheet.paper == 9)
    #expect(sheet.titleRows == "1:1" && sheet.printArea == "$A$1:$C$10")
    #expect(sheet.header == "Night audit" && sheet.footer == "Page &P of &N")
    #expect(try read.sheet("First").gridlines && !read.sheet("First").isProtected)
  }

  @Test func choicesAndConditionalFormatsAreReadBack() throws {
    let sheet = try roundTrip(.inMemory) { sheet, workbook in
      let red = try workbook.addFormat(CellStyle { $0.background = Colour(0xFFC7CE) })
      func column(_ index: Int) -> CellRange { CellRange(rows: 1...9, columns: index...index) }
      try sheet.addChoice(of: ["open", "acknowledged", "gelöst"], in: column(0))
      try sheet.addConditionalFormat(.text(equals: "say \"no\"", red), in: column(1))
      try sheet.addConditionalFormat(.number(.greater, 7, red), in: column(2))
      let first = CellReference(row: 1, column: 3)
      try sheet.addConditionalFormat(.formula("\(first)>30", red), in: column(3))
      for row in 1...9 {
        for column in 0...3 { try sheet.writeInteger(row, row: row, column: column) }
      }
    }
    #expect(sheet.choices == ["A2:A10": "\"open,acknowledged,gelöst\""])
    #expect(
      sheet.conditional == [#"B2:B10 equal "say ""no""""#, "C2:C10 greaterThan 7", "D2:D10 expression D2>30"])
  }

  @Test(arguments: [Workbook.Storage.streamed, .inMemory])
  func aLinkCarriesAnyText(storage: Workbook.Storage) throws {
    let texts = ["to <orders> & back", "a\u{1}b", "_x0041_", String(repeating: "é", count: 3_000), " x "]
    let sheet = try roundTrip(storage) { sheet, workbook in
      for (row, text) in texts.enumerated() {
        try sheet.writeLink(to: CellReference(row: row, column: 1), on: "The orders", text: text, row: row, column: 0)
      }
      _ = try workbook.addSheet(named: "The orders", storage: storage)
      #expect(sheet.remainingLinks == Sheet.maximumLinks - texts.count)
    }
    for (row, text) in texts.enumerated() {
      #expect(sheet.cells["A\(row + 1)"]?.link == "'The orders'!B\(row + 1)" && sheet.raw["A\(row + 1)"] == text)
    }
  }

  @Test func aLinkBeyondExcelsLimitIsRejectedAndTheFileIsWhole() throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      let sheet = try workbook.addSheet(named: "Links", storage: .streamed)
      func link(_ row: Int) throws {
        try sheet.writeLink(to: CellReference(row: 0, column: 0), on: "Links", text: "x", row: row, column: 0)
      }
      for row in 0..<Sheet.maximumLinks { try link(row) }
      #expect(sheet.remainingLinks == 0 && Sheet.maximumLinks == 65_530)
      #expect(code { try link(65_530) } == .tooManyLinks)
      try sheet.writeText("x", row: 65_530, column: 0)
      try workbook.close()
    }
  }

  @Test func aChartOfEachKindCanShowCellsOfAnotherSheet() throws {
    let read = try roundTrip { workbook in
      let data = try workbook.addSheet(named: "Some data", storage: .inMemory)
      for row in 0..<5 {
        try data.writeText("day \(row)", row: row, column: 0)
        try data.writeInteger(row * row, row: row, column: 1)
      }
      let summary = try workbook.addSheet(named: "Summary", storage: .streamed)
      let categories = SheetRange(sheet: data.name, range: CellRange(rows: 0...4, columns: 0...0))
      let values = SheetRange(sheet: data.name, range: CellRange(rows: 0...4, columns: 1...1))
      for (index, kind) in [Chart.Kind.column, .bar, .line].enumerated() {
        var chart = Chart(
          kind, title: "Orders <per> day", series: "Orders", categories: categories, values: values,
          colour: Colour(0x336699))
        (chart.valueFormat, chart.description, chart.width) = ("#,##0", "Orders per day", 600)
        try workbook.addChart(chart, to: summary, row: index * 16, column: 0)
      }
    }
    #expect(try read.sheet("Summary").charts == ["BarChart", "BarChart", "LineChart"])
  }

  @Test func otherValuesBeyondTheLimitsAreRejectedBeforeTheyReachTheLibrary() throws {
    try withTemporaryDirectory { directory in
      let workbook = try Workbook(in: directory)
      let sheet = try workbook.addSheet(named: "Orders", storage: .inMemory)
      let format = try workbook.addFormat(CellStyle())
      let one = CellRange(rows: 0...0, columns: 0...0)
      let outside = CellRange(rows: 0...1_048_576, columns: 0...0)
      let chart = Chart(
        .bar, title: "Orders", series: "=A1", categories: SheetRange(sheet: "Orders", range: one),
        values: SheetRange(sheet: "Orders", range: one), colour: Colour(0))
      func add(_ name: SheetName) throws { _ = try workbook.addSheet(named: name, storage: .streamed) }
      func style(_ change: (inout CellStyle) -> Void) throws { _ = try workbook.addFormat(CellStyle(change)) }
      func rule(_ rule: ConditionalFormat) throws { try sheet.addConditionalFormat(rule, in: one) }
      let cases: [(String, SpreadsheetError.Code, () throws -> Void)] = [
        ("width", .parameterNotAllowed, { try sheet.setColumns(0...0, width: .nan) }),
        ("height", .parameterNotAllowed, { try sheet.setRow(0, height: 0) }),
        ("merge of one", .parameterNotAllowed, { try sheet.mergeCells(one, text: "x", format: format) }),
        ("merge outside", .outOfRange, { try sheet.mergeCells(outside, text: "x", format: format) }),
        ("filter outside", .outOfRange, { try sheet.setAutofilter(outside) }),
        ("picture", .parameterNotAllowed, { try sheet.setUpPrinting(PrintSetup { $0.footer = "&G" }) }),
        ("no choice", .parameterNotAllowed, { try sheet.addChoice(of: [], in: one) }),
        ("comma in a choice", .parameterNotAllowed, { try sheet.addChoice(of: ["a,b"], in: one) }),
        // 128 characters, but 256 bytes: the library's buffer has 258, with quotation marks and NUL.
        ("bytes of a choice", .textTooLong, { try sheet.addChoice(of: [String(repeating: "é", count: 128)], in: one) }),
        ("control in a rule", .textNotRepresentable, { try rule(.text(equals: "\u{1}", format)) }),
        ("number of a rule", .notFinite, { try rule(.number(.less, .nan, format)) }),
        (
          "empty link", .parameterNotAllowed,
          { try sheet.writeLink(to: CellReference(row: 0, column: 0), on: "Orders", text: "", row: 0, column: 0) }
        ),
        (
          "chart named by a formula", .parameterNotAllowed,
          { try workbook.addChart(chart, to: sheet, row: 0, column: 0) }
        ),
        ("number format", .textTooLong, { try style { $0.numberFormat = String(repeating: "0", count: 128) } }),
        ("indent", .parameterNotAllowed, { try style { $0.indent = 16 } }),
        ("sheet twice", .nameNotAllowed, { try add("ORDERS") }), ("no sheet name", .nameNotAllowed, { try add("") }),
        ("sheet name", .nameNotAllowed, { try add("a/b") }), ("apostrophe", .nameNotAllowed, { try add("it's") }),
        ("reserved sheet name", .nameNotAllowed, { try add("History") }),
        ("long sheet name", .nameNotAllowed, { try add("This name has thirty-two letters") }),
        ("sheet name beyond ASCII", .nameNotAllowed, { try add("Übersicht") }),
      ]
      for (name, expected, attempt) in cases { #expect(code(attempt) == expected, "\(name)") }
    }
  }
}
