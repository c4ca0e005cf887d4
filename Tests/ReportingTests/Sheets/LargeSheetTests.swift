import Foundation
import Reconciliation
import Spreadsheet
import Testing

@testable import Reporting

struct LargeSheetTests {
  @Test func theTableContinuesOnASecondSheetAndTheFileHasEveryRow() throws {
    try withTemporaryDirectory { directory in
      let path = "\(directory)/large.xlsx"
      let workbook = try Workbook(path: path, temporaryDirectory: directory, properties: DocumentProperties(created: 1))
      var sheet = try DataSheet(
        .receipts, in: workbook, formats: CellFormats(workbook), options: try SampleReport().options)
      let rows = CellRange.maximumRows + 1
      for number in 0..<rows {
        // One cell per row, because only the number of rows matters.
        try sheet.add(in: workbook) { $0 == 0 ? .count(Int64(number)) : .blank }
      }
      try sheet.finish()
      #expect(sheet.parts.map(\.name.description) == ["Receipts", "Receipts 2"])
      #expect(sheet.parts.map(\.rows) == [1_048_575, 2])
      try workbook.close()
      let counted = try run("/usr/bin/env", ["python3", "-", path], input: LargeSheetTests.program)
      // Rows with headers, and the numbers in the first and last row.
      #expect(
        String(decoding: counted, as: UTF8.self).split(separator: "\n") == [
          "1048576 0 1048574 A1:M1048576", "3 1048575 1048576 A1:M3",
        ])
    }
  }

  /// Streams the archive, because openpyxl takes a minute for a sheet of this size.
  private static let program = #"""
    import re, sys, zipfile
    archive = zipfile.ZipFile(sys.argv[1])
    for number in (1, 2):
        rows, first, last, rest = 0, None, None, b""
        with archive.open(f"xl/worksheets/sheet{number}.xml") as part:
            while block := part.read(1 << 22):
                text = rest + block
                end = text.rfind(b"</row>") + 6 if b"</row>" in text else 0
                text, rest = text[:end], text[end:]
                rows += text.count(b"</row>")
                numbers = [v for v in re.findall(rb'<c r="A[0-9]+"(?![^>]*t=)[^>]*><v>([0-9]+)</v>', text)]
                if numbers:
                    first = first if first is not None else int(numbers[0])
                    last = int(numbers[-1])
        table = archive.read(f"xl/tables/table{number}.xml").decode()
        print(rows, first, last, re.search(r'ref="([^"]+)"', table)[1])
    """#
}
