import Postgres
import Reconciliation
import Run

/// Whether Apple's side is known up to an as-of: what is stored decides, so that every audit of the same as-of says the
/// same.
package struct SweepCoverage {
  package let settings: Settings
  package let plan: AuditPlan

  package init(settings: Settings, plan: AuditPlan) {
    self.settings = settings
    self.plan = plan
  }

  /// Why the night is incomplete for want of a sweep, one sentence for each app; empty when nothing is wanting.
  package func shortfalls(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [String] {
    let night = PublishedReport.Span(
      after: try PublishedReport.last(before: plan.asOf, day: plan.period.until, on: connection), until: plan.asOf)
    // Who only decides, or asks about a part, has swept nothing.
    let isThere = try RunRecord.isThere(asOf: plan.asOf, on: connection)
    let isOfRun = isThere && !plan.selection.isNarrowing
    var reasons: [String] = []
    for app in settings.sweptApps where plan.selection.bundleId.map({ $0 == app.bundleId }) ?? true {
      let table = SweepTable(bundleId: app.bundleId)
      let passedOver = try table.passedOver(night, connection)
      let types = try table.cursors(connection).compactMap { cursor -> String? in
        var words = passedOver[cursor.type] ?? []
        if cursor.isShort(of: plan.asOf, isOfRun: isOfRun) {
          let reason = cursor.lastAttempt == plan.asOf ? cursor.shortfall : nil
          words.insert(reason?.rawValue ?? "not swept")
        }
        return words.isEmpty ? nil : "\(cursor.type.rawValue): \(words.sorted().joined(separator: " and "))"
      }
      if !types.isEmpty {
        reasons.append(
          "Apple's notifications of \(app.name) are not known up to this night (\(types.joined(separator: ", "))).")
      }
      let customers = try CustomerHistories(bundleId: app.bundleId).shortCount(
        night, since: plan.asOf - settings.stuckAfter, connection)
      if customers > 0 {
        reasons.append("The purchases of \(customers) customers of \(app.name) were asked for and not read to the end.")
      }
    }
    return reasons
  }
}

extension Settings {
  /// The apps whose side at Apple can be swept.
  package var sweptApps: [App] { apps.filter { effectiveChannel(of: $0) == .serverApi } }
}

extension SweepTable {
  /// What sweeps have moved on past and no night has told yet, in words by type.
  func passedOver(
    _ night: PublishedReport.Span, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [SweptType: Set<String>] {
    let rows = try connection.execute(
      """
      SELECT notification_type, '\(SweepShortfall.notBelieved.rawValue)' FROM night_audit.disbelieved_notifications
      WHERE bundle_id = $1 AND passed_over_at <= $3 AND passed_over_at > coalesce($4, '-infinity')
      UNION
      SELECT notification_type, '\(SweepShortfall.outOfReach.rawValue)' FROM night_audit.sweep_gaps
      WHERE bundle_id = $1 AND environment = $2 AND as_of <= $3 AND as_of > coalesce($4, '-infinity')
      """, [.text(bundleId), .text(Self.environment.rawValue)] + night.parameters)
    var words: [SweptType: Set<String>] = [:]
    for row in rows {
      guard let type = SweptType(rawValue: try row.text(0)) else { continue }
      words[type, default: []].insert(try row.text(1))
    }
    return words
  }
}

extension CustomerHistories {
  /// How many customers the run of this as-of asked about without coming to the end, or sweeps that no night has told of
  /// moved on past something of theirs.
  ///
  /// - Parameter since: of whom Apple has told nothing since before, is stuck and no news: the finding that asks is open.
  func shortCount(
    _ night: PublishedReport.Span, since: Instant, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Int {
    let rows = try connection.execute(
      """
      SELECT count(*) FROM night_audit.histories WHERE bundle_id = $1 AND environment = $2
        AND (last_attempt = $3 AND reason IS NOT NULL AND coalesce(unanswered_since > $5, true)
          OR passed_over_at <= $3 AND passed_over_at > coalesce($4, '-infinity'))
      """,
      [.text(bundleId), .text(SweepTable.environment.rawValue)] + night.parameters + [.timestamp(since.microseconds)])
    return Int(try rows.single().int64(0))
  }
}
