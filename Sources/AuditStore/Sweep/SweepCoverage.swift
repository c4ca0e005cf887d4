import AppStore
import Postgres
import Reconciliation
import Reporting
import Run
import Settings

/// Whether Apple's notifications are known up to an as-of. Uses only stored state, so every audit of the as-of agrees.
package struct SweepCoverage {
  package let settings: Settings
  package let plan: AuditPlan

  package init(settings: Settings, plan: AuditPlan) { (self.settings, self.plan) = (settings, plan) }

  /// Why a missing sweep makes the night incomplete, one sentence for each app.
  package func shortfalls(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [String] {
    let night = PublishedReport.Span(
      after: try PublishedReport.last(before: plan.asOf, day: plan.period.until, on: connection), until: plan.asOf)
    // Only a complete run sweeps.
    let isThere = try RunRecord.isThere(asOf: plan.asOf, on: connection)
    let isOfRun = isThere && !plan.selection.isNarrowing
    var reasons: [String] = []
    for app in settings.sweptApps where plan.selection.bundleId.map({ $0 == app.bundleId }) ?? true {
      let table = SweepTable(bundleId: app.bundleId)
      let skippedNotifications = try table.skippedNotifications(night, connection)
      var shortfalls = Set<String>()
      var known: [Instant?] = []
      let types = try table.cursors(connection).compactMap { cursor -> String? in
        var words = skippedNotifications[cursor.type] ?? []
        if cursor.isShort(of: plan.asOf, isOfRun: isOfRun) {
          let reason = cursor.lastAttempt == plan.asOf ? cursor.shortfall : nil
          words.insert(reason?.rawValue ?? Self.notSwept)
        }
        if words.isEmpty { return nil }
        shortfalls.formUnion(words)
        known.append(cursor.sweptUntil)
        return "\(cursor.type.rawValue): \(words.sorted().joined(separator: " and "))"
      }
      if !types.isEmpty { reasons.append(Self.sentence(app.name, types, shortfalls, known: known)) }
      let customers = try CustomerHistories(bundleId: app.bundleId).shortCount(
        night, since: plan.asOf - settings.stuckAfter, connection)
      if customers > 0 {
        reasons.append("The purchase histories of \(customers) customers of \(app.name) were not read to the end.")
      }
    }
    return reasons
  }

  private static let namedTypes = 3

  private static func sentence(_ app: String, _ types: [String], _ reasons: Set<String>, known: [Instant?]) -> String {
    let outage = SweepShortfall.unreachable.rawValue
    if reasons.contains(outage), reasons.isSubset(of: [outage, notSwept]) {
      let since = known.contains(nil) ? nil : known.compactMap(\.self).min()
      return
        "Apple could not be reached for \(app): refunds and sales\(since.map { " after \($0.text)" } ?? "") are not known."
    }
    let details =
      types.count <= namedTypes
      ? types.joined(separator: ", ") : "\(types.count) types: \(reasons.sorted().joined(separator: ", "))"
    // A run with filters does not sweep.
    let remedy = reasons.contains(notSwept) ? " Run night-audit recheck, then run this again." : ""
    return "Apple's notifications of \(app) were not read up to this night (\(details)).\(remedy)"
  }

  private static let notSwept = "not swept"
}

extension SweepTable {
  /// Skipped notifications and gaps that no report has mentioned, by type.
  func skippedNotifications(
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
  /// Customers with incomplete histories, or with skipped transactions that no report has mentioned. Customers
  /// unanswered since before `since` are left out: they are stuck, and their finding is open.
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
