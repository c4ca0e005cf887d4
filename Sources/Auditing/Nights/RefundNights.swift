import AuditStore
import Postgres
import Reconciliation
import Reporting
import Run
import Streams

/// Tonight's refunds, compared with the last complete night; never read as facts.
final class RefundNights {
  /// Rows of refunds by transaction ID.
  private let tonight: SpillSorter
  /// As `tonight`; without content where tonight has no such row.
  private let differing: SpillSorter
  /// The period of the report. The night knows no later refund.
  private let period: Period

  /// A row of the table `refund_nights`. Without a date, it has no refund.
  private struct Kept: Equatable {
    var transactionId: Identifier
    var orderId: Identifier?
    var userId: Identifier?
    var productId: Identifier?
    var refunded: Money?
    var milliPercent: Int32?
    var refundedAt: Instant?
    var reason: String?
    var app: String?
    var country: String?
    var businessDay: String?

    static let columns: [TableColumn<Kept>] = [
      .text("transaction_id") { $0.transactionId.text }, .text("order_id") { $0.orderId?.text },
      .text("user_id") { $0.userId?.text }, .text("product_id") { $0.productId?.text },
      .text("currency") { $0.refunded?.currency.code }, .money("refunded") { $0.refunded },
      .integer("milli_percent") { $0.milliPercent }, .instant("refunded_at") { $0.refundedAt },
      .text("reason") { $0.reason }, .text("app") { $0.app }, .text("country") { $0.country },
      .text("business_day", as: "date") { $0.businessDay },
    ]

    init(without transactionId: Identifier) { self.transactionId = transactionId }

    init(_ transactionId: Identifier, _ row: RefundRow, in dimensions: inout ReportDimensions) {
      self.transactionId = transactionId
      (orderId, userId, productId) = (row.orderId, row.userId, row.productId)
      (refunded, milliPercent, refundedAt) = (row.refunded, row.milliPercent, row.refundedAt)
      (reason, app, country) = (row.reason, dimensions.app(row.bundleId), row.country?.code)
      businessDay = dimensions.businessDay(of: row.refundedAt)
    }

    /// - Parameter first: the place of the first column.
    init(_ row: borrowing CopyReader, from first: Int = 0) throws(PostgresError) {
      transactionId = try row.id(first)
      (orderId, userId) = (try row.optionalId(first + 1), try row.optionalId(first + 2))
      (productId, refunded) = (try row.optionalId(first + 3), try row.optionalMoney(first + 4))
      (milliPercent, refundedAt) = (try row.optionalInt32(first + 6), try row.optionalInstant(first + 7))
      (reason, app) = (try row.optionalText(first + 8), try row.optionalText(first + 9))
      (country, businessDay) = (try row.optionalText(first + 10), try row.optionalText(first + 11))
    }

    /// The row of an outer join; nil if there is none.
    static func optional(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) -> Kept? {
      if try row.isNull(first) { return nil }
      return try Kept(row, from: first)
    }

    static func selection(_ alias: String) -> String {
      columns.map { "\(alias).\($0.selection)" }.joined(separator: ", ")
    }
  }

  /// - Parameter refunds: rows of all refunds before the end of the period, by transaction ID.
  init(_ refunds: SpillSorter, _ period: Period, temporaryDirectory: String) {
    (tonight, self.period) = (refunds, period)
    differing = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
  }

