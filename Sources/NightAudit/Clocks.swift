import AppStore
import Reconciliation
import Reporting
import Run
import Settings

struct Clocks {
  private static let longestDelay = Span.hours(1)

  let host: Instant
  let server: Instant

  /// Refuses an as-of later than the server's clock, and returns the host's clock if that is behind.
  func requireNotFuture(_ asOf: Instant, skew: Span) throws(FutureAsOfError) -> HostClockBehind? {
    if asOf > server + skew { throw FutureAsOfError(asOf: asOf, clocks: self) }
    return host < server - Self.longestDelay ? HostClockBehind(clocks: self) : nil
  }

  /// How far the host's clock is ahead of `server` or behind it, such as `this host is 90 s ahead of Apple`.
  func lead(over server: String) -> String {
    let span = host - self.server
    return "this host is \(span.magnitude.wholeSeconds) s \(span > .seconds(0) ? "ahead of" : "behind") \(server)"
  }

  fileprivate var words: String { "this host's clock says \(host.text), the database server's \(server.text)" }
}

/// An as-of that is later than the server's clock by more than the skew. Exit status 64.
///
/// A report of a future as-of would stay the newest one until that time.
struct FutureAsOfError: RunEndingError, CustomStringConvertible {
  let asOf: Instant
  let clocks: Clocks

  var exitStatus: ExitStatus { .usage }
  /// False if the host's clock is ahead: the as-of was not mistyped, and the failure must be reported.
  var isUsageMistake: Bool { asOf > clocks.host }

  var description: String {
    let future = "\(asOf.text) is in the future"
    return isUsageMistake
      ? "--as-of \(future): \(clocks.words); give an instant of the past, or correct the wrong clock"
      : "the as-of \(future), because this host is ahead of the database server: \(clocks.words); "
        + "correct the wrong clock (NTP), and run again"
  }
}

/// A host's clock that is more than an hour behind the server's. Exit status 78.
struct HostClockBehind: RunEndingError, CustomStringConvertible {
  let clocks: Clocks

  var exitStatus: ExitStatus { .configuration }

  /// Tokens of a wrong time are refused, and an as-of by this clock leaves out the newest orders.
  func faults(of settings: Settings) -> [String: String] {
    Dictionary(settings.apps.map { ($0.name, description) }) { first, _ in first }
  }

  var description: String {
    "\(clocks.words): the host is more than an hour behind, so Apple was not asked. Set the host's clock (NTP), and run again."
  }
}

extension Instant {
  /// Parses an as-of in RFC 3339 and drops fractions; nil if invalid or before 1970.
  package init?(asOf text: String) {
    guard let instant = Instant(rfc3339: text), instant.seconds >= 0 else { return nil }
    self = instant.wholeSecond
  }
}
