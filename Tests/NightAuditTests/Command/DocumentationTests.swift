import Foundation
import TestSupport
import Testing

@testable import NightAudit
@testable import Run
@testable import Settings

/// The page about the configuration and the installed file, both written from the table of settings.
///
/// `UPDATE_EXPECTATIONS=1 swift test --filter DocumentationTests` writes them. Review the difference.
@Suite struct DocumentationTests {
  private static let isUpdating = ProcessInfo.processInfo.environment["UPDATE_EXPECTATIONS"] == "1"

  private func text(_ path: String) throws -> String {
    try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
  }

  private func expect(_ wanted: String, in path: String) throws {
    if Self.isUpdating {
      try wanted.write(to: Repository.root.appending(path: path), atomically: true, encoding: .utf8)
    }
    let isSame = try text(path) == wanted
    #expect(isSame, "\(path) differs from the table of settings; renew it with UPDATE_EXPECTATIONS=1")
  }

  /// Every key; those of a section follow the setting that lists the section's names.
  private static let keys = SettingKey.all.flatMap { key -> [SettingKey] in
    switch key.name {
    case "appstore.apps": [key] + SettingKey.ofApp.map { $0.prefixed("app.<name>.") }
    case "report.deliver":
      [key] + SettingKey.ofDelivery.map { $0.prefixed("deliver.<name>.") } + [.owners, .accounts]
    default: [key]
    }
  }

  @Test func thePageAboutTheConfigurationShowsTheTableOfSettings() throws {
    let path = "Sources/night-audit/Documentation.docc/Configuration.md"
    let rows = Self.keys.map { key in
      let standard = key.standard.hasPrefix("https://") ? "Apple's" : key.standard.isEmpty ? "" : "`\(key.standard)`"
      return "| `\(key.name)` |\(standard.isEmpty ? "" : " \(standard)") | \(key.meaning) |"
    }
    let head = "| key | default | meaning |\n|---|---|---|\n"
    let parts = try text(path).split(separator: head, maxSplits: 1, omittingEmptySubsequences: false)
    let end = try #require(parts.last?.firstRange(of: "\n\n"))
    try expect("\(parts[0])\(head)\(rows.joined(separator: "\n"))\(parts[1][end.lowerBound...])", in: path)
  }

  /// Sections with names of their own hold examples, written by hand.
  @Test func theInstalledFileShowsEverySettingWithItsDefault() throws {
    let path = "cron/night-audit.yaml"
    let sections = Dictionary(grouping: SettingKey.all) { $0.name.split(separator: ".")[0] }
    let blocks = try text(path).split(separator: "\n\n", omittingEmptySubsequences: false).map { block in
      let head = block.prefix { $0 != "\n" }.drop { $0 == "#" }.prefix { $0 != ":" }
      return sections[head].map { Self.block(String(head), $0) } ?? String(block)
    }
    let file = blocks.joined(separator: "\n\n")
    try expect(file.hasSuffix("\n") ? file : file + "\n", in: path)
    // Remarks have one blank behind the sign, keys have none or several.
    let all = file.split(separator: "\n").map { line -> Substring in
      guard line.hasPrefix("#") else { return line }
      return line.hasPrefix("# ") && !line.hasPrefix("#  ") ? "" : line.dropFirst()
    }
    let values = try ConfigurationFile(yaml: all.joined(separator: "\n"), name: path).values
    let names = values.keys.map { key -> String in
      let parts = key.split(separator: ".").map(String.init)
      switch parts[0] {
      case "app", "deliver": return "\(parts[0]).<name>.\(parts[2])"
      case "findings", "journal": return parts[0...1].joined(separator: ".")
      default: return key
      }
    }
    #expect(Set(names) == Set(Self.keys.map(\.name)))
  }

  /// The settings that every installation states.
  private static let stated: Set = ["appstore.apps", "report.directory"]

  private static func block(_ section: String, _ keys: [SettingKey]) -> String {
    let lines = keys.map { key in
      let isStated = stated.contains(key.name)
      let value = key.example.isEmpty ? key.standard : key.example
      let entry =
        (isStated ? "  " : "#  ") + key.name.dropFirst(section.count + 1) + ": "
        + (key.isList ? "[\(value.replacing(",", with: ", "))]" : value)
      let standard = isStated && !key.standard.isEmpty ? "; default: \(key.standard)" : ""
      return entry + String(repeating: " ", count: max(3, 39 - entry.count))
        + "# \(key.meaning.replacing("`", with: ""))\(standard)"
    }
    let head = (keys.contains { stated.contains($0.name) } ? "" : "#") + section + ":"
    return ([head] + lines).joined(separator: "\n")
  }

  @Test("the page Operations lists exactly the existing exit statuses, and the README is short")
  func exitStatuses() throws {
    let page = try text("Sources/night-audit/Documentation.docc/Operations.md")
    let told = page.split(separator: "\n").filter { $0.firstMatch(of: /^\| [0-9]/) != nil }
      .flatMap { $0.split(separator: "|")[0].split(separator: ",").compactMap { Int32($0.filter(\.isNumber)) } }
    let all = ExitStatus.allCases.map(\.rawValue)
    #expect(told.sorted() == all.sorted())
    #expect(try text("README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 151)
  }
}

extension SettingKey {
  fileprivate func prefixed(_ section: String) -> SettingKey {
    var key = self
    key.name = section + name
    return key
  }
}