  /// Compares with the last complete night, and a refund that is newer with the last night of an earlier day, which
  /// listed it although it was incomplete. `adjusted` receives refunds from before the period that have another amount
  /// now, with or without an order. A purchase with another owner is not compared, because Apple's price counts without
  /// an order.
  ///
  /// - Parameter selection: the filter of tonight's refunds. It applies to withdrawn refunds, too.
  func compare(
    with base: BaseNight?, _ selection: Selection, asOf: Instant, in dimensions: ReportDimensions,
    on connection: borrowing BlockingConnection, adjusted: (ChangeRow) throws -> Void
  ) throws {
    var dimensions = dimensions
    let baseInstant = base?.asOf.sqlText ?? "'-infinity'::timestamptz"
    let firstDay = try PostgresLiteral.text(period.since)
    let app = dimensions.app(selection.bundleId)
    func isSelected(_ refund: Kept) -> Bool {
      (selection.bundleId == nil || refund.app == app)
        && selection.includes(
          orderId: refund.orderId, userId: refund.userId, productId: refund.productId, bundleId: selection.bundleId)
    }
    let few = Self.few(selection)
    // Differences are against the last stored row; the base night may be an earlier one.
    var before = try OrderedStream(
      connection.copyOut(
        """
        SELECT \(Kept.selection("o")), \(Kept.selection("b")),
          (t.revoked_at IS NULL AND t.revocation_withdrawn_at <= \(asOf.sqlText)
            OR t.revoked_at >= \(period.end.sqlText)) IS TRUE
        FROM (
          SELECT DISTINCT ON (transaction_id) * FROM night_audit.refund_nights
          WHERE as_of < \(asOf.sqlText) AND \(few.condition) ORDER BY transaction_id, as_of DESC) o
        LEFT JOIN LATERAL (
          SELECT * FROM night_audit.refund_nights r
          WHERE r.transaction_id = o.transaction_id AND (
            r.as_of <= \(baseInstant) OR r.as_of < \(asOf.sqlText) AND EXISTS (
              SELECT FROM night_audit.runs n WHERE n.run_id = r.run_id AND n.period_until < \(firstDay)::date))
          ORDER BY r.as_of > \(baseInstant), r.as_of DESC LIMIT 1) b ON true
        LEFT JOIN night_audit.transactions t
          ON t.transaction_id = o.transaction_id AND t.environment = '\(AppleEnvironment.production.rawValue)'
        ORDER BY o.transaction_id
        """, ids: few.ids)
    ) {
      (
        last: try Kept($0), base: try Kept.optional($0, from: Kept.columns.count),
        isWithdrawn: try $0.bool(2 * Kept.columns.count)
      )
    }
    func adjust(
      _ id: Identifier, of owner: (orderId: Identifier?, userId: Identifier?), _ base: Kept,
      _ change: ChangeRow.RefundChange
    ) throws {
      guard let date = base.refundedAt, date < period.start, let amount = base.refunded else { return }
      let rows = ChangeRow.adjustedRefund(
        of: id, orderId: owner.orderId, userId: owner.userId, amount, change, refundedAt: date)
      for row in rows { try adjusted(row) }
    }
    try tonight.restart()
    var last: Identifier?
    while true {
      let found = try tonight.next()
      // Stored rows before this one have no refund tonight, or have another transaction ID of the purchase.
      while let next = before.nextKey, found.map({ next < BorrowedText($0.key) }) ?? true, let gone = try before.next()
      {
        let id = gone.last.transactionId
        if let date = gone.last.refundedAt, date < period.end, isSelected(gone.last) {
          try differing.add(key: id.bytes, content: [])
        }
        // A night since the base night may have stored already that the refund is gone.
        if gone.isWithdrawn, let base = gone.base, isSelected(base) {
          try adjust(id, of: (base.orderId, base.userId), base, .withdrawn)
        }
      }
      guard let found else { return }
      let id = Identifier(utf8: found.key)
      if id == last { continue }
      last = id
      let known = try before.nextKey == BorrowedText(found.key) ? before.next() : nil
      var reader = RecordReader(found.content)
      let row = try RefundRow(from: &reader)
      if known?.last != Kept(id, row, in: &dimensions) { try differing.add(key: found.key, content: found.content) }
      guard let base = known?.base, let date = base.refundedAt, let amount = row.refunded else { continue }
      let owner = (orderId: row.orderId, userId: row.userId)
      if date < row.refundedAt {
        // A refund of a later date is another refund, which the report of that date lists in full.
        try adjust(id, of: owner, base, .replaced(by: amount))
      } else if base.orderId == row.orderId, base.refunded != amount {
        let isSameShare = base.milliPercent == row.milliPercent && date == row.refundedAt
        try adjust(id, of: owner, base, isSameShare ? .payment(amount) : .share(amount))
      }
    }
  }

  /// SQL: the stored refunds of the selected order and user, whose IDs the query reads as `ids`; without them, all.
  private static func few(_ selection: Selection) -> (condition: String, ids: [Identifier]) {
    if !selection.isOfOrderOrUser { return ("true", []) }
    let condition = """
      transaction_id IN (
        SELECT transaction_id FROM night_audit.refund_nights
        WHERE order_id IN (SELECT id FROM ids) OR user_id IN (SELECT id FROM ids))
      """
    return (condition, [selection.orderId, selection.userId].compactMap(\.self))
  }

  func save(_ record: RunRecord, in dimensions: ReportDimensions, on connection: borrowing BlockingConnection) throws {
    var dimensions = dimensions
    try NightTable.replace("refund_nights", Kept.columns, of: record, on: connection) {
      guard let found = try differing.next() else { return nil }
      let id = Identifier(utf8: found.key)
      if found.content.isEmpty { return Kept(without: id) }
      var reader = RecordReader(found.content)
      return Kept(id, try RefundRow(from: &reader), in: &dimensions)
    }
  }
}
