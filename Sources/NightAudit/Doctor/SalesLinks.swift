import Postgres
import Reconciliation
import Run

/// Links between the shop's relations that a mistake in a view breaks for many rows at once.
struct SalesLinks {
  let settings: Settings
  /// The quoted schema of the relations.
  let schema: String

  /// From so many rows on a share says something.
  private static let fewestRows: Int64 = 20
  /// Deliveries without an order, of 100.
  private static let orphans: Int64 = 5

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    try users(connection) + deliveries(connection)
  }

  /// Orders that all belong to one user.
  private func users(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let row = try connection.execute(
      """
      SELECT (SELECT count(*) FROM (SELECT FROM \(schema).orders LIMIT \(Self.fewestRows)) AS some),
        EXISTS (SELECT FROM \(schema).orders o
          WHERE o.user_id::text IS DISTINCT FROM (SELECT f.user_id::text FROM \(schema).orders f LIMIT 1))
      """
    ).single()
    guard try row.int64(0) >= Self.fewestRows, try !row.bool(1) else { return [] }
    return [
      Diagnosis(
        subject: "\(settings.salesSchema).orders.user_id",
        warning: """
          is the same in all orders; select the column of the buyer in the view: purchases and deliveries are matched by user
          """)
    ]
  }

  /// Deliveries in the lookback whose order does not exist here.
  private func deliveries(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let row = try connection.execute(
      """
      SELECT count(*), count(*) FILTER (WHERE o.id IS NULL) FROM \(schema).deliveries d
      LEFT JOIN (SELECT DISTINCT order_id::text COLLATE "C" AS id FROM \(schema).orders) o
        ON o.id = d.order_id::text COLLATE "C"
      WHERE d.delivered_at >= now() - make_interval(secs => \(settings.lookback.microseconds / 1_000_000))
      """
    ).single()
    let (all, orphans) = (try row.int64(0), try row.int64(1))
    guard orphans >= Self.fewestRows, orphans * 100 > all * Self.orphans else { return [] }
    return [
      Diagnosis(
        subject: "\(settings.salesSchema).deliveries.order_id",
        warning: """
          \(orphans) of \(all) deliveries of the lookback have no order here, and each becomes a finding; leave deliveries of \
          other stores out of the view, or show their orders
          """)
    ]
  }
}
