import Foundation
import Reconciliation
import Spreadsheet
import TestSupport
import Testing

@testable import Reporting

struct LargeSheetTests {
  @Test func theTableContinuesOnASecondSheetAndTheFileHasEveryRow() throws {
    try withTemporaryDirectory { directory in
      let path = "\(directory)/large.xlsx"
      let workbook = try Workbook(path: path, temporaryDirectory: directory, properties: DocumentProperties(created: 1))
      var sheet = try DataSheet(
        .receipts, in: workbook, formats: CellFormats(workbook), options: SampleReport().options)
      for number in 0...CellRange.maximumRows {
        // One cell per row, because only the number of rows matters.
        try sheet.add(in: workbook) { $0 == 0 ? .count(Int64(number)) : .blank }
      }
      try sheet.finish()
      #expect(sheet.parts.map(\.name.description) == ["Receipts", "Receipts 2"])
      #expect(sheet.parts.map(\.rows) == [1_048_575, 2])
      try workbook.close()
      // Rows with headers, the numbers in the first and last row, and the table. openpyxl would take a minute.
      let program = #"""
        import re, sys, zipfile
        archive = zipfile.ZipFile(sys.argv[1])
        for number in (1, 2):
            sheet = archive.read(f"xl/worksheets/sheet{number}.xml")
            numbers = re.findall(rb'<c r="A[0-9]+"(?![^>]*t=)[^>]*><v>([0-9]+)</v>', sheet)
            table = re.search(r'ref="([^"]+)"', archive.read(f"xl/tables/table{number}.xml").decode())[1]
            print(sheet.count(b"</row>"), int(numbers[0]), int(numbers[-1]), table)
        """#
      let counted = String(decoding: try Command.run(["python3", "-c", program, path]), as: UTF8.self)
      #expect(counted == "1048576 0 1048574 A1:M1048576\n3 1048575 1048576 A1:M3\n")
    }
  }
}
