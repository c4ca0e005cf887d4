import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore

/// Whether a night may be published without a person having looked at it, and what becomes of it otherwise.
extension Audit {
  /// The rows of a relation of the shop's that a night is measured by, as a query of one number.
  static func counted(
    _ relation: String, by date: String, _ sales: SalesRows, since: Instant
  ) throws(PostgresError) -> String {
    """
    SELECT count(*) FROM \(sales.schema).\(relation) r
    WHERE r.\(date) >= \(try PostgresLiteral.timestamp(since.microseconds)) AND \(try sales.isKnown("r.\(date)"))
    """
  }

  /// Counts the shop's rows, and says why the night is held; empty when it is not, and of a part of the orders.
  ///
  /// - Parameters:
  ///   - figures: of the findings; gets the counts of the shop's rows.
  ///   - read: the counts of parts that were audited elsewhere; nil: the shop's server is asked.
  func holdCauses(
    _ figures: inout NightFigures, _ record: RunRecord?, read: AuditPieces.Counts?, _ sales: SalesRows,
    _ rows: StoreRows
  ) throws -> [HoldCause] {
    guard !plan.selection.isNarrowing, record != nil || plan.isRehearsal else { return [] }
    let since = plan.rules.lookbackStart
    if let read {
      (figures.orders, figures.deliveries, figures.ordered) = (read.orders, read.deliveries, read.ordered.money)
    } else {
      let isOfLookback = "o.created_at >= \(try PostgresLiteral.timestamp(since.microseconds))"
      let totals = try SalesTotals(sales, where: isOfLookback, on: rows.sales)
      let query = try Audit.counted("deliveries", by: "delivered_at", sales, since: since)
      (figures.orders, figures.ordered) = (totals.orders, totals.money)
      figures.deliveries = Int(try rows.sales.execute(query).single().int64(0))
    }
    if record?.isAccepted == true { return [] }
    let precedent = try Plausibility.Precedent(before: plan.asOf, on: rows.own)
    return Plausibility(share: settings.holdShare, precedent: precedent).causes(figures)
  }

  /// Whether a run says what is open now: a narrowed view, or one of an earlier time than is already known, does not.
  func isNews(_ record: RunRecord, on recording: borrowing BlockingConnection) throws -> Bool {
    if plan.selection.isNarrowing { return false }
    let newest = try recording.execute(
      "SELECT max(as_of) FROM night_audit.findings_met WHERE run_id <> $1::uuid", [.text(record.runId)]
    ).single().optionalTimestamp(0)
    return newest.map { $0 <= plan.asOf.microseconds } ?? true
  }

  /// Whether a run is a night that later ones are compared with: none that is already saved is of a later instant.
  func isNewestNight(_ record: RunRecord, on recording: borrowing BlockingConnection) throws -> Bool {
    guard record.isNightly else { return false }
    return try recording.execute(
      """
      SELECT NOT EXISTS (SELECT FROM night_audit.findings_met m JOIN night_audit.runs r USING (run_id)
        WHERE r.is_nightly AND m.as_of > $1)
      """, [.timestamp(plan.asOf.microseconds)]
    ).single().bool(0)
  }

  // MARK: - Endings

  /// Puts the report where nobody takes it for a published one, and records nothing but that.
  ///
  /// - Returns: where it is.
  func hold(
    _ folder: ReportFolder, because causes: [HoldCause], _ mark: ReportMark, _ status: ExitStatus,
    _ record: RunRecord?, on recording: borrowing BlockingConnection?,
    _ finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> String {
    // What is no night does not take the place of one that is held.
    let destination: ReportFolder.Destination =
      record?.isNightly == false
      ? .heldApart(directory: settings.reportDirectory, asOf: plan.asOf.compactText)
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

  /// The folder is there: from now on the run is what it is.
  func settle(_ record: RunRecord, as directory: String, on recording: borrowing BlockingConnection?) throws {
    switch recording {
    case .none: return
    case .some(let connection): try record.published(as: ReportFolder.absolute(directory), on: connection)
    }
  }
}

extension FindingsThreshold {
  /// Whether a night's open critical findings are more than that.
  package func isExceeded(by findings: FindingsSummary) -> Bool {
    isExceeded(critical: findings.count(.critical), atStake: findings.atStake(.critical).minorUnits)
  }
}

extension Plausibility.Precedent {
  /// The last complete night before that; nil where there is none.
  package init?(before asOf: Instant, on own: borrowing BlockingConnection) throws(PostgresError) {
    // Nights of the first release have kept no figures: nothing is fewer than what nobody knows.
    let rows = try own.execute(
      """
      SELECT coalesce(lookback_orders, 0), coalesce(lookback_deliveries, 0) FROM night_audit.runs
      WHERE is_nightly AND complete AND as_of < $1 ORDER BY as_of DESC, started_at DESC LIMIT 1
      """, [.timestamp(asOf.microseconds)])
    guard let row = rows.first else { return nil }
    self.init(orders: Int(try row.int64(0)), deliveries: Int(try row.int64(1)))
  }
}
