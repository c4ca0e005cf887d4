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

  /// True unless the run is narrowed or an earlier run has a later as-of: only then are findings updated.
  func isNews(_ record: RunRecord, on recording: borrowing BlockingConnection) throws -> Bool {
    if plan.selection.isNarrowing { return false }
    let newest = try recording.execute(
      "SELECT max(as_of) FROM night_audit.findings_met WHERE run_id <> $1::uuid", [.text(record.runId)]
    ).single().optionalTimestamp(0)
    return newest.map { $0 <= plan.asOf.microseconds } ?? true
  }

  /// True for a nightly run with no saved nightly run of a later as-of.
  func isNewestNight(_ record: RunRecord, on recording: borrowing BlockingConnection) throws -> Bool {
    guard record.isNightly else { return false }
    return try recording.execute(
      """
      SELECT NOT EXISTS (SELECT FROM night_audit.findings_met m JOIN night_audit.runs r USING (run_id)
        WHERE r.is_nightly AND m.as_of > $1)
      """, [.timestamp(plan.asOf.microseconds)]
    ).single().bool(0)
  }

  // MARK: - Publishing

  /// Moves the report to the folder of held nights, records only that, and returns the path.
  func hold(
    _ folder: ReportFolder, because causes: [HoldCause], _ mark: ReportMark, _ status: ExitStatus,
    _ record: RunRecord?, on recording: borrowing BlockingConnection?,
    _ finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> String {
    // A run that is not nightly must not replace a held night.
    let destination: ReportFolder.Destination =
      record?.isNightly == false
      ? .heldSeparately(directory: settings.reportDirectory, asOf: plan.asOf.compactText)
      : .held(directory: settings.reportDirectory, date: plan.period.until)
    let place = try folder.redirected(to: destination)
    try finishing(status, place)
    let content = place.digest ?? ""
    let path: String
    switch recording {
    case .none: return try place.publish().path
    case .some(let connection):
      connection.rollback()
      try record?.lock?.requireStillHeld(on: connection)
      path = try place.publish().path
      try record?.held(
        because: causes.map(\.description), mark: mark, directory: ReportFolder.absolute(path),
        content: content, exitStatus: status.rawValue, on: connection)
    }
    return path
  }

  func settle(_ record: RunRecord, as directory: String, on recording: borrowing BlockingConnection?) throws {
    switch recording {
    case .none: return
    case .some(let connection): try record.published(as: ReportFolder.absolute(directory), on: connection)
    }
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
