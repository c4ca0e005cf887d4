import AppStore
import Foundation
import Postgres
import Reconciliation
import Run
import Settings

/// The coverage of Apple's notifications: measured from stored transactions, and kept with each night.
extension FeedCoverage {
  /// Measures the swept sales of the last `recheck.refundWindow`, by the app's name. Apps without known sales are left out.
  package static func measured(
    _ settings: Settings, asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: FeedCoverage] {
    var coverage: [String: FeedCoverage] = [:]
    for app in settings.sweptApps {
      let cursors = try SweepTable(bundleId: app.bundleId).cursors(connection).filter(\.type.reportsSales)
      let start = SweptType.oneTimeCharge.query(start: asOf - settings.refundWindow, end: asOf, now: asOf).start
      guard let window = window(from: start, asOf: asOf, sweptUntil: cursors.map(\.sweptUntil)) else { continue }
      let row = try connection.execute(
        """
        SELECT count(*) FILTER (WHERE period IS NULL) + count(DISTINCT period),
          count(*) FILTER (WHERE period IS NULL AND is_reported) + count(DISTINCT period) FILTER (WHERE is_reported)
        FROM (
          SELECT t.notified_at <= $5 AS is_reported,
            CASE WHEN t.expires_at IS NOT NULL THEN concat_ws(' ', t.original_transaction_id,
              coalesce(t.web_order_line_item_id, concat_ws(' ', t.product_id, t.purchased_at))) END AS period
          FROM night_audit.transactions t
          WHERE t.bundle_id = $1 AND t.environment = $2 AND t.purchased_at >= $3 AND t.purchased_at < $4
            AND t.ownership IS DISTINCT FROM 'FAMILY_SHARED' AND \(TransactionTable.restoresAnotherID("t")) IS NOT TRUE) sales
        """,
        [
          .text(app.bundleId), .text(SweepTable.environment.rawValue), .timestamp(window.lowerBound.microseconds),
          .timestamp(window.upperBound.microseconds), .timestamp(asOf.microseconds),
        ]
      ).single()
      coverage[app.name] = FeedCoverage(sales: Int(try row.int64(0)), reported: Int(try row.int64(1)))
    }
    return coverage
  }

  /// The measurement of the newest night, by the app's name.
  package static func ofLastNight(
    on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: FeedCoverage] {
    let rows = try connection.execute(
      """
      SELECT feed_coverage::text FROM night_audit.runs
      WHERE is_nightly AND feed_coverage IS NOT NULL AND publication IS DISTINCT FROM 'forgotten'
      ORDER BY period_until DESC, started_at DESC LIMIT 1
      """)
    guard let text = try rows.first.map({ row throws(PostgresError) in try row.text(0) }) else { return [:] }
    return (try? JSONDecoder().decode([String: FeedCoverage].self, from: Data(text.utf8))) ?? [:]
  }

  /// The value of the column `feed_coverage`.
  static func stored(_ coverage: [String: FeedCoverage]) -> PostgresValue {
    .text((try? JSONEncoder().encode(coverage)).map { String(decoding: $0, as: UTF8.self) })
  }
}
