import NIOCore
import NIOHTTP1
import Reconciliation
import Testing

@testable import AppStore

struct ServerAPIReadingTests {
  typealias Row = (httpStatus: Int, errorCode: Int, meaning: String)

  private static func rows(_ httpStatus: Int, _ codes: [Int], _ meaning: String) -> [Row] {
    codes.map { (httpStatus, $0, meaning) }
  }

  private static let known: [Row] =
    rows(400, [4_000_000, 4_000_002], "request_refused") + rows(400, [4_000_005], "revision refused")
    + rows(400, [4_000_006, 4_000_008, 4_000_047, 4_000_048, 4_000_183, 4_000_185, 4_000_187], "malformed ID")
    + rows(400, [4_000_009, 4_000_010, 4_000_011, 4_000_013, 4_000_015, 4_000_016], "request_refused")
    + rows(400, Array(4_000_018...4_000_028) + Array(4_000_030...4_000_044), "request_refused")
    + rows(400, [4_000_012, 4_000_014, 4_000_017], "window expired") + rows(404, [4_040_001], "account gone")
    + rows(404, [4_040_002, 4_040_004, 4_040_006], "apple_error") + rows(404, [4_040_003], "app_unknown")
    + rows(404, [4_040_005, 4_040_010], "not found") + rows(429, [4_290_000], "rate_limited")
    + rows(500, [5_000_000, 5_000_001], "apple_error")

  /// A proxy may change the status; the code is Apple's.
  @Test(arguments: known)
  func everyKnownCodeComesBeforeTheStatus(row: Row) {
    for status in [row.httpStatus, 400, 401, 403, 404, 429, 500] {
      #expect(meaning(status, row.errorCode) == row.meaning, "HTTP \(status)")
    }
  }

  @Test(arguments: [
    (400, "apple_error"), (401, "token_refused"), (403, "access_refused"), (404, "apple_error"), (408, "apple_error"),
    (413, "apple_error"), (429, "rate_limited"), (302, "apple_error"), (500, "apple_error"), (502, "apple_error"),
    (503, "apple_error"), (504, "apple_error"), (599, "apple_error"), (0, "apple_error"),
  ])
  func withoutAKnownCodeTheStatusDecides(httpStatus: Int, expected: String) {
    // Some are errors of endpoints that are not used.
    for code in [
      nil, 0, -1, 4_009_999, 4_030_004, 4_030_005, 4_030_007, 4_040_007, 4_040_008, 4_040_009, 4_040_019, 4_040_099,
      9_999_999, Int.max,
    ] {
      #expect(meaning(httpStatus, code) == expected, "\(code ?? 0)")
    }
  }

  /// Without Apple's error code, no status may lead to a verdict about the ID.
  @Test func aStatusWithoutACodeDecidesNothing() {
    for status in 0...999 where status != 200 {
      #expect(["apple_error", "rate_limited", "token_refused", "access_refused"].contains(meaning(status, nil)))
    }
  }

  private func meaning(_ httpStatus: Int, _ errorCode: Int?) -> String {
    let body = errorCode.map { #"{"errorCode":\#($0)}"# } ?? "{}"
    let reply = HTTPReply(status: httpStatus, headers: [:], body: ByteBuffer(string: body))
    let reading = ServerAPIReading.read(.success(reply), receivedAt: Instant(seconds: 1_795_212_000))
    switch reading.resolved(from: .production, bundleId: "com.example.game") {
    case .success: return "an answer"
    case .failure(.notFound): return "not found"
    case .failure(.accountGone): return "account gone"
    case .failure(.malformedId): return "malformed ID"
    case .failure(.revisionRefused): return "revision refused"
    case .failure(.windowExpired): return "window expired"
    case .failure(.unanswered(let silence)): return silence.reason.rawValue
    case .failure(.fault(let fault)): return fault.kind.rawValue
    }
  }
}
