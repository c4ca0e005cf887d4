import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

struct ReportWriterTests {
  private static let sample = {
    var report = SampleReport()
    for number in 0..<40 {
      report.add(
        order(
          Identifier("o\(100 + number)"), money(Int64(100 + number), number % 3 == 0 ? "JPY" : "USD"),
          user: Identifier("u\(number % 7)"), isPaid: number % 5 != 0, isDelivered: number % 4 != 0))
    }
    report.addNights(11...15, atRisk: "USD")
    return report
  }()

  private let names = [
    "actions.json", "amounts.csv", "changes.csv", "datapackage.json", "findings.csv", "night-audit-2026-11-19.xlsx",
    "orders.csv", "products.csv", "receipts.csv", "refund-requests.csv", "refunds.csv", "report.html", "sandbox.csv",
    "summary.json", "users.csv",
  ]

  @Test func theWriterReturnsEveryFileWithItsSizeAndRowsAndSha256sumCConfirmsTheHashes() throws {
    try withTemporaryDirectory { directory in
      let files = try Self.sample.write(to: directory)
      #expect(files.map(\.name) == names)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted() == (names + ["SHA256SUMS"]).sorted())
      for file in files {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(file.name)")
        #expect(attributes[.size] as? Int == file.bytes)
        #expect((attributes[.posixPermissions] as? Int ?? 0) & 0o007 == 0, "\(file.name) is accessible to other users")
      }
      #expect(files.map(\.rows) == [nil, 40, 0, nil, 16, nil, 40, 4, 0, 0, 0, nil, 0, nil, 14])
      let checked = try Command.run(["/usr/bin/env", "-C", directory, "sha256sum", "--strict", "-c", "SHA256SUMS"])
      #expect(String(decoding: checked, as: UTF8.self) == names.map { "\($0): OK\n" }.joined())
    }
  }

  @Test func equalFactsGiveEqualBytesInAnyDirectory() throws {
    let written = try (0..<2).map { _ in try withTemporaryDirectory { try Self.sample.write(to: $0) } }
    #expect(written[0] == written[1])
  }

  @Test(arguments: ReportFormat.allCases)
  func onlyTheFilesOfTheConfiguredFormatAreWritten(_ format: ReportFormat) throws {
    var report = Self.sample
    report.options.formats = [format]
    let files = try withTemporaryDirectory { try report.write(to: $0).map(\.name) }
    let data = names.filter { !$0.hasSuffix(".xlsx") && $0 != "report.html" }
    switch format {
    case .csv: #expect(files == data)
    case .csvExcel:
      let twins = data.filter { $0.hasSuffix(".csv") }.map { String($0.dropLast(4)) + ".excel.csv" }
      #expect(files == (data + twins + ["report.html"]).sorted())
    case .stripeImport: #expect(files == (data + ["stripe-import.csv"]).sorted())
    case .xlsx: #expect(files == ["actions.json", "night-audit-2026-11-19.xlsx", "report.html", "summary.json"])
    }
  }

  @Test func unbalancedTotalsEndTheReportBeforeItsSumsSummaryAndWorkbookAreWritten() throws {
    var report = Self.sample
    report.totals.read(report.judgements[0].row)
    report.summary.findings.opening += 1
    try withTemporaryDirectory { directory in
      let error = #expect(throws: ReportError.self) { try report.write(to: directory) }
      guard case .unbalanced(let totals) = error else {
        Issue.record("expected unbalanced totals, not \(String(describing: error))")
        return
      }
      #expect(
        totals.map(\.name) == [
          "orders read = sum over dispositions", "orders read = rows of orders.csv",
          "findings: opening + new - closed = closing",
        ])
      #expect(String(describing: ReportError.unbalanced(totals)).contains("41 is not 40"))
      let left = try FileManager.default.contentsOfDirectory(atPath: directory)
      #expect(!left.contains { $0 == "SHA256SUMS" || $0 == "summary.json" || $0.hasSuffix(".xlsx") })
    }
  }

  @Test func aMissingDirectoryAndOneWithAReportAreErrorsThatNameTheFile() throws {
    try withTemporaryDirectory { directory in
      try SampleReport().write(to: directory)
      for (place, problem) in [("\(directory)/missing", ENOENT), (directory, EEXIST)] {
        #expect(throws: ReportError.cannotWrite(file: "findings.csv", systemError: problem)) {
          try SampleReport().write(to: place)
        }
      }
    }
    let full = "\(ReportError.cannotWrite(file: "report.html", systemError: ENOSPC))"
    #expect(full.contains("report.html") && full.contains("free space") && full.contains("report.directory"))
  }

  @Test func aReportWithoutRowsHasEveryFile() throws {
    let files = try withTemporaryDirectory { try SampleReport().write(to: $0) }
    #expect(files.map(\.name) == names && files.compactMap(\.rows) == Array(repeating: 0, count: 10))
  }
}
