import Foundation
import Postgres
import Reconciliation
import SalesStore
import TestSupport
import Testing

/// Tests the page Views and the comments of the plain tables.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct ViewsPageTests {
  static let page: String = {
    let page = Repository.root.appending(path: "Sources/night-audit/Documentation.docc/Views.md")
    return (try? String(contentsOf: page, encoding: .utf8)) ?? ""
  }()

  struct Example: CustomTestStringConvertible {
    let name: String
    let script: String
    var testDescription: String { name }

    /// The relations that the example defines.
    var views: [String] { script.matches(of: /CREATE VIEW sales\.([a-z_]+)/).map { String($0.1) } }
    /// The number of rows in the example's last line, by relation.
    var counts: [String: Int] {
      Dictionary(
        uniqueKeysWithValues: (script.split(separator: "\n").last ?? "").matches(of: /([a-z_]+): ([0-9]+)/)
          .map { (String($0.1), Int($0.2) ?? -1) })
    }
  }

  static let examples: [Example] = page.components(separatedBy: "\n### ").dropFirst().compactMap { section in
    let parts = section.components(separatedBy: "```")
    guard parts.count >= 3, parts[1].hasPrefix("sql\n") else { return nil }
    return Example(name: section.components(separatedBy: "\n")[0], script: String(parts[1].dropFirst(4)))
  }

  @Test("each example satisfies the sales contract and has the number of rows that it states", arguments: examples)
  func exampleKeepsContract(_ example: Example) async throws {
    #expect(!example.views.isEmpty && Set(example.views) == Set(example.counts.keys))
    let drops = example.views.map { "DROP TABLE IF EXISTS sales.\($0);" }.joined()
    let shop = try await TestShop.make(drops + example.script)
    #expect(try await shop.orders().compactMap(\.defect) == [])
    #expect(try await shop.deliveries().compactMap(\.defect) == [])
    for (relation, count) in example.counts {
      let found = try await shop.reading {
        try $0.execute("SELECT count(*)::text FROM sales.\(relation)")[0].text("count")
      }
      #expect(found == "\(count)", "\(relation)")
    }
  }

  @Test("the page has eleven examples")
  func shapes() { #expect(Self.examples.count == 11) }

  @Test("the comments of the plain tables are the page's explanations of the columns")
  func comments() async throws {
    let shop = try await TestShop.make()
    let comments = try await shop.connected { connection in
      try connection.execute(
        """
        SELECT format('| `%s.%s` | %s |', c.relname, a.attname, col_description(c.oid, a.attnum)) AS line
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'sales'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
        """
      ).map { try $0.text("line") }
    }
    let lines = Self.page.components(separatedBy: "\n")
    #expect(comments.count == 28)
    #expect(comments.filter { !lines.contains($0) } == [])
  }
}
