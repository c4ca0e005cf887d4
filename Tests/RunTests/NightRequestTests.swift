import Reconciliation
import Testing

@testable import Run

/// The as-of of a request for a shop's store that no snapshot spans.
@Suite struct NightRequestTests {
  private static let start = Instant(seconds: 1_795_132_800)

  @Test func withoutOneSnapshotARunDescribesTenMinutesBeforeItsStart() throws {
    let request = try NightRequest(asOf: nil).withoutOneSnapshot(startedAt: Self.start)
    #expect(request.asOf == Self.start - .minutes(10))
    #expect(!request.hasOneSnapshot)
  }

  @Test(arguments: [Span.minutes(10), .minutes(11), .days(30)])
  func aGivenAsOfOfAtLeastTenMinutesAgoStays(_ age: Span) throws {
    let request = try NightRequest(asOf: Self.start - age).withoutOneSnapshot(startedAt: Self.start)
    #expect(request.asOf == Self.start - age)
    #expect(!request.hasOneSnapshot)
  }

  @Test(arguments: [Span.seconds(599), .seconds(0), .minutes(-1)])
  func aLaterGivenAsOfIsRefusedWithTheNewestPossibleOne(_ age: Span) {
    let late = #expect(throws: LateAsOfError.self) {
      try NightRequest(asOf: Self.start - age).withoutOneSnapshot(startedAt: Self.start)
    }
    #expect(late?.exitStatus == .usage)
    #expect(late?.isUsageMistake == false, "a scheduled night that fails is reported")
    #expect(late?.description.contains((Self.start - .minutes(10)).text) == true)
  }
}
