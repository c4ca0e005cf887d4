import Foundation
import NIOCore
import NIOHTTP1
import Testing

@testable import AppStore

@Suite struct RequestStatisticsTests {
  private func reply(_ status: Int) -> Result<HTTPReply, Silence> {
    .success(HTTPReply(status: status, headers: HTTPHeaders(), body: ByteBuffer()))
  }

  @Test("Every request is counted by app and outcome, and only replies add time")
  func outcomes() {
    let statistics = RequestStatistics()
    for status in [200, 202, 301, 400, 401, 403, 404, 429, 500, 503] {
      statistics.record(reply(status), of: "game", after: .milliseconds(300))
    }
    statistics.record(.failure(.unreachable("timeout")), of: "game", after: .seconds(30))
    statistics.record(.failure(.appleError("not HTTP")), of: "quiz", after: .seconds(1))
    let counts = statistics.counts
    let found = counts.requests.map { "\($0.key.app) \($0.key.outcome.rawValue) \($0.value)" }.sorted()
    #expect(
      found == [
        "game answered 2", "game failed 2", "game not_found 1", "game rate_limited 1", "game refused 4",
        "game unreachable 1", "quiz unreadable 1",
      ])
    #expect(counts.replies == 10)
    #expect(abs(counts.seconds - 3) < 1e-9)
    #expect(counts.cumulative == [0, 0] + Array(repeating: 10, count: RequestStatistics.bounds.count - 2))
  }
}
