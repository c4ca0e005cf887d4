import Foundation
import Spreadsheet
import TestSupport
import Testing

struct FileTests {
  private func write(to workbook: borrowing Workbook) throws {
    let sheet = try workbook.addSheet(named: "Summary", storage: .inMemory)
    let orders = try workbook.addSheet(named: SheetName("Orders", part: 2), storage: .streamed)
    let bold = try workbook.addFormat(CellStyle { $0.isBold = true })
    for row in 0..<500 {
      try sheet.writeText("text \(row % 7)", row: row, column: 0, format: bold)
      try orders.writeNumber(Double(row) / 3, row: row, column: 0)
      try orders.writeLink(to: CellReference(row: row, column: 0), on: sheet.name, text: "\(row)", row: row, column: 1)
    }
    let range = CellRange(rows: 0...499, columns: 0...0)
    try sheet.addConditionalFormat(.text(equals: "text 1", bold), in: range)
    let place = SheetRange(sheet: orders.name, range: range)
    let chart = Chart(.line, title: "Orders", series: "Orders", categories: place, values: place, colour: Colour(0))
    try workbook.addChart(chart, to: sheet, row: 0, column: 3)
  }

  @Test func equalWorkbooksHaveEqualBytesInAnyDirectory() throws {
    let files = try (0..<2).map { _ in
      try withTemporaryDirectory { directory in
        let workbook = try Workbook(in: directory)
        try write(to: workbook)
        try workbook.close()
        return try Data(contentsOf: URL(filePath: "\(directory)/book.xlsx"))
      }
    }
    #expect(files[0] == files[1] && files[0].count > 5_000)
  }

  @Test(arguments: [1, 1_763_510_400, 4_102_444_800] as [Int64])
  func documentPropertiesAndTheGivenTimeOfCreationAreReadBack(created: Int64) throws {
    let properties = DocumentProperties(
      title: "Night audit <2026-11-19> & more", subject: "Orders", author: "night-audit",
      comments: "Ünïcode", created: created, custom: [("run_id", "01J & co"), ("snapshot", "0000-01")])
    let read = try roundTrip(properties: properties) { _ = try $0.addSheet(named: "Orders", storage: .streamed) }
    #expect(read.title == properties.title && read.creator == "night-audit")
    #expect(read.custom == ["run_id": "01J & co", "snapshot": "0000-01"])
    #expect(read.created == Date(timeIntervalSince1970: TimeInterval(created)).formatted(.iso8601).dropLast())
  }

  @Test func propertiesBeyondTheFileFormatAreRejected() throws {
    let cases: [(DocumentProperties, SpreadsheetError.Code)] = [
      (DocumentProperties(created: 0), .parameterNotAllowed),
      (DocumentProperties(title: String(repeating: "a", count: 256), created: 1), .textTooLong),
      (DocumentProperties(author: "a\u{1}", created: 1), .textNotRepresentable),
      (DocumentProperties(created: 1, custom: [("a", "b"), ("A", "c")]), .nameNotAllowed),
      (DocumentProperties(created: 1, custom: [("a", String(repeating: "b", count: 256))]), .textTooLong),
    ]
    try withTemporaryDirectory { directory in
      for (properties, expected) in cases {
        #expect(code { _ = try Workbook(in: directory, properties: properties) } == expected)
      }
    }
  }

  @Test(
    arguments: [
      (0, 0, "A1"), (0, 25, "Z1"), (9, 26, "AA10"), (0, 701, "ZZ1"), (0, 702, "AAA1"),
      (1_048_575, 16_383, "XFD1048576"),
    ] as [(Int, Int, String)])
  func cellReferencesAreExcels(row: Int, column: Int, name: String) {
    #expect(CellReference(row: row, column: column).a1 == name)
  }
}
