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

    init(_ row: borrowing CopyReader) throws(PostgresError) {
      transactionId = try row.id(0)
      (orderId, userId, productId) = (try row.optionalId(1), try row.optionalId(2), try row.optionalId(3))
      (refunded, milliPercent) = (try row.optionalMoney(4), try row.optionalInt32(6))
      (refundedAt, reason) = (try row.optionalInstant(7), try row.optionalText(8))
      (app, country, businessDay) = (try row.optionalText(9), try row.optionalText(10), try row.optionalText(11))
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
    let isOfFew = selection.isOfOrderOrUser
    let ofFew = """
      AND transaction_id IN (
        SELECT transaction_id FROM night_audit.refund_nights
        WHERE order_id IN (SELECT id FROM ids) OR user_id IN (SELECT id FROM ids))
      """
    // Differences are against the last stored row; the base night may be an earlier one.
    var before = try OrderedStream(
      connection.copyOut(
        """
        SELECT \(Kept.columns.map { "o.\($0.selection)" }.joined(separator: ", ")), b.currency, b.refunded, b.refunded_at,
          (t.revoked_at IS NULL AND t.revocation_withdrawn_at <= \(asOf.sqlText)) IS TRUE, b.order_id
        FROM (
          SELECT DISTINCT ON (transaction_id) * FROM night_audit.refund_nights
          WHERE as_of < \(asOf.sqlText) \(isOfFew ? ofFew : "") ORDER BY transaction_id, as_of DESC) o
        LEFT JOIN LATERAL (
          SELECT * FROM night_audit.refund_nights r
          WHERE r.transaction_id = o.transaction_id AND (
            r.as_of <= \(baseInstant) OR r.as_of < \(asOf.sqlText) AND EXISTS (
              SELECT FROM night_audit.runs n WHERE n.run_id = r.run_id AND n.period_until < \(firstDay)::date))
          ORDER BY r.as_of > \(baseInstant), r.as_of DESC LIMIT 1) b ON true
        LEFT JOIN night_audit.transactions t
          ON t.transaction_id = o.transaction_id AND t.environment = '\(AppleEnvironment.production.rawValue)'
        ORDER BY o.transaction_id
        """, ids: isOfFew ? [selection.orderId, selection.userId].compactMap(\.self) : [])
    ) {
      (
        last: try Kept($0), base: try $0.optionalRefund(13, currency: 12), isWithdrawn: try $0.bool(15),
        baseOrder: try $0.optionalId(16)
      )
    }
    func adjust(
      _ id: Identifier, of owner: (orderId: Identifier?, userId: Identifier?), _ refund: JournalSale.Refund?,
      _ after: Money?, isListedAnew: Bool = false
    ) throws {
      guard let refund, refund.date < period.start, let after, after.currency == refund.amount.currency,
        after != refund.amount || isListedAnew
      else { return }
      try adjusted(
        ChangeRow(
          adjustedRefundOf: id, orderId: owner.orderId, userId: owner.userId, before: refund.amount,
          after: isListedAnew ? Money(minorUnits: 0, currency: after.currency) : after, refundedAt: refund.date,
          replacement: isListedAnew ? after : nil))
    }
    try tonight.restart()
    var last: Identifier?
    while true {
      let found = try tonight.next()
      // Stored rows before this one have no refund tonight, or have another transaction ID of the purchase.
      while let next = before.nextKey, found.map({ next < BorrowedText($0.key) }) ?? true, let gone = try before.next()
      {
        guard let date = gone.last.refundedAt, date < period.end, isSelected(gone.last) else { continue }
        try differing.add(key: gone.last.transactionId.bytes, content: [])
        if gone.isWithdrawn, let refund = gone.base {
          try adjust(
            gone.last.transactionId, of: (gone.last.orderId, gone.last.userId), refund,
            Money(minorUnits: 0, currency: refund.amount.currency))
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
      // A refund of a later date is another refund, which the report of that date lists in full.
      let isListedAnew = known?.base.map { $0.date < row.refundedAt } ?? false
      if let known, isListedAnew || known.baseOrder == row.orderId {
        try adjust(id, of: (row.orderId, row.userId), known.base, row.refunded, isListedAnew: isListedAnew)
      }
    }
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

extension CopyReader {
  /// A refund in two columns, amount and date.
  fileprivate func optionalRefund(_ column: Int, currency: Int) throws(PostgresError) -> JournalSale.Refund? {
    guard let amount = try optionalMoney(column, currency: currency), let date = try optionalInstant(column + 1)
    else { return nil }
    return JournalSale.Refund(amount: amount, date: date)
  }
}
