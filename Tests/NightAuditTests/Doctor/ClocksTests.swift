import Reconciliation
import Reporting
import Run
import Testing

@testable import NightAudit

@Suite struct ClocksTests {
  private static let now = Instant(seconds: 1_795_132_800)

  @Test(arguments: [
    ("both clocks agree", Span.seconds(0), Span.seconds(0), Span.seconds(0), 0),
    ("clocks differ by the skew", .minutes(5), .seconds(0), .seconds(0), 0),
    ("later than both clocks", .minutes(6), .seconds(0), .seconds(0), 64),
    ("later than the host's clock alone", .days(2), .minutes(2 * 1_440 - 59), .days(2), 0),
    ("later than the server's clock alone", .days(2), .days(2), .seconds(0), 64),
    ("a host that is years ahead", .days(3_650), .days(3_650), .seconds(0), 64),
    ("a host that is ahead, and an as-of of the past", .seconds(0), .days(2), .seconds(0), 0),
    ("a host that is an hour behind", .seconds(0), .hours(-1), .seconds(0), 0),
    ("a host that is more than an hour behind", .minutes(-61), .minutes(-61), .seconds(0), 78),
    ("a host that is years behind, and an as-of of now", .seconds(0), .days(-3_650), .seconds(0), 78),
  ])
  func theServersClockDecides(_ name: String, _ asOf: Span, _ host: Span, _ server: Span, _ status: Int32) {
    let clocks = Clocks(host: Self.now + host, server: Self.now + server)
    do throws(FutureAsOfError) {
      let late = try clocks.requireNotFuture(Self.now + asOf, skew: .minutes(5))
      #expect((late?.exitStatus.rawValue ?? 0) == status, "\(name)")
      if let late { #expect("\(late)".contains(clocks.host.text) && "\(late)".contains(clocks.server.text)) }
    } catch {
      #expect(error.exitStatus.rawValue == status, "\(name)")
      #expect("\(error)".contains(clocks.host.text) && "\(error)".contains(clocks.server.text))
      // Without the option, the as-of is the host's clock.
      #expect("\(error)".contains("--as-of") == (asOf > host), "\(name)")
      #expect("\(error)".contains("this host is ahead") == (asOf <= host), "\(name)")
    }
  }

  @Test(arguments: [(90, "this host is 90 s ahead of Apple"), (-7_200, "this host is 7200 s behind Apple")])
  func theClockThatIsAheadIsNamed(_ seconds: Int, _ words: String) {
    #expect(Clocks(host: Self.now + .seconds(Int64(seconds)), server: Self.now).lead(over: "Apple") == words)
  }

  @Test(arguments: [
    ("2026-11-20T03:00:00Z", 1_795_143_600), ("2026-11-20T04:30:00+01:30", 1_795_143_600),
    ("2026-11-20T03:00:00.999Z", 1_795_143_600), ("2024-02-29T00:00:00Z", 1_709_164_800),
    ("1970-01-01T00:00:00Z", 0),
  ])
  func anAsOfIsAnInstant(_ text: String, _ seconds: Int) {
    #expect(Instant(asOf: text) == Instant(seconds: Int64(seconds)))
  }

  @Test(arguments: [
    "2026-11-31T03:00:00Z", "2026-02-29T03:00:00Z", "2026-11-20T03:00:00Zfoo", "2026-11-20T24:00:00Z",
    "2026-11-20T25:61:00Z", "2026-11-20T03:00:00Z+05:00", "2026-11-20T03:00:00", "2026-11-20", "", "yesterday",
    "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z",
  ])
  func otherInstantsAreRejected(_ text: String) { #expect(Instant(asOf: text) == nil) }
}
