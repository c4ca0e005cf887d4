import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore

/// Whether a night may be published without a person having looked at it, and what becomes of it otherwise.
extension Audit {
  /// The dispositions that accuse somebody: a finding of the same name stands on every order that has one.
  private static let accusing: [FindingKind] = [.paidNotDelivered, .partlyDelivered, .deliveredNotPaid]

  /// The rows of a relation of the shop's that a night is measured by, as a query of one number.
  static func counted(
    _ relation: String, by date: String, _ sales: SalesRows, since: Instant
  ) throws(PostgresError) -> String {
    """
    SELECT count(*) FROM \(sales.schema).\(relation) r
    WHERE r.\(date) >= \(try PostgresLiteral.timestamp(since.microseconds)) AND \(try sales.isKnown("r.\(date)"))
    """
  }

  /// What the night counts; nil in a run that is not recorded, or that lists a part only.
  ///
  /// - Parameters:
  ///   - read: how many rows parts that were audited elsewhere have counted; nil: the shop's server is asked.
  ///   - connection: in the snapshot of the shop's relations.
  ///   - recording: in the transaction in which tonight's findings wait.
  func figures(
    _ record: RunRecord?, read: AuditPieces.Counts?, _ sales: SalesRows, shop connection: borrowing BlockingConnection,
    recording: borrowing BlockingConnection?
  ) throws -> NightFigures? {
    guard let record, !plan.selection.isNarrowing else { return nil }
    func count(_ relation: String, _ date: String) throws(PostgresError) -> Int {
      let query = try Audit.counted(relation, by: date, sales, since: plan.rules.lookbackStart)
      return Int(try connection.execute(query).single().int64(0))
    }
    var figures = NightFigures(
      orders: try read?.orders ?? count("orders", "created_at"),
      deliveries: try read?.deliveries ?? count("deliveries", "delivered_at"))
    switch recording {
    case .none: return nil
    case .some(let connection):
      try Audit.count(&figures, of: record, isNews: isNews(record, on: connection), connection)
    }
    return figures
  }

  private static func count(
    _ figures: inout NightFigures, of record: RunRecord, isNews: Bool, _ recording: borrowing BlockingConnection
  ) throws(PostgresError) {
    let row = try recording.execute(
      """
      SELECT count(*) FILTER (WHERE t.kind = ANY ($2)),
        count(*) FILTER (WHERE t.kind = ANY ($2) AND (f.finding_id IS NULL OR f.closed_at < $1)),
        count(*) FILTER (WHERE t.kind = 'bad_row' AND t.order_id IS NOT NULL AND t.receipt_id IS NULL
          AND t.delivery_id IS NULL)
      FROM tonight t LEFT JOIN night_audit.findings f USING (finding_id)
      """, [.timestamp(record.asOf.microseconds), .textArray(accusing.map(\.rawValue))]
    ).single()
    figures.accused = Int(try row.int64(0))
    figures.badRows = Int(try row.int64(2))
    // An audit of an earlier time than is already known opens and closes nothing.
    guard isNews else { return }
    figures.newlyAccused = Int(try row.int64(1))
    let open = try recording.execute(
      """
      SELECT count(*), count(*) FILTER (WHERE t.finding_id IS NULL)
      FROM night_audit.findings f LEFT JOIN tonight t USING (finding_id)
      WHERE f.closed_at IS NULL AND f.opened_at < $1 AND f.kind <> $2
      """,
      // What Apple's reports alone say tells nothing of the shop's tables, and a correction of theirs may close all of it.
      [.timestamp(record.asOf.microseconds), .text(FindingKind.unreportedByShop.rawValue)]
    ).single()
    figures.openBefore = Int(try open.int64(0))
    figures.closing = Int(try open.int64(1))
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

  /// Why the night is held; empty when it is not.
  func holdCauses(
    _ figures: NightFigures?, _ record: RunRecord?, on own: borrowing BlockingConnection
  ) throws -> [HoldCause] {
    guard let figures, let record, !record.isAccepted else { return [] }
    let precedent = try Plausibility.Precedent(before: plan.asOf, on: own)
    return Plausibility(share: settings.holdShare, precedent: precedent).causes(figures)
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
