import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

struct DataPackageTests {
  private func sample() throws -> SampleReport {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(199, "USD")).judgement("o1"))
    report.add(try OrderFixture(userId: "=cmd()", amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.add(try OrderFixture(userId: "משתמש 👩‍👩‍👧", amount: money(1_250, "KWD"), isPaid: false).judgement("o3"))
    report.add(
      Judgement(
        reporting: BadOrder(
          orderId: "o4", userId: "u,5", bundleId: nil, productId: "ge\"ms", quantity: -2, amountText: "-1.999",
          currencyText: "usd", statusText: "@paid", transactionId: "T9", createdAt: try instant("2026-11-19T11:00:00Z"),
          defect: "amount below zero")))
    report.refunds = [
      RefundRow(
        transactionId: "T1", productId: "gems.100", refunded: try money(199, "USD"), milliPercent: 33_300,
        purchasedAt: nil, refundedAt: try instant("2026-11-19T12:00:00Z")),
      RefundRow(
        transactionId: "T2", productId: "gems.100", refunded: nil, milliPercent: nil, purchasedAt: nil,
        refundedAt: try instant("2026-11-19T11:00:00Z")),
    ]
    report.sandbox = [
      SandboxRow(
        userId: "u9", productId: "gems.100", currency: try currency("USD"), orders: 1, minorUnits: 1, isAllowed: true)
    ]
    report.changes = [
      ChangeRow(
        adjusted: "o8", userId: "u8", amount: try money(300, "USD"), createdAt: try instant("2026-11-10T23:30:00Z"),
        before: .settled, after: .refunded, because: "Apple refunded it"),
      ChangeRow(
        .new, finding: report.findings[0].finding, findingId: report.findings[0].findingId, before: nil, after: "open"),
    ]
    report.receipts = [
      Receipt(receiptId: "r1", orderId: nil, userId: nil, receivedAt: SampleReport.asOf, state: .neverChecked)
    ]
    return report
  }

  @Test func datapackageJsonDescribesEveryColumnOfEveryFileWithTheFilesSizeAndHash() throws {
    try withTemporaryDirectory { directory in
      let files = try sample().write(to: directory)
      let package = try object(contents("datapackage.json", in: directory))
      #expect(package["name"] as? String == "night-audit-2026-11-19")
      #expect(package["created"] as? String == "2026-11-20T00:00:00Z")
      let resources = try #require(package["resources"] as? [[String: Any]])
      let tables = ReportTable.usual.filter { $0.fileName != nil }
      #expect(resources.count == tables.count)
      for (table, resource) in zip(tables, resources) {
        let file = try #require(files.first { $0.name == table.fileName })
        #expect(resource["path"] as? String == file.name)
        #expect(resource["bytes"] as? Int == file.bytes)
        #expect(resource["hash"] as? String == "sha256:\(file.sha256)")
        let schema = try #require(resource["schema"] as? [String: Any])
        let fields = try #require(schema["fields"] as? [[String: Any]])
        let header = try #require(try contents(file.name, in: directory).split(separator: "\r\n").first)
        #expect(fields.map { $0["name"] as? String ?? "" }.joined(separator: ",") == header)
        #expect(fields.allSatisfy { ($0["description"] as? String)?.isEmpty == false })
        let names = Set(fields.compactMap { $0["name"] as? String })
        #expect(names.isSuperset(of: table.shape.primaryKey))
        #expect(schema["primaryKey"] as? [String] == (table.shape.keysMayFail ? nil : table.shape.primaryKey))
        for field in fields where field["type"] as? String == "number" { #expect(field["unit"] != nil) }
      }
    }
  }

  @Test(.enabled(if: TestTools.areInstalled))
  func thePackageAndItsFilesAreValidForFrictionlessTheFormatsOwnValidator() throws {
    try withTemporaryDirectory { directory in
      try sample().write(to: directory)
      #expect(try validate(directory) == "valid")
      // A word in place of a number shows that the validator checks values.
      let path = URL(filePath: "\(directory)/orders.csv")
      let text = try String(contentsOf: path, encoding: .utf8)
      try text.replacing(",1.99,", with: ",much,").write(to: path, atomically: true, encoding: .utf8)
      let errors = try validate(directory)
      #expect(errors.contains("type-error"))
      #expect(errors.contains("hash-count"))
    }
  }

  @Test(.enabled(if: TestTools.areInstalled))
  func aPackageWithBadRowsWithoutAnIDOrWithADuplicateOneIsValid() throws {
    try withTemporaryDirectory { directory in
      var report = try sample()
      report.addRowsWithoutIds()
      report.receipts += report.receipts
      try report.write(to: directory)
      #expect(try validate(directory) == "valid")
    }
  }

  private func validate(_ directory: String) throws -> String {
    let output = try run(TestTools.python, ["-", "\(directory)/datapackage.json"], input: DataPackageTests.program)
    return String(decoding: output, as: UTF8.self)
  }

  private static let program = #"""
    import os, sys
    from frictionless import validate
    os.chdir(os.path.dirname(sys.argv[1]))
    report = validate("datapackage.json")
    print("valid" if report.valid else sorted({error[0] for error in report.flatten(["type"])}), end="")
    """#
}

/// Tools that `make test` installs from PyPI (Tests/requirements.txt). Their tests are skipped without them.
enum TestTools {
  static let python = Repository.tool("python3")

  static var areInstalled: Bool {
    FileManager.default.isExecutableFile(atPath: python) && (try? run(python, ["-c", "import frictionless"])) != nil
  }
}
