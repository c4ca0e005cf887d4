import Reconciliation

/// The options of a command that runs a night.
package struct NightRequest: Sendable {
  package var command = "run"
  package private(set) var asOf: Instant
  private let isAsOfGiven: Bool
  /// False if no snapshot spans the shop's store, so that an audit describes an instant before its start.
  package var hasOneSnapshot = true
  /// nil: the business day before the as-of.
  package var period: Period?
  /// True for a single night, by default or by `--date`; false for a range of days.
  package var isOneNight = true
  package var selection = Selection()
  package var out: String?
  package var isOffline = false
  /// `--dry-run`: nothing is asked or written, but the run reports whether the night would be held.
  package var isRehearsal = false
  /// `--accept`: publish the night even if it is implausible.
  package var isAccepted = false
  /// `--adopt`: take over report folders of runs that only another database has.
  package var isAdopting = false
  package var threshold: FindingsThreshold?
  /// `--readers`: the number of parts read concurrently; nil: chosen by size.
  package var readers: Int?
  package var parts: String?
  package var maxDuration: Reconciliation.Span?

  /// - Parameter asOf: nil: now.
  package init(asOf: Instant?) {
    self.asOf = asOf ?? .now
    isAsOfGiven = asOf != nil
  }

  /// True if Apple may be asked. With `--parts`, Apple was asked before the parts were audited.
  package var mayAsk: Bool { !isOffline && parts == nil }

  /// How long before its start an audit without one snapshot describes the shop. Rows of that time may still change.
  private static let margin = Span.minutes(10)

  /// This request for a shop's store that no snapshot spans. A given as-of is never replaced by another one.
  package func withoutOneSnapshot(startedAt: Instant) throws(LateAsOfError) -> NightRequest {
    let latest = startedAt - Self.margin
    var request = self
    request.hasOneSnapshot = false
    if !isAsOfGiven { request.asOf = latest }
    if request.asOf > latest { throw LateAsOfError(asOf: request.asOf, latest: latest) }
    return request
  }
}

/// An as-of that an audit without one snapshot cannot describe yet. Exit status 64.
package struct LateAsOfError: RunEndingError, CustomStringConvertible {
  let asOf: Instant
  let latest: Instant

  package var exitStatus: ExitStatus { .usage }
  /// False because a scheduled command with such an as-of fails night after night.
  package var isUsageMistake: Bool { false }

  package var description: String {
    """
    --as-of \(asOf.text) is too late: no snapshot spans the shop's store, so the newest instant that an audit describes is \
    ten minutes before its start; give \(latest.text) or an earlier instant, or leave --as-of out
    """
  }
}
