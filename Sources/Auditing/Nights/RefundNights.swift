import AuditStore
import Postgres
import Reconciliation
import Reporting
import Streams

/// Tonight's refunds, compared with the last complete night; never read as facts. Used by one thread at a time; not
/// `Sendable`.
final class RefundNights {
  /// Rows of refunds by transaction ID.
  private let tonight: SpillSorter
  /// As `tonight`; without content where tonight has no such row.
  private let differing: SpillSorter
  /// The end of the report's period. The night knows no later refund.
  private let end: Instant

  /// The state of a refund in the table `refund_nights`.
  private struct Kept: Equatable {
    var orderId: Identifier?
    var userId: Identifier?
    var productId: Identifier?
    var refunded: Money?
    var milliPercent: Int32?
    var refundedAt: Instant
    var reason: String?
    var app: String?
    var country: String?
    var businessDay: String?

    init(_ row: RefundRow, in dimensions: inout ReportDimensions) {
      (orderId, userId, productId) = (row.orderId, row.userId, row.productId)
      (refunded, milliPercent, refundedAt) = (row.refunded, row.milliPercent, row.refundedAt)
      (reason, app, country) = (row.reason, dimensions.app(row.bundleId), row.country?.code)
      businessDay = dimensions.businessDay(of: row.refundedAt)
    }

    /// nil for a row without a refund.
    ///
    /// - Parameter row: has the transaction ID in its first column.
    init?(_ row: borrowing CopyReader) throws(PostgresError) {
      guard let date = try row.optionalInstant(7) else { return nil }
      (orderId, userId, productId) = (try row.optionalId(1), try row.optionalId(2), try row.optionalId(3))
      (refunded, milliPercent, refundedAt) = (try row.optionalMoney(4), try row.optionalInt32(6), date)
      (reason, app, country) = (try row.optionalText(8), try row.optionalText(9), try row.optionalText(10))
      businessDay = try row.optionalText(11)
    }
  }

  /// - Parameter refunds: rows of all refunds before `end`, by transaction ID.
  init(_ refunds: SpillSorter, before end: Instant, temporaryDirectory: String) {
    (tonight, self.end) = (refunds, end)
    differing = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
  }

  /// Compares with the last complete night. `adjusted` receives refunds from before `period` that have another amount
  /// now, with or without an order. A purchase with another owner is not compared, because Apple's price counts without
  /// an order.
  ///
  /// - Parameter isWhole: false if a filter left refunds out.
  func compare(
    with base: BaseNight?, isWhole: Bool, asOf: Instant, refundedBefore period: Instant,
    in dimensions: ReportDimensions, on connection: borrowing BlockingConnection, adjusted: (ChangeRow) throws -> Void
  ) throws {
    var dimensions = dimensions
    // Differences are against the last stored row; the base night may be an earlier one.
    var before = try OrderedStream(
      connection.copyOut(
        """
        SELECT o.transaction_id, o.order_id, o.user_id, o.product_id, o.currency, o.refunded, o.milli_percent,
          o.refunded_at, o.reason, o.app, o.country, o.business_day::text, b.currency, b.refunded, b.refunded_at,
          (t.revoked_at IS NULL AND t.revocation_withdrawn_at <= \(asOf.sqlText)) IS TRUE, b.order_id
        FROM (
          SELECT DISTINCT ON (transaction_id) * FROM night_audit.refund_nights
          WHERE as_of < \(asOf.sqlText) ORDER BY transaction_id, as_of DESC) o
        LEFT JOIN LATERAL (
          SELECT * FROM night_audit.refund_nights r
          WHERE r.transaction_id = o.transaction_id AND r.as_of <= \(base?.asOf.sqlText ?? "'-infinity'::timestamptz")
          ORDER BY r.as_of DESC LIMIT 1) b ON true
        LEFT JOIN night_audit.transactions t
          ON t.transaction_id = o.transaction_id AND t.environment = '\(AppleEnvironment.production.rawValue)'
        ORDER BY o.transaction_id
        """)
    ) {
      (
        id: try $0.id(0), last: try Kept($0), base: try $0.optionalRefund(12), isWithdrawn: try $0.bool(15),
        baseOrder: try $0.optionalId(16)
      )
    }
    func adjust(
      _ id: Identifier, of owner: (orderId: Identifier?, userId: Identifier?), _ refund: JournalSale.Refund?,
      _ after: Money?
    ) throws {
      guard let refund, refund.date < period, let after, after.currency == refund.amount.currency,
        after != refund.amount
      else { return }
      try adjusted(
        ChangeRow(
          adjustedRefundOf: id, orderId: owner.orderId, userId: owner.userId, before: refund.amount, after: after,
          refundedAt: refund.date))
    }
    try tonight.restart()
    var last: Identifier?
    while true {
      let found = try tonight.next()
      // Stored rows before this one have no refund tonight, or have another transaction ID of the purchase.
      while let next = before.nextKey, found.map({ next < BorrowedText($0.key) }) ?? true, let gone = try before.next()
      {
        guard isWhole, let kept = gone.last, kept.refundedAt < end else { continue }
        try differing.add(key: gone.id.bytes, content: [])
        if gone.isWithdrawn, let refund = gone.base {
          try adjust(
            gone.id, of: (kept.orderId, kept.userId), refund, Money(minorUnits: 0, currency: refund.amount.currency))
        }
      }
      guard let found else { return }
      let id = Identifier(utf8: found.key)
      if id == last { continue }
      last = id
      let known = try before.nextKey == BorrowedText(found.key) ? before.next() : nil
      var reader = RecordReader(found.content)
      let row = try RefundRow(from: &reader)
      if known?.last != Kept(row, in: &dimensions) { try differing.add(key: found.key, content: found.content) }
      if let known, known.baseOrder == row.orderId {
        try adjust(id, of: (row.orderId, row.userId), known.base, row.refunded)
      }
    }
  }

