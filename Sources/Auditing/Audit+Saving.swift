import AuditStore
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Settings
import Streams

/// Saves the results of a run, on a connection of its own.
extension Audit {
  /// Saves all results and commits, just before the report appears.
  func save(
    _ collector: AuditCollector, _ refunds: RefundNights, _ claims: SpillFile?, _ journal: NightJournal?,
    _ record: RunRecord, _ summary: SummaryFacts, _ mark: ReportMark, _ status: ExitStatus, _ figures: NightFigures,
    folder: ReportFolder, in recording: borrowing BlockingConnection
  ) throws {
    // Taken before any finding changes: waits for people who are writing, then makes them wait.
    try Trail.lockDecisions(on: recording)
    if try isNews(record, on: recording) {
      try FindingsHistory.apply(asOf: plan.asOf, runId: record.runId, on: recording)
      if let claims { try ClaimsTable.apply(claims, on: recording) }
    }
    // A manual report of a later as-of updates the open findings, but the next night is compared with this one.
    if try isNewestNight(record, on: recording) {
      try FindingsHistory.saveNight(record, on: recording)
      try collector.nights.save(
        record, lookbackStart: plan.rules.lookbackStart, in: dimensions, on: recording)
      if !collector.refunds.areStored { try refunds.save(record, in: dimensions, on: recording) }
    } else if record.isNightly {
      try FindingsHistory.saveOwnFindings(record, on: recording)
    }
    if let journal, journal.isPosting, summary.isComplete { try journal.save(record, on: recording) }
    if record.isNightly {
      try record.save(summary.findings, on: recording)
      try record.save(collector.totals, on: recording)
      try ReportedDays.save(collector.days, adjustments: summary.adjustments, record: record, on: recording)
    }
    if record.isNightly, !settings.deliver.isEmpty {
      let folder = ReportFolder.absolute(folder.finalPath)
      let targets = settings.deliver.filter { !$0.isSentToPeople || settings.notifiesPeople(of: summary) }
      try DispatchTable.owe(targets.map(\.name), directory: folder, runId: record.runId, on: recording)
    }
    try record.complete(
      totals: collector.totals, summary: summary, directory: ReportFolder.absolute(folder.finalPath),
      content: folder.digest ?? "", mark: mark, exitStatus: status.rawValue,
      lookback: plan.selection.isNarrowing ? nil : (figures.orders, figures.deliveries),
      journalSince: journal?.firstDay, on: recording)
    try record.lock?.requireStillTaken(on: recording)
    try recording.commit()
    // Checked again because the commit may have waited.
    try record.lock?.requireStillTaken(on: recording)
  }

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
      try record?.lock?.requireStillTaken(on: connection)
      path = try place.publish().path
      try record?.held(
        because: causes.map(\.description), mark: mark, directory: ReportFolder.absolute(path),
        content: content, exitStatus: status.rawValue, on: connection)
    }
    return path
  }

  /// True unless the run is narrowed or an earlier run has a later as-of: only then are findings updated.
  func isNews(_ record: RunRecord, on recording: borrowing BlockingConnection) throws -> Bool {
    if plan.selection.isNarrowing { return false }
    let newest = try recording.execute(
      "SELECT max(as_of) FROM night_audit.findings_met WHERE run_id <> $1::uuid", [.text(record.runId)]
    ).single().optionalTimestamp(0)
    return newest.map { $0 <= plan.asOf.microseconds } ?? true
  }

  /// True for a nightly run with no saved nightly run of a later as-of, or of the same as-of and a later day. A run of
  /// an earlier day knows no refunds of that later day.
  func isNewestNight(_ record: RunRecord, on recording: borrowing BlockingConnection) throws -> Bool {
    guard record.isNightly else { return false }
    return try recording.execute(
      """
      SELECT NOT EXISTS (SELECT FROM night_audit.findings_met m JOIN night_audit.runs r USING (run_id)
        WHERE r.is_nightly AND (m.as_of > $1 OR m.as_of = $1 AND r.period_until > $2::text::date))
      """, [.timestamp(plan.asOf.microseconds), .text(plan.period.until)]
    ).single().bool(0)
  }
}

extension Settings {
  /// True if a notification is sent. The first night has no base, so all of it is new.
  fileprivate func notifiesPeople(of summary: SummaryFacts) -> Bool {
    switch notifyOn {
    case .always: true
    case .change: !summary.isComplete || summary.changes.since == nil || summary.changes.criticals > 0
    }
  }
}

extension Optional where Wrapped: ~Copyable {
  /// Lends the value to `body`, if there is one.
  @discardableResult
  borrowing func passed<Result>(to body: (borrowing Wrapped) throws -> Result) rethrows -> Result? {
    switch self {
    case .some(let value): try body(value)
    case .none: nil
    }
  }
}
