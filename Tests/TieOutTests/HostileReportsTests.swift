import Gzip
import Reconciliation
import TestSupport
import Testing

@testable import TieOut

/// Reports of sales and finance that somebody has broken, compressed or not: read, or refused by an error that says so.
@Suite(.timeLimit(.minutes(30)))
struct HostileReportsTests {
  private static let tokens = [
    "\t", "\t\t\t\t\t\t", "\n", "11/31/2025", "13/01/2025", "0.0000001", "-0.00", "1,5", "S", "R", "IA1", "IA1-M",
    "USD", "ZZZ",
    "Total_Rows\t99999999999999999999", "Total_Amount", "Start Date\t", "Units", "Provider",
    "170141183460469231731687303715884105728",
  ]

  @Test func anySalesReportIsReadOrRefused() throws {
    var sample = SampleSales()
    sample.add()
    sample.add("vip", type: "IAY", units: "-3", proceeds: "4.28", country: "DE", currency: "EUR", price: "-5.99")
    sample.add("old\u{00E9}", type: "F1-B", units: "1000000", proceeds: "0", currency: "JPY", price: "120")
    let inputs = MutatedInputs([sample.bytes, try gzip(sample.bytes)], tokens: Self.tokens)
    try hold(inputs, count: 4_000) { bytes in
      var rows = 0
      let reading = try SalesReport.read(bytes, days: nil) { row in
        rows += 1
        #expect(row.first <= row.last)
      }
      #expect(reading.rows == rows)
    }
  }

  @Test func anyFinanceReportIsReadOrRefused() throws {
    let files = [FinanceReportTests.detail, FinanceReportTests.financial].map { Array($0.utf8) }
    let inputs = MutatedInputs(files + (try files.map(gzip)), tokens: Self.tokens)
    try hold(inputs, count: 4_000) { bytes in
      var rows = 0
      let reading = try FinanceReport.read(bytes, period: nil) { _ in rows += 1 }
      #expect(reading.rows == rows)
    }
  }

  private func hold(_ inputs: MutatedInputs, count: Int, _ read: ([UInt8]) throws -> Void) throws {
    var (taken, refused) = (0, 0)
    for number in MutatedInputs.numbers(count) {
      do {
        try read(inputs.input(number))
        taken += 1
      } catch is ReportProblem {
        refused += 1
      } catch is GunzipError {
        refused += 1
      } catch {
        Issue.record(error, "input \(number) of seed \(MutatedInputs.seed)")
      }
    }
    #expect(taken > count / 50 && refused > count / 50, "\(taken) read, \(refused) refused")
  }
}
