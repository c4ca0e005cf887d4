import AppStore
import Testing

struct ServerAPIErrorClassTests {
  typealias Row = (httpStatus: Int, errorCode: Int?, errorClass: ServerAPIErrorClass)

  private static func rows(_ httpStatus: Int, _ codes: [Int], _ errorClass: ServerAPIErrorClass) -> [Row] {
    codes.map { (httpStatus, $0, errorClass) }
  }

  private static let table: [Row] =
    rows(400, [4_000_000, 4_000_002], .requestRefused)
    + rows(400, [4_000_005], .revisionRefused)
    + rows(400, [4_000_006, 4_000_008], .badIdentifier)
    + rows(400, [4_000_009, 4_000_010, 4_000_011], .requestRefused)
    + rows(400, [4_000_012, 4_000_014, 4_000_017], .windowExpired)
    + rows(400, [4_000_013, 4_000_015, 4_000_016], .requestRefused)
    + rows(400, Array(4_000_018...4_000_028) + Array(4_000_030...4_000_044), .requestRefused)
    + rows(400, [4_000_047, 4_000_048, 4_000_183, 4_000_185, 4_000_187], .badIdentifier)
    + rows(403, [4_030_004, 4_030_005, 4_030_007], .accessRefused)
    + rows(404, [4_040_001], .accountGone)
    + rows(404, [4_040_002, 4_040_004, 4_040_006], .retry)
    + rows(404, [4_040_003], .appUnknown)
    + rows(404, [4_040_005, 4_040_010], .transactionNotFound)
    // Errors of endpoints that are not used.
    + rows(404, [4_040_007, 4_040_008, 4_040_009, 4_040_019], .retry)
    + rows(429, [4_290_000], .rateLimited)
    + rows(500, [5_000_000, 5_000_001], .retry)

  @Test(arguments: table)
  func everyCodeHasItsClass(row: Row) {
    #expect(ServerAPIErrorClass.classify(httpStatus: row.httpStatus, errorCode: row.errorCode) == row.errorClass)
  }

  /// A proxy may change the status; the code is Apple's.
  @Test(arguments: table.filter { $0.httpStatus != 403 && !(4_040_007...4_040_009 ~= $0.errorCode ?? 0) })
  func theCodeComesBeforeTheStatus(row: Row) {
    guard row.errorCode != 4_040_019 else { return }
    for status in [400, 401, 403, 404, 429, 500] {
      #expect(ServerAPIErrorClass.classify(httpStatus: status, errorCode: row.errorCode) == row.errorClass)
    }
  }

  @Test(arguments: [
    (400, ServerAPIErrorClass.retry), (401, .tokenRefused), (403, .accessRefused), (404, .retry), (408, .retry),
    (413, .retry), (429, .rateLimited), (302, .retry), (500, .retry), (502, .retry), (503, .retry), (504, .retry),
    (599, .retry), (0, .retry),
  ])
  func withoutAKnownCodeTheStatusDecides(httpStatus: Int, errorClass: ServerAPIErrorClass) {
    for code in [nil, 0, -1, 4_009_999, 4_040_099, 9_999_999, Int.max] {
      #expect(ServerAPIErrorClass.classify(httpStatus: httpStatus, errorCode: code) == errorClass)
    }
  }

  /// Without Apple's error code, no status may lead to a verdict about the ID.
  @Test func aStatusWithoutACodeDecidesNothing() {
    for status in 0...999 {
      let errorClass = ServerAPIErrorClass.classify(httpStatus: status, errorCode: nil)
      #expect([.retry, .rateLimited, .tokenRefused, .accessRefused].contains(errorClass), "\(status)")
    }
  }
}
