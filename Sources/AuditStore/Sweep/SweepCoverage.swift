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
    var reasons: [String] = []
    for app in settings.sweptApps where plan.selection.bundleId.map({ $0 == app.bundleId }) ?? true {
      let short = try SweepTable(bundleId: app.bundleId).cursors(connection).filter { $0.isShort(of: plan.asOf) }
      if !short.isEmpty {
        let types = short.map { cursor in
          let reason = cursor.lastAttempt == plan.asOf ? cursor.shortfall : nil
          return "\(cursor.type.rawValue): \(reason?.rawValue ?? "not swept")"
        }
        reasons.append(
          "Apple's notifications of \(app.name) are not known up to this night (\(types.joined(separator: ", "))).")
      }
      let customers = try CustomerHistories(bundleId: app.bundleId).shortCount(asOf: plan.asOf, connection)
      if customers > 0 {
        reasons.append("The purchases of \(customers) customers of \(app.name) were asked for and not read to the end.")
      }
    }
    return reasons
  }
}

extension Settings {
  /// The apps whose side at Apple can be swept.
  var sweptApps: [App] { apps.filter { effectiveChannel(of: $0) == .serverApi } }
}

extension CustomerHistories {
  /// How many customers the run of this as-of asked about without coming to the end.
  func shortCount(asOf: Instant, _ connection: borrowing BlockingConnection) throws(PostgresError) -> Int {
    let rows = try connection.execute(
      """
      SELECT count(*) FROM night_audit.histories
      WHERE bundle_id = $1 AND environment = $2 AND last_attempt = $3 AND reason IS NOT NULL
      """, [.text(bundleId), .text(SweepTable.environment.rawValue), .timestamp(asOf.microseconds)])
    return Int(try rows.single().int64(0))
  }
}
