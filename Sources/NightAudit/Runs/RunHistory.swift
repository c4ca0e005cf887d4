import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings

package enum RunHistory {
  /// The newest runs, newest first. Throws `PostgresError`, `SchemaError`.
  package static func list(_ settings: Settings, limit: Int) async throws -> [PastRun] {
    try await settings.withStore("night-audit runs", .snapshot) { connection in
      try connection.execute(
        "SELECT \(PastRun.columns) FROM night_audit.runs ORDER BY \(ForgottenRun.ran("runs")) DESC, run_id LIMIT $1",
        [.int(Int64(limit))]
      ).map { row throws(PostgresError) in try PastRun(row) }
    }
  }

  /// Compares two runs, the earlier as-of first. Throws `RunsError`, `PostgresError`, `SchemaError`.
  package static func difference(_ settings: Settings, _ first: String, _ second: String) async throws -> RunDifference
  {
    try await withBlockingThread { scope in
      let own = try scope.connect(settings.databaseURL, applicationName: "night-audit runs")
      try Migrator.requireCurrent(own)
      try own.begin(.snapshot)
      let runs = [try find(first, own), try find(second, own)]
        .sorted { ($0.asOf, $0.startedAt) < ($1.asOf, $1.startedAt) }
      let shop = try SalesStore.open(settings, scope, applicationName: "night-audit runs")
      let sales = try SalesRows(schema: settings.salesSchema)
      let difference = try RunDifference(from: runs[0], to: runs[1], sales: sales, shop: shop, on: own)
      own.rollback()
      return difference
    }
  }

  /// Finds a run, with or without a report. Throws `RunsError`, `PostgresError`, `SchemaError`.
  static func find(_ name: String, _ settings: Settings) async throws -> PastRun {
    try await settings.withStore("night-audit runs", .snapshot) { try find(name, needsReport: false, $0) }
  }

  private static func find(
    _ name: String, needsReport: Bool = true, _ connection: borrowing BlockingConnection
  ) throws -> PastRun {
    let night = "is_nightly AND complete IS NOT NULL"
    let newest = "ORDER BY as_of DESC, started_at DESC LIMIT 1"
    let condition: String
    if name == "latest" {
      condition = "\(night) AND $1 <> '' ORDER BY period_until DESC, as_of DESC, started_at DESC LIMIT 1"
    } else if name.utf8.count == 10, name.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/) != nil {
      condition = "\(night) AND period_until::text = $1 \(newest)"
    } else if name.wholeMatch(of: /[0-9A-Fa-f-]{4,36}/) != nil {
      condition = "starts_with(run_id::text, lower($1)) LIMIT 2"
    } else {
      throw RunsError.unknown(name)
    }
    let rows = try connection.execute(
      "SELECT \(PastRun.columns) FROM night_audit.runs WHERE \(condition)", [.text(name)])
    let found = try rows.map { row throws(PostgresError) in try PastRun(row) }
    if found.count > 1 { throw RunsError.ambiguous(name) }
    guard let run = found.first else { throw RunsError.unknown(name) }
    if needsReport, run.complete == nil { throw RunsError.unfinished(name, exitStatus: run.exitStatus) }
    return run
  }
}