  private static let columns = [
    "transaction_id", "order_id", "user_id", "product_id", "currency", "refunded", "milli_percent", "refunded_at",
    "reason", "app", "country", "business_day",
  ]

  func save(
    _ record: RunRecord, in dimensions: ReportDimensions, on connection: borrowing BlockingConnection
  ) throws {
    var dimensions = dimensions
    try connection.executeScript(
      """
      CREATE TEMPORARY TABLE refund (transaction_id text, order_id text, user_id text, product_id text, currency text,
        refunded numeric, milli_percent integer, refunded_at timestamptz, reason text, app text, country text,
        business_day text) ON COMMIT DROP
      """)
    _ = try connection.copyIn(into: try PostgresIdentifier("refund"), columns: Self.columns) { writer in
      while let found = try differing.next() {
        var refund: RefundRow?
        if !found.content.isEmpty {
          var reader = RecordReader(found.content)
          refund = try RefundRow(from: &reader)
        }
        let businessDay = refund.map { dimensions.businessDay(of: $0.refundedAt) }
        try writer.row { row throws(PostgresError) in
          try row.text(String(decoding: found.key, as: UTF8.self))
          try row.text(refund?.orderId?.text)
          try row.text(refund?.userId?.text)
          try row.text(refund?.productId.text)
          try row.text(refund?.refunded?.currency.code)
          try row.numeric(refund?.refunded?.minorUnits, decimals: Int(refund?.refunded?.currency.digits ?? 0))
          try row.int(refund?.milliPercent.map(Int64.init))
          try row.timestamp(refund?.refundedAt.microseconds)
          try row.text(refund?.reason)
          try row.text(refund.flatMap { dimensions.app($0.bundleId) })
          try row.text(refund?.country?.code)
          try row.text(businessDay)
        }
      }
    }
    // A repeated night replaces its rows.
    try connection.execute(
      """
      DELETE FROM night_audit.refund_nights
      WHERE run_id IN (SELECT run_id FROM night_audit.runs WHERE as_of = $1)
      """, [.timestamp(record.asOf.microseconds)])
    try connection.execute(
      """
      INSERT INTO night_audit.refund_nights (\(Self.columns.joined(separator: ", ")), as_of, run_id)
      SELECT transaction_id, order_id, user_id, product_id, currency, refunded, milli_percent, refunded_at, reason, app,
        country, business_day::date, $1, $2::uuid
      FROM refund
      """, [.timestamp(record.asOf.microseconds), .text(record.runId)])
  }
}

extension CopyReader {
  /// A refund in three columns: currency, amount, date.
  fileprivate func optionalRefund(_ column: Int) throws(PostgresError) -> JournalSale.Refund? {
    guard let amount = try optionalMoney(column), let date = try optionalInstant(column + 2) else { return nil }
    return JournalSale.Refund(amount: amount, date: date)
  }
}
