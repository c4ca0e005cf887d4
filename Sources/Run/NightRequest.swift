import Reconciliation

/// The options of a command that runs a night.
package struct NightRequest: Sendable {
  package var command = "run"
  package var asOf: Instant
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

  package init(asOf: Instant) { self.asOf = asOf }

  /// True if Apple may be asked. With `--parts`, Apple was asked before the parts were audited.
  package var mayAsk: Bool { !isOffline && parts == nil }
}
