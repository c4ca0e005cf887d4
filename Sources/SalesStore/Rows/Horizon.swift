import Postgres
import Reconciliation
import Run

/// The cut-off of an audit: rows and changes after its as-of belong to the next night. A night asks Apple for hours. A
/// date later than the clock is wrong, and its row is read and reported.
package struct Horizon: Hashable, Sendable {
  package var asOf: Instant
  package var clock: Instant
  /// True for an audit of the past, which reads no later rows at all, not even those with wrong dates.
  package var isPastAudit: Bool

  package init(asOf: Instant, clock: Instant, isPastAudit: Bool = false) {
    (self.asOf, self.clock, self.isPastAudit) = (asOf, clock, isPastAudit)
  }

  /// Creates the horizon of an audit that reads now. The later of the server's and this host's clock counts.
  package init(of plan: AuditPlan, on sales: borrowing BlockingConnection) throws(PostgresError) {
    let server = Instant(microseconds: try sales.execute("SELECT clock_timestamp()").single().timestamp(0))
    self.init(asOf: plan.asOf, clock: max(server, .now), isPastAudit: plan.isPastAudit)
  }

  package func hides(_ date: Instant) -> Bool { isPastAudit ? date > asOf : isDatedAfterAsOf(date) }

  /// True if a date was written after the as-of. A date later than the clock is wrong, as it was at a past as-of.
  func isDatedAfterAsOf(_ date: Instant) -> Bool { date > asOf && date <= clock }

  /// The last date whose rows are hidden; a row with a later date is reported as wrong.
  package var hidesRowsUntil: Instant {
    isPastAudit ? Instant(microseconds: SalesRows.shown.upperBound - 1) : clock
  }
}
