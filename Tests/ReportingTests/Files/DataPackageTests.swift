import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import Reporting

struct DataPackageTests {
  private static let sample = {
    var report = SampleReport()
    report.add(order("o1", money(199, "USD")))
    report.add(order("o2", money(300, "JPY"), user: "=cmd()", isDelivered: false))
    report.add(order("o3", money(1_250, "KWD"), user: "משתמש 👩‍👩‍👧", isPaid: false))
    report.add(badOrder("o4"))
    report.refunds = [refund("T1", money(199, "USD"), milliPercent: 33_300), refund("T2", nil, milliPercent: nil)]
    report.addSandboxPurchase()
    report.changes = [.refunded, ChangeRow(new: report.findings[0])]
    report.receipts = [receipt("r1")]
    return report
  }()

  @Test func datapackageJsonDescribesEveryColumnOfEveryFileWithTheFilesSizeAndHash() throws {
    try withTemporaryDirectory { directory in
      let files = try Self.sample.write(to: directory)
      let package = try object(contents("datapackage.json", in: directory))
      #expect(package["name"] as? String == "night-audit-2026-11-19")
      #expect(package["created"] as? String == "2026-11-20T00:00:00Z")
      let resources = try #require(package["resources"] as? [[String: Any]])
      let tables = ReportTable.usual.filter { $0.fileName != nil }
      #expect(resources.count == tables.count)
      for (table, resource) in zip(tables, resources) {
        let file = try #require(files.first { $0.name == table.fileName })
        #expect(resource["path"] as? String == file.name && resource["bytes"] as? Int == file.bytes)
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
    try Self.sample.written { directory in
      #expect(try validate(directory) == "valid")
      // A word in place of a number shows that the validator checks values.
      let path = URL(filePath: "\(directory)/orders.csv")
      let text = try String(contentsOf: path, encoding: .utf8)
      try text.replacing(",1.99,", with: ",much,").write(to: path, atomically: true, encoding: .utf8)
      let errors = try validate(directory)
      #expect(errors.contains("type-error") && errors.contains("hash-count"))
    }
  }

  @Test(.enabled(if: TestTools.areInstalled))
  func aPackageWithBadRowsWithoutAnIDOrWithADuplicateOneIsValid() throws {
    var report = Self.sample
    report.addRowsWithoutIds()
    report.receipts += report.receipts
    #expect(try report.written(validate) == "valid")
  }

  private func validate(_ directory: String) throws -> String {
    let program = """
      from frictionless import validate
      report = validate("datapackage.json")
      print("valid" if report.valid else sorted({error[0] for error in report.flatten(["type"])}), end="")
      """
    let output = try Command.run(["/usr/bin/env", "-C", directory, TestTools.python, "-c", program])
    return String(decoding: output, as: UTF8.self)
  }
}

/// Tools that `make test` installs from PyPI (Tests/requirements.txt). Their tests are skipped without them.
enum TestTools {
  static let python = Repository.tool("python3")

  static var areInstalled: Bool {
    FileManager.default.isExecutableFile(atPath: python)
      && (try? Command.run([python, "-c", "import frictionless"])) != nil
  }
}
