import Reconciliation

/// What a command asks of the program.
package struct NightRequest: Sendable {
  /// The word on the command line, for the run's record.
  package var command = "run"
  package var asOf: Instant
  /// nil: the business day before the as-of.
  package var period: Period?
  /// Whether the period is one night, by default or by `--date`, rather than a range of days.
  package var isOneNight = true
  package var selection = Selection()
  /// `--out`: the folder that the report becomes.
  package var out: String?
  package var isOffline = false
  /// `--dry-run`: nothing is asked and written, but whether the night would be held.
  package var isRehearsal = false
  /// `--accept`: published however implausible it is.
  package var isAccepted = false
  /// `--adopt`: report folders of runs that only another database knows are taken over.
  package var isAdopting = false
  /// What makes a complete night end with 2; nil: nothing.
  package var threshold: FindingsThreshold?
  /// `--readers`: how many parts are read side by side; nil: as many as are worth it.
  package var readers: Int?
  /// `--parts`: the folder with what was audited elsewhere; nil: everything is read here.
  package var parts: String?
  /// Overrides `recheck.maxDuration`.
  package var maxDuration: Reconciliation.Span?

  package init(asOf: Instant) { self.asOf = asOf }

  /// Whether Apple may be asked anything. Whoever has audited parts elsewhere has asked before.
  package var mayAsk: Bool { !isOffline && parts == nil }
}
