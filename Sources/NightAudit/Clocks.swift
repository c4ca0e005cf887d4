import Reconciliation
import Reporting
import Run

/// The time of this host and of the database's server, read together.
struct Clocks {
  /// How far a host's clock may be behind the server's.
  private static let longestDelay = Span.hours(1)

  let host: Instant
  let server: Instant

  /// Refuses an as-of that has not come by the server's clock.
  ///
  /// - Returns: what is wrong with the host's clock, if it is behind the server's.
  func requireHasCome(_ asOf: Instant, skew: Span) throws(InstantToCome) -> HostClockBehind? {
    if asOf > server + skew { throw InstantToCome(asOf: asOf, clocks: self) }
    return host < server - Self.longestDelay ? HostClockBehind(clocks: self) : nil
  }

  /// Both clocks, in words.
  fileprivate var words: String { "this host's clock says \(host.text), the database server's \(server.text)" }
}

/// An as-of that is later than the server's clock by more than the skew. Exit status 64.
///
/// A report of such an instant would be the newest until it has come.
struct InstantToCome: EndsRun, CustomStringConvertible {
  let asOf: Instant
  let clocks: Clocks

  var exitStatus: ExitStatus { .usage }
  /// An as-of that has come by the host's clock was not mistyped: that clock is ahead, and somebody has to hear of it.
  var isSlip: Bool { asOf > clocks.host }

  var description: String {
    "--as-of \(asOf.text) has not come: \(clocks.words); give an instant of the past, or set the clock that is wrong"
  }
}

/// A host's clock that is behind the server's by more than an hour. Exit status 78.
struct HostClockBehind: EndsRun, CustomStringConvertible {
  let clocks: Clocks

  var exitStatus: ExitStatus { .configuration }

  /// The fault of every app: tokens of a wrong time are refused, and an as-of by this clock leaves out the newest orders.
  func faults(of settings: Settings) -> [String: String] {
    Dictionary(settings.apps.map { ($0.name, description) }) { first, _ in first }
  }

  var description: String {
    "\(clocks.words): the host is more than an hour behind, so Apple was not asked. Set the host's clock (NTP), and run again."
  }
}
