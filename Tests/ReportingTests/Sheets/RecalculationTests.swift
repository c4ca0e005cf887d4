import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

/// LibreOffice, which takes half a gigabyte. Its tests are skipped without it.
enum LibreOffice {
  static let found: String? = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    .map { "\($0)/soffice" }.first { FileManager.default.isExecutableFile(atPath: $0) }

  /// Runs a program of Tests/RealParts over the workbook in a directory, and reads the JSON that it prints.
  static func run<Found: Decodable>(_ program: String, in directory: String) throws -> Found {
    let path = Repository.root.appending(path: "Tests/RealParts/\(program)").path
    let output = try Command.run([
      ReadWorkbook.python(), path, "\(directory)/night-audit-2026-11-19.xlsx", #require(found), directory,
    ])
    return try JSONDecoder().decode(Found.self, from: output)
  }
}

@Suite(.enabled(if: LibreOffice.found != nil))
struct RecalculationTests {
  private struct Recalculated: Decodable {
    let formulas: Int
    let differences: [String]
    let pages: Int
  }

  @Test func theRecalculatedNumbersEqualTheStoredOnesOverSeveralSheetsAndTheWorkbookCanBePrinted() throws {
    var report = SampleReport()
    for number in 0..<12 {
      report.add(
        order(
          Identifier("o\(100 + number)"), money(Int64(101 + 7 * number), ["USD", "JPY", "KWD"][number % 3]),
          user: number == 3 ? "משתמש 👩‍👩‍👧" : Identifier("u\(number % 4)"), isPaid: number % 5 != 0,
          isDelivered: number % 4 != 0))
    }
    report.addRowsWithoutIds()
    report.refunds = [refund("T1", money(199, "USD"))]
    report.options.formats = [.xlsx]
    try report.written(rowsPerSheet: 5) { directory in
      let found: Recalculated = try LibreOffice.run("recalculation.py", in: directory)
      #expect(found.formulas > 60 && found.differences == [] && found.pages >= 8)
    }
  }

  private struct Tampered: Decodable {
    let banner: String
    let bad: [String]
    let controls: Int
  }

  @Test func sortingRowsAndFillingInEntriesChangeNoControlAChangedAmountFailsTheControlOfItsColumn() throws {
    var report = SampleReport()
    // Every kind of cell: non-ASCII IDs, surrogate pairs, numbers as text, dates that Excel does not support.
    let users: [Identifier] = ["u1", "7528972536751605695", "Zoë", "משתמש 👩‍👩‍👧\u{1}", "u\r\n2", ""]
    for number in 0..<12 {
      report.add(
        order(
          Identifier("o\(number)"), money(Int64(100 + number), number % 2 == 0 ? "USD" : "JPY"),
          user: users[number % users.count], isPaid: number % 4 != 1, isDelivered: number % 3 != 0))
    }
    report.options.formats = [.xlsx]
    let found: [String: Tampered] = try report.written { try LibreOffice.run("tampering.py", in: $0) }
    // The changed columns: ordered amounts and those by disposition in three tables, one of orders, one of findings.
    #expect(found.count(where: { !$0.key.hasPrefix("harmless") }) == 3 * (Disposition.inMoneyTotals.count + 1) + 2)
    for (name, result) in found.sorted(by: { $0.key < $1.key }) {
      if name.hasPrefix("harmless") {
        #expect(result.bad == [] && result.banner.hasPrefix("BALANCED: all ") && result.controls >= 12, "\(name)")
      } else {
        #expect(result.banner.hasPrefix("NOT BALANCED: "), "\(name): \(result.banner)")
        let (sheet, column) = (name.prefix { $0 != "," }.lowercased(), name.drop { $0 != "," }.dropFirst(2))
        let named = column == "Amount" ? "Ordered" : column
        #expect(
          result.bad.contains {
            $0.replacing(",", with: "").hasPrefix(named) || $0.hasSuffix("\(sheet) = their outcomes")
          }, "\(name): \(result.bad)")
      }
    }
  }
}
