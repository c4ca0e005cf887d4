import Reconciliation
import Testing

@testable import NightAudit

/// What a run is refused for: findings would close, and the newest report would be one of years to come.
@Suite struct InstantToComeTests {
  private static let now = Instant(seconds: 1_795_132_800)

  @Test(arguments: [
    ("now", Span.seconds(0), Span.seconds(0), Span.seconds(0), true),
    ("clocks differ a little", .minutes(5), .seconds(0), .seconds(0), true),
    ("later than both", .minutes(6), .seconds(0), .seconds(0), false),
    ("later than the host alone", .days(2), .seconds(0), .days(2), true),
    ("later than the database alone", .days(2), .days(2), .seconds(0), true),
    ("a host that has forgotten the time", .days(3_650), .days(3_650), .seconds(0), false),
    ("a database that has", .seconds(0), .seconds(0), .days(3_650), true),
    ("a host that is years behind, and so is its as-of", .days(-3_650), .days(-3_650), .seconds(0), true),
  ])
  func hasCome(_ name: String, _ asOf: Span, _ host: Span, _ server: Span, _ hasCome: Bool) {
    let error = InstantToCome(Self.now + asOf, host: Self.now + host, server: Self.now + server, skew: .minutes(5))
    #expect((error == nil) == hasCome, "\(name)")
  }
}
