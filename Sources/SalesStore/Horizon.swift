import Postgres
import Reconciliation
import Run

/// What an audit does not know yet, because it came after its as-of.
///
/// A night that asks Apple for hours reads the shop's relations long after its as-of: what came meanwhile is the next night's.
/// What is dated later than the clock bears a wrong date, and is read to be reported.
package struct Horizon: Hashable, Sendable {
  package var asOf: Instant
  /// The clock when the relations are read.
  package var clock: Instant
  /// Whether the audit is of the past, which knows nothing later at all: no row with a wrong date either.
  package var isOfThePast: Bool

  package init(asOf: Instant, clock: Instant, isOfThePast: Bool = false) {
    (self.asOf, self.clock, self.isOfThePast) = (asOf, clock, isOfThePast)
  }

  /// Of an audit that reads the relations on this connection now; the later of the server's and this host's clock counts.
  package init(of plan: AuditPlan, on sales: borrowing BlockingConnection) throws(PostgresError) {
    let server = Instant(microseconds: try sales.execute("SELECT clock_timestamp()").single().timestamp(0))
    self.init(asOf: plan.asOf, clock: max(server, .now), isOfThePast: plan.isOfThePast)
  }

  /// Whether something of this date is not known yet.
  package func hides(_ date: Instant) -> Bool { date > asOf && (isOfThePast || date <= clock) }

  /// The last date after the as-of whose rows are not read. A later one is wrong, and is read to be reported: beyond the clock,
  /// or to an audit of the past beyond what a report can show.
  package var hidesRowsUntil: Instant {
    isOfThePast ? Instant(microseconds: SalesRows.shown.upperBound - 1) : clock
  }

  /// Whether it is only after the as-of that this date was written into a row that was there before, and not a wrong date.
  /// In an audit of the past whoever wrote it cannot be told from a wrong one.
  func isYetToBeWritten(_ date: Instant) -> Bool { !isOfThePast && hides(date) }
}
