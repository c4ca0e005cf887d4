import Foundation
import TestSupport
import Testing

@testable import Reporting

/// Debian's Chromium, driven by Playwright. The test is skipped without them.
private enum Browser {
  static let path: String? = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].first {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  static var isInstalled: Bool {
    path != nil && (try? Command.run([TestTools.python, "-c", "import playwright, axe_playwright_python"])) != nil
  }
}

@Suite(.enabled(if: Browser.isInstalled))
struct PageRealPartsTests {
  private struct Found: Decodable {
    let errors: [String]
    let requests: [String]
    let dialogs: Int
    let shown: [String: Int]
    let sorted: [String]
    /// axe-core's serious violations in both colour schemes, three widths and print; and overflows.
    let violations: [String]
  }

  @Test func filtersAndSortingWorkAndThePageSendsNoRequestHasNoErrorAndIsAccessible() throws {
    try ReportPageTests.sample.written { directory in
      let program = Repository.root.appending(path: "Tests/RealParts/page.py").path
      let output = try Command.run([
        TestTools.python, program, "\(directory)/report.html", #require(Browser.path),
      ])
      let found = try JSONDecoder().decode(Found.self, from: output)
      #expect(found.errors == [] && found.requests == [] && found.dialogs == 0)
      #expect(
        found.shown == [
          "all": 4, "critical": 4, "jpy": 1, "least": 1, "new new": 1, "owner Dana": 1, "owner -": 3,
          "status acknowledged": 1, "status open": 3, "search": 1, "reset": 4,
        ])
      #expect(found.sorted == ["300", "8.01", "1.250", ""] && found.violations == [])
    }
  }
}
