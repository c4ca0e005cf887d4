import Foundation
import TestSupport
import Testing

@testable import NightAudit
@testable import Run

@Suite struct DocumentationTests {
  private func text(_ path: String) throws -> String {
    try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
  }

  private static let keys =
    SettingKey.all.map(\.name) + SettingKey.ofApp.map { "app.<name>.\($0.name)" }
    + SettingKey.ofDelivery.map { "deliver.<name>.\($0.name)" } + ["findings.owners", "journal.accounts"]

  @Test("the page about the configuration has every key, with its default, and none that there is not")
  func keys() throws {
    let page = try text("Sources/night-audit/Documentation.docc/Configuration.md")
    let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
    let told = rows.flatMap { row in
      row.split(separator: "|")[0].matches(of: /`([A-Za-z<>.]+)`/).map { String($0.1) }
    }
    #expect(told.sorted() == Self.keys.sorted())
    for key in SettingKey.all where !key.standard.isEmpty && !key.standard.hasPrefix("https://") {
      let row = rows.first { $0.contains("`\(key.name)`") } ?? ""
      #expect(row.contains("`\(key.standard)`"), "\(key.name) is \(key.standard): \(row)")
    }
  }

  @Test("the file that is installed has every key, and each that is commented out shows its default")
  func installedFile() throws {
    let lines = try text("cron/night-audit.yaml").split(separator: "\n", omittingEmptySubsequences: false)
    // Remarks have one blank behind the sign, keys have none or several.
    let all = lines.map { line -> String in
      guard line.hasPrefix("#") else { return String(line) }
      return line.hasPrefix("# ") && !line.hasPrefix("#  ") ? "" : String(line.dropFirst())
    }
    let values = try ConfigurationFile(yaml: all.joined(separator: "\n"), name: "night-audit.yaml").values
    let names = Set(
      values.keys.map { key -> String in
        let parts = key.split(separator: ".").map(String.init)
        switch parts[0] {
        case "app", "deliver": return "\(parts[0]).<name>.\(parts[2])"
        case "findings": return "findings.owners"
        case "journal": return "journal.accounts"
        default: return key
        }
      })
    #expect(names == Set(Self.keys))
    let set = try ConfigurationFile(yaml: lines.joined(separator: "\n"), name: "night-audit.yaml").values
    for key in SettingKey.all where !key.standard.isEmpty && set[key.name] == nil {
      switch values[key.name] {
      case .scalar(let value): #expect(value == key.standard, "\(key.name)")
      case .list(let values): #expect(values.joined(separator: ",") == key.standard, "\(key.name)")
      case nil: Issue.record("\(key.name) is missing")
      }
    }
  }

  @Test("the page about operations has every exit status, and the README is short")
  func exitStatuses() throws {
    let page = try text("Sources/night-audit/Documentation.docc/Operations.md")
    let told = page.split(separator: "\n").filter { $0.firstMatch(of: /^\| [0-9]/) != nil }
      .flatMap { $0.split(separator: "|")[0].split(separator: ",").compactMap { Int32($0.filter(\.isNumber)) } }
    let all = ExitStatus.allCases.map(\.rawValue)
    #expect(told.sorted() == all.sorted())
    #expect(try text("README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 151)
  }
}
