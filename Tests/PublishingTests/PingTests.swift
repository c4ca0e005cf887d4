import Logging
import Testing

@testable import Publishing

@Suite struct PingTests {
  private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  @Test(arguments: [
    ("https://hc.example/uuid", "https://hc.example/uuid", "https://hc.example/uuid/fail"),
    ("https://hc.example/uuid/", "https://hc.example/uuid", "https://hc.example/uuid/fail"),
    ("https://hc.example/a?create=1", "https://hc.example/a?create=1", "https://hc.example/a/fail?create=1"),
    ("https://hc.example/a%2Fb/?q=%20", "https://hc.example/a%2Fb?q=%20", "https://hc.example/a%2Fb/fail?q=%20"),
    ("http://127.0.0.1:8000", "http://127.0.0.1:8000", "http://127.0.0.1:8000/fail"),
  ])
  func thePingStatusIsInsertedIntoThePath(_ url: String, success: String, failure: String) throws {
    let ping = try #require(Ping(url: url, logger: Self.logger))
    #expect(ping.address(of: .success) == success && ping.address(of: .failure) == failure)
  }

  @Test(arguments: ["https://hc.example/a b", "https://[hc/"]) func invalidURLsMakeNoPing(_ text: String) {
    #expect(Ping(url: text, logger: Self.logger) == nil)
  }
}
