import Spreadsheet
import TestSupport
import Testing

struct CellTests {
  @Test(arguments: [Workbook.Storage.streamed, .inMemory])
  func cellsOfEveryKindAreReadBackUnchanged(storage: Workbook.Storage) throws {
    let cells = try roundTrip(storage) { sheet, workbook in
      let money = try workbook.addFormat(CellStyle { $0.numberFormat = "#,##0.000" })
      let clock = try workbook.addFormat(CellStyle { $0.numberFormat = "yyyy-mm-dd hh:mm:ss" })
      let open = try workbook.addFormat(
        CellStyle { ($0.isBold, $0.isLocked, $0.background) = (true, false, Colour(0xFFEE00)) })
      try sheet.writeText("=1+1", row: 0, column: 0)
      try sheet.writeNumber(-1234.567, row: 0, column: 1, format: money)
      try sheet.writeInteger(999_999_999_999_999, row: 0, column: 2)
      try sheet.writeDateTime(localSecondsSince1970: 1_795_126_443, row: 0, column: 5, format: clock)
      let range = CellRange(rows: 0...0, columns: 1...2)
      try sheet.writeFormula("SUM(\(range))", result: 999_999_999_998_764.4, row: 0, column: 6)
      try sheet.writeFormula("IF(\(absolute: range)=0,\"\",\"a&b\")", result: "a&b", row: 0, column: 7)
      try sheet.writeBlank(row: 0, column: 8, format: open)
      try sheet.writeText("", row: 0, column: 9)
      try sheet.writeText("", row: 0, column: 10, format: open)
    }.cells
    #expect(cells["A1"]?.text == "=1+1")
    #expect((cells["B1"]?.number, cells["B1"]?.format) == (-1234.567, "#,##0.000"))
    #expect(cells["C1"]?.number == 999_999_999_999_999 && cells["F1"]?.text == "2026-11-19 22:14:03")
    #expect((cells["G1"]?.formula, cells["G1"]?.number) == ("=SUM(B1:C1)", 999_999_999_998_764.4))
    #expect((cells["H1"]?.formula, cells["H1"]?.text) == ("=IF($B$1:$C$1=0,\"\",\"a&b\")", "a&b"))
    #expect(cells["I1"]?.isBold == true && cells["I1"]?.isLocked == false && cells["I1"]?.fill == "FFFFEE00")
    #expect(cells["J1"] == nil && cells["K1"]?.isBold == true)
  }

  @Test func cellsThatExcelWouldChangeOrRejectAreErrors() throws {
    let cases: [(String, SpreadsheetError.Code, (Sheet) throws -> Void)] = [
      ("NaN", .notFinite, { try $0.writeNumber(.nan, row: 1, column: 1) }),
      ("infinity", .notFinite, { try $0.writeNumber(-.infinity, row: 1, column: 1) }),
      ("signalling NaN", .notFinite, { try $0.writeNumber(.signalingNaN, row: 1, column: 1) }),
      ("NaN as a result", .notFinite, { try $0.writeFormula("1/0", result: .nan, row: 1, column: 1) }),
      ("16 digits", .integerTooLarge, { try $0.writeInteger(1_000_000_000_000_000, row: 1, column: 1) }),
      ("Int.min", .integerTooLarge, { try $0.writeInteger(.min, row: 1, column: 1) }),
      ("a row too many", .outOfRange, { try $0.writeNumber(1, row: 1_048_576, column: 1) }),
      ("a column too many", .outOfRange, { try $0.writeText("x", row: 1, column: 16_384) }),
      ("a negative row", .outOfRange, { try $0.writeText("x", row: -1, column: 1) }),
      ("a negative column", .outOfRange, { try $0.writeNumber(1, row: 1, column: -1) }),
      ("a row beyond 32 bits", .outOfRange, { try $0.writeNumber(1, row: 1 << 32, column: 1) }),
      ("a column beyond 16 bits", .outOfRange, { try $0.writeNumber(1, row: 1, column: 1 << 16) }),
      ("Int.max", .outOfRange, { try $0.writeNumber(1, row: .max, column: .max) }),
    ]
    try withSheet { sheet, _ in
      for (name, expected, write) in cases { #expect(code { try write(sheet) } == expected, "\(name)") }
    }
  }

  @Test func theLastRowAndColumnCanBeWritten() throws {
    let sheet = try roundTrip { sheet, _ in try sheet.writeText("corner", row: 1_048_575, column: 16_383) }
    #expect(sheet.raw == ["XFD1048576": "corner"])
  }

  @Test func datesAndTimesHaveExcelsSerialNumbers() throws {
    let dates: [(seconds: Int64, serial: Double)] = [
      (-2_208_988_800, 1), (-2_203_977_600, 59),
      // Excel counts a 29 February 1900, which did not exist.
      (-2_203_891_200, 61), (0, 25_569), (951_782_400, 36_585), (1_735_646_400, 45_657.5),
      (253_402_214_400, 2_958_465),
    ]
    let sheet = try roundTrip { sheet, workbook in
      let format = try workbook.addFormat(CellStyle())
      for (row, date) in dates.enumerated() {
        try sheet.writeDateTime(localSecondsSince1970: date.seconds, row: row, column: 0, format: format)
      }
    }
    #expect(dates.indices.map { sheet.cells["A\($0 + 1)"]?.number } == dates.map(\.serial))
  }

  @Test(arguments: [.min, -2_208_988_801, 253_402_300_800, .max] as [Int64])
  func timesBefore1900AndAfter9999AreRefused(seconds: Int64) throws {
    try withSheet { sheet, workbook in
      let format = try workbook.addFormat(CellStyle())
      let found = code { try sheet.writeDateTime(localSecondsSince1970: seconds, row: 0, column: 0, format: format) }
      #expect(found == .dateOutOfRange)
    }
  }
}
