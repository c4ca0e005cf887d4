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

// MARK: - Refunds of earlier nights

extension RefundNights {
  /// A refund as a night stored it, for one transaction ID of a purchase.
  private struct Stored {
    var asOf: Instant
    /// True if later nights compare with it.
    var isBeforeLimit: Bool
    /// nil: there was none any more.
    var row: RefundRow?

    /// Rows of one purchase sort by this: the newest one before the limit, else the first one.
    var rank: (Int, Int64, Int) {
      (isBeforeLimit ? 0 : 1, isBeforeLimit ? -asOf.microseconds : asOf.microseconds, row == nil ? 1 : 0)
    }

    func write(to record: inout RecordBytes) {
      record.put(Optional(asOf))
      record.put(isBeforeLimit)
      record.put(row != nil)
      row?.write(to: &record)
    }

    init(asOf: Instant, isBeforeLimit: Bool, row: RefundRow?) {
      (self.asOf, self.isBeforeLimit, self.row) = (asOf, isBeforeLimit, row)
    }

    init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
      guard let asOf = try record.optionalInstant() else { throw RecordReader.Mismatch() }
      self.asOf = asOf
      isBeforeLimit = try record.flag()
      row = try record.flag() ? RefundRow(from: &record) : nil
    }
  }

  /// Refunds as earlier nights stored them, also those that Apple has withdrawn or replaced since. A refund that no
  /// night has stored is as tonight.
  ///
  /// - Parameters:
  ///   - rows: tonight's rows with all transaction IDs of their purchases, which the result has, too.
  ///   - limit: nights of later days compare with the rows that were stored before it.
  static func stored(
    insteadOf rows: SpillSorter, before limit: Instant, _ plan: AuditPlan, temporaryDirectory: String,
    on connection: borrowing BlockingConnection
  ) throws -> SpillSorter {
    func sorter() -> SpillSorter { SpillSorter(directory: temporaryDirectory, budget: 1 << 20) }
    let (purchases, stored, result) = (sorter(), sorter(), sorter())
    while let found = try rows.next() {
      let tonight = try decoded(found.content)
      for id in tonight.ids { try purchases.add(key: id.bytes, content: tonight.row.transactionId.bytes) }
    }
    try rows.restart()
    var record = RecordBytes()
    func add(_ row: RefundRow, _ ids: [Identifier]) throws {
      record.clear()
      row.write(to: &record)
      record.put(ids) { $1.put($0) }
      try result.add(row.transactionId, record)
    }

    // By transaction ID: the stored refunds of tonight's purchases, and those of which tonight has none.
    var entry = RecordBytes()
    var purchase = try nextPair(purchases)
    var earlier = try storedRows(before: limit, asOf: plan.asOf, plan.selection, on: connection)
    while let next = try earlier.next() {
      while let known = purchase, known.id < next.id { purchase = try nextPair(purchases) }
      if let known = purchase, known.id == next.id {
        entry.clear()
        next.stored.write(to: &entry)
        try stored.add(known.shownId, entry)
      } else if let row = next.stored.row, row.refundedAt < plan.period.end,
        plan.selection.includes(
          orderId: row.orderId, userId: row.userId, productId: row.productId, bundleId: row.bundleId)
      {
        try add(row, [row.transactionId])
      }
    }

    // By the transaction ID that tonight's row shows.
    var waiting = try nextStored(stored)
    while let found = try rows.next() {
      let id = Identifier(utf8: found.key)
      var best: Stored?
      while let next = waiting, next.shownId <= id {
        if next.shownId == id, best.map({ next.stored.rank < $0.rank }) ?? true { best = next.stored }
        waiting = try nextStored(stored)
      }
      guard let best else {
        try result.add(key: found.key, content: found.content)
        continue
      }
      guard var row = best.row, row.refundedAt < plan.period.end else { continue }
      let tonight = try decoded(found.content)
      (row.purchasedAt, row.bundleId) = (tonight.row.purchasedAt, tonight.row.bundleId)
      if row.orderId == tonight.row.orderId { row.disposition = tonight.row.disposition }
      try add(row, tonight.ids)
    }
    return result
  }

  private static func decoded(_ content: UnsafeRawBufferPointer) throws -> (row: RefundRow, ids: [Identifier]) {
    var reader = RecordReader(content)
    let row = try RefundRow(from: &reader)
    return (row, try reader.list { (reader) throws(RecordReader.Mismatch) in try reader.id() })
  }

  private static func nextPair(_ purchases: SpillSorter) throws -> (id: Identifier, shownId: Identifier)? {
    guard let found = try purchases.next() else { return nil }
    return (Identifier(utf8: found.key), Identifier(utf8: found.content))
  }

  private static func nextStored(_ sorter: SpillSorter) throws -> (shownId: Identifier, stored: Stored)? {
    guard let found = try sorter.next() else { return nil }
    var reader = RecordReader(found.content)
    return (Identifier(utf8: found.key), try Stored(from: &reader))
  }

  /// The newest row of each transaction ID before the limit, else its first row.
  private static func storedRows(
    before limit: Instant, asOf: Instant, _ selection: Selection, on connection: borrowing BlockingConnection
  ) throws -> OrderedStream<(id: Identifier, stored: Stored)> {
    let (isBefore, few) = ("as_of < \(limit.sqlText)", Self.few(selection))
    return try OrderedStream(
      connection.copyOut(
        """
        SELECT \(Kept.selection("o")), t.purchased_at, t.bundle_id, (
            SELECT n.disposition FROM night_audit.order_nights n
            WHERE n.order_id = o.order_id AND n.as_of <= \(asOf.sqlText) ORDER BY n.as_of DESC LIMIT 1),
          o.as_of, o.\(isBefore)
        FROM (
          SELECT DISTINCT ON (transaction_id) * FROM night_audit.refund_nights
          WHERE as_of <= \(asOf.sqlText) AND \(few.condition)
          ORDER BY transaction_id, \(isBefore) DESC, CASE WHEN \(isBefore) THEN as_of END DESC, as_of) o
        LEFT JOIN night_audit.transactions t
          ON t.transaction_id = o.transaction_id AND t.environment = '\(AppleEnvironment.production.rawValue)'
        ORDER BY o.transaction_id
        """, ids: few.ids)
    ) {
      let (kept, first) = (try Kept($0), Kept.columns.count)
      var stored = Stored(
        asOf: Instant(microseconds: try $0.timestamp(first + 3)), isBeforeLimit: try $0.bool(first + 4), row: nil)
      if let productId = kept.productId, let refundedAt = kept.refundedAt {
        var row = RefundRow(
          transactionId: kept.transactionId, orderId: kept.orderId, userId: kept.userId, productId: productId,
          refunded: kept.refunded, milliPercent: kept.milliPercent, purchasedAt: try $0.optionalInstant(first),
          refundedAt: refundedAt, reason: kept.reason,
          disposition: try $0.optionalText(first + 2).flatMap(Disposition.init(rawValue:)))
        (row.bundleId, row.country) = (try $0.optionalText(first + 1), Country(code: kept.country))
        stored.row = row
      }
      return (id: kept.transactionId, stored: stored)
    }
  }
}
