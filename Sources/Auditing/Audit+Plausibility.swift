import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings

/// Plausibility checks that decide whether a night is published or held for a person.
extension Audit {
  static func counted(
    _ relation: String, by date: String, _ sales: SalesRows, since: Instant
  ) throws(PostgresError) -> String {
    """
    SELECT count(*) FROM \(sales.schema).\(relation) r
    WHERE r.\(date) >= \(try PostgresLiteral.timestamp(since.microseconds)) AND \(try sales.isKnown("r.\(date)"))
    """
  }

  /// Counts the shop's rows into `figures`. Returns why the night is held; empty for a plausible or narrowed night.
  func holdCauses(
    _ figures: inout NightFigures, _ record: RunRecord?, read: AuditPieces.Counts?, _ sales: SalesRows,
    _ rows: StoreRows
  ) throws -> [HoldCause] {
    guard !plan.selection.isNarrowing, record != nil || plan.isRehearsal else { return [] }
    let since = plan.rules.lookbackStart
    if let read {
      (figures.orders, figures.deliveries) = (read.orders, read.deliveries)
      (figures.ordered, figures.ordersByCurrency) = (read.ordered.money, read.ordered.ordersByCurrency)
    } else {
      let lookbackCondition = "o.created_at >= \(try PostgresLiteral.timestamp(since.microseconds))"
      let totals = try SalesTotals(sales, where: lookbackCondition, on: rows.sales)
      let query = try Audit.counted("deliveries", by: "delivered_at", sales, since: since)
      (figures.orders, figures.ordered) = (totals.orders, totals.money)
      figures.ordersByCurrency = totals.ordersByCurrency
      figures.deliveries = Int(try rows.sales.execute(query).single().int64(0))
    }
    if record?.isAccepted == true { return [] }
    let precedent = try Plausibility.EarlierNights(before: plan.asOf, on: rows.own)
    let problems = precedent == nil ? plan.mappingProblems.map { HoldCause.mapping($0) } : []
    return problems + Plausibility(share: settings.holdShare, precedent: precedent).causes(figures)
  }
}

extension FindingsThreshold {
  package func isExceeded(by findings: FindingsSummary) -> Bool {
    isExceeded(critical: findings.count(.critical), atStake: findings.atStake(.critical).minorUnits)
  }
}

extension Plausibility.EarlierNights {
  /// The last complete night before `asOf`; nil if there is none.
  package init?(before asOf: Instant, on own: borrowing BlockingConnection) throws(PostgresError) {
    // Nights of the first release have no figures; 0 never counts as a decrease.
    let rows = try own.execute(
      """
      SELECT coalesce(lookback_orders, 0), coalesce(lookback_deliveries, 0) FROM night_audit.runs
      WHERE is_nightly AND complete AND as_of < $1 ORDER BY as_of DESC, started_at DESC LIMIT 1
      """, [.timestamp(asOf.microseconds)])
    guard let row = rows.first else { return nil }
    self.init(orders: Int(try row.int64(0)), deliveries: Int(try row.int64(1)))
  }
}
