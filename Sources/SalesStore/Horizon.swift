import Postgres
import Reconciliation
import Run

/// What an audit does not know yet, because it came after its as-of.
///
/// A night that asks Apple for hours reads the shop's relations long after its as-of: what came meanwhile is the next night's.
/// What is dated later than the clock bears a wrong date, and is read to be reported.
package struct Horizon: Hashable, Sendable {
  package var asOf: Instant
  /// The clock when the relations are read; nil in an audit of the past, which knows nothing later at all.
  package var clock: Instant?

  package init(asOf: Instant, clock: Instant? = nil) {
    self.asOf = asOf
    self.clock = clock
  }

  /// Of an audit that reads the relations on this connection now; the later of the server's and this host's clock counts.
  package init(of plan: AuditPlan, on sales: borrowing BlockingConnection) throws(PostgresError) {
    self.init(asOf: plan.asOf)
    if plan.isOfThePast { return }
    let server = Instant(microseconds: try sales.execute("SELECT clock_timestamp()").single().timestamp(0))
    clock = max(server, .now)
  }

  /// Whether something of this date is not known yet.
  package func hides(_ date: Instant) -> Bool { date > asOf && clock.map { date <= $0 } ?? true }
}
