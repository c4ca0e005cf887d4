import Spreadsheet
import TestSupport
import Testing

struct StreamingTests {
  @Test func twoStreamedSheetsAndOneInMemoryCanBeWrittenInTurn() throws {
    let rows = 2_000
    let read = try roundTrip { workbook in
      let orders = try workbook.addSheet(named: "Orders", storage: .streamed)
      let findings = try workbook.addSheet(named: "Findings", storage: .inMemory)
      let refunds = try workbook.addSheet(named: "Refunds", storage: .streamed)
      for row in 0..<rows {
        try orders.writeText("order \(row)", row: row, column: 0)
        try refunds.writeInteger(row, row: row, column: 1)
        // Descending rows, which a sheet in memory allows.
        try findings.writeText("finding \(row)", row: rows - 1 - row, column: 0)
        try orders.writeInteger(-row, row: row, column: 1)
        try refunds.writeText("refund \(row)", row: row, column: 0)
      }
    }
    let (orders, findings, refunds) = try (read.sheet("Orders"), read.sheet("Findings"), read.sheet("Refunds"))
    #expect([orders, refunds].allSatisfy { $0.dimensions == "A1:B\(rows)" })
    for row in 0..<rows {
      let cell = "\(row + 1)"
      #expect(orders.raw["A" + cell] == "order \(row)" && orders.cells["B" + cell]?.number == Double(-row))
      #expect(refunds.raw["A" + cell] == "refund \(row)" && refunds.cells["B" + cell]?.number == Double(row))
      #expect(findings.raw["A\(rows - row)"] == "finding \(row)")
    }
  }

  @Test func everyWriteToAnEarlierRowIsRejected() throws {
    try withSheet { sheet, workbook in
      let format = try workbook.addFormat(CellStyle { $0.isBold = true })
      try sheet.writeText("ten", row: 10, column: 5)
      try sheet.writeText("still ten", row: 10, column: 0)
      let attempts: [() throws -> Void] = [
        { try sheet.writeText("x", row: 9, column: 0) },
        { try sheet.writeText("_x0041_", row: 9, column: 0) },
        { try sheet.writeNumber(1, row: 9, column: 0) },
        { try sheet.writeFormula("1", result: 1, row: 9, column: 0) },
        { try sheet.writeFormula("\"a\"", result: "a", row: 9, column: 0) },
        { try sheet.writeBlank(row: 9, column: 0, format: format) },
        { try sheet.writeLink(to: CellReference(row: 0, column: 0), on: "Orders", text: "x", row: 9, column: 0) },
        { try sheet.setRow(9, height: 20) },
        { try sheet.mergeCells(CellRange(rows: 9...11, columns: 0...1), text: "x", format: format) },
      ]
      for (index, attempt) in attempts.enumerated() { #expect(code(attempt) == .rowAlreadyWritten, "attempt \(index)") }
      #expect(sheet.remainingLinks == Sheet.maximumLinks)
    }
  }

  @Test func anAutofilterCanBeAddedAfterTheRows() throws {
    let read = try roundTrip { workbook in
      let orders = try workbook.addSheet(named: "Orders", storage: .streamed)
      let users = try workbook.addSheet(named: "Users", storage: .streamed)
      for row in 0..<100 {
        try orders.writeInteger(row, row: row, column: 0)
        try users.writeInteger(row, row: row, column: 0)
      }
      try orders.setAutofilter(CellRange(rows: 0...90, columns: 0...0))
      try users.writeText("a row after the filter was set", row: 100, column: 0)
    }
    #expect(try read.sheet("Orders").filter == "A1:A91" && read.sheet("Orders").dimensions == "A1:A100")
    #expect(try read.sheet("Users").cells.count == 101)
  }

  @Test func emptySheetsOfBothKindsAreValid() throws {
    let read = try roundTrip { workbook in
      _ = try workbook.addSheet(named: "Streamed", storage: .streamed)
      _ = try workbook.addSheet(named: "In memory", storage: .inMemory)
    }
    #expect(read.sheets.map(\.name) == ["Streamed", "In memory"] && read.sheets.allSatisfy { $0.cells.isEmpty })
  }
}
