import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Streams

/// Tonight's disposition of each order, compared with the last complete night; never read as facts.
final class OrderNights {
  private let tonight: SpillSorter
  private let differing: SpillSorter
  private var record = RecordBytes()
  let isWanted: Bool
  private let testUsers: Set<Identifier>

  struct DecidedOrder {
    var userId: Identifier
    var productId: Identifier
    var amount: Money?
    var createdAt: Instant
    var disposition: Disposition
    var environment: AppleEnvironment?
    /// nil: the only app.
    var bundleId: String?
    /// Of the App Store; nil when Apple has not said.
    var country: Country?
    /// For the journal; nil for an order without a confirmed payment.
    var sale: JournalSale?
    var dispositionReason: DispositionReason
  }

  /// A row of the table `order_nights`. Without a disposition, the shop no longer has the order.
  private struct Kept: Equatable {
    var orderId: Identifier
    var userId: Identifier?
    var productId: Identifier?
    var amount: Money?
    var createdAt: Instant
    var disposition: String?
    var environment: String?
    var isAllowed: Bool?
    var app: String?
    var country: String?
    var businessDay: String?

    static let columns: [TableColumn<Kept>] = [
      .text("order_id") { $0.orderId.text }, .text("user_id") { $0.userId?.text },
      .text("product_id") { $0.productId?.text }, .text("currency") { $0.amount?.currency.code },
      .money("amount") { $0.amount }, .instant("created_at") { $0.createdAt }, .text("disposition") { $0.disposition },
      .text("environment") { $0.environment }, .bool("is_allowed") { $0.isAllowed }, .text("app") { $0.app },
      .text("country") { $0.country }, .text("business_day", as: "date") { $0.businessDay },
    ]

    init(_ orderId: Identifier, _ now: DecidedOrder, testUsers: Set<Identifier>, in dimensions: inout ReportDimensions)
    {
      (self.orderId, userId, productId, amount) = (orderId, now.userId, now.productId, now.amount)
      (createdAt, disposition, environment) = (now.createdAt, now.disposition.rawValue, now.environment?.rawValue)
      isAllowed = now.environment == .sandbox ? testUsers.contains(now.userId) : nil
      (app, country) = (dimensions.app(now.bundleId), now.country?.code)
      businessDay = dimensions.businessDay(of: createdAt)
    }

    /// - Parameter row: has the columns, then the base disposition.
    init(_ row: borrowing CopyReader) throws(PostgresError) {
      (orderId, userId, productId) = (try row.id(0), try row.optionalId(1), try row.optionalId(2))
      (amount, createdAt) = (try row.optionalMoney(3), Instant(microseconds: try row.timestamp(5)))
      (disposition, environment) = (try row.optionalText(6), try row.optionalText(7))
      (isAllowed, app) = (try row.optionalBool(8), try row.optionalText(9))
      (country, businessDay) = (try row.optionalText(10), try row.optionalText(11))
    }

    /// The first byte of a record of a missing order; that of `DecidedOrder` is 0 or 1.
    static let missingMark: UInt8 = 2

    /// Writes the row that follows this one when the shop no longer has the order.
    func writeMissing(to record: inout RecordBytes) {
      record.put(Kept.missingMark)
      record.put(userId)
      record.put(productId)
      record.put(Optional(createdAt))
      record.put(app)
      record.put(country)
      record.put(businessDay)
    }

    init(missing orderId: Identifier, from record: inout RecordReader) throws(RecordReader.Mismatch) {
      self.orderId = orderId
      guard try record.byte() == Kept.missingMark else { throw RecordReader.Mismatch() }
      (userId, productId) = (try record.optionalId(), try record.optionalId())
      guard let date = try record.optionalInstant() else { throw RecordReader.Mismatch() }
      createdAt = date
      (app, country, businessDay) = (
        try record.optionalText(), try record.optionalText(), try record.optionalText()
      )
    }

    /// Without an amount the time does not count: an invalid row may have no date, and then gets each night's own.
    func isSame(as other: Kept) -> Bool {
      guard amount == nil, other.amount == nil else { return self == other }
      var other = other
      (other.createdAt, other.businessDay) = (createdAt, businessDay)
      return self == other
    }
  }

  init(isWanted: Bool, testUsers: Set<Identifier>, temporaryDirectory: String) {
    (self.isWanted, self.testUsers) = (isWanted, testUsers)
    tonight = SpillSorter(directory: temporaryDirectory, budget: 1 << 22)
    differing = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
  }

  func add(_ judgement: Judgement) throws {
    guard isWanted else { return }
    record.clear()
    DecidedOrder(judgement).write(to: &record)
    let order = JudgedOrder(judgement)
    record.put(order != nil)
    order?.write(to: &record)
    try tonight.add(judgement.row.orderId, record)
  }

  func add(_ sale: SettledSale) throws {
    guard isWanted else { return }
    record.clear()
    record.put(UInt8(0))
    record.put(sale.order.userId)
    record.put(sale.order.productId)
    record.put(Optional(sale.order.amount))
    record.put(Optional(sale.order.createdAt))
    record.put(Disposition.settled.rawValue)
    record.put(Optional(AppleEnvironment.production.rawValue))
    record.put(sale.order.bundleId)
    record.put(sale.country?.code)
    record.put(true)
    record.put(Optional(sale.transactionId))
    // Neither a refund nor a service period.
    for _ in 0..<4 { record.put(false) }
    DispositionReason(ground: .paid, paidAt: sale.paidAt, refundedAt: nil, deliveredAt: sale.deliveredAt).write(
      to: &record)
    record.put(true)
    sale.writeJudgedOrder(to: &record)
    try tonight.add(key: sale.order.orderId.bytes, content: record.content)
  }

  func write(to writer: borrowing AuditFrameWriter) throws { try writer.write(.night, all: tonight) }

  func take(key: [UInt8], content: [UInt8]) throws {
    if isWanted { try tonight.add(key: key, content: content) }
  }

  func join(_ other: OrderNights) throws { try tonight.absorb(other.tonight) }

  func forEachOrder(_ body: (JudgedOrder) throws -> Void) throws {
    try tonight.restart()
    while let found = try tonight.next() {
      var reader = RecordReader(found.content)
      _ = try DecidedOrder(from: &reader)
      if try reader.flag() { try body(try JudgedOrder(from: &reader)) }
    }
  }

  /// Passes each order of tonight once, sorted by order ID.
  func forEachSale(_ body: (Identifier, DecidedOrder) throws -> Void) throws {
    try tonight.restart()
    var last: Identifier?
    while let found = try tonight.next() {
      let orderId = Identifier(utf8: found.key)
      // Further rows of an ID are bad rows.
      if orderId == last { continue }
      last = orderId
      var reader = RecordReader(found.content)
      try body(orderId, try DecidedOrder(from: &reader))
    }
  }

  /// An order as earlier nights stored it.
  private struct Earlier {
    /// Of the base night; nil if it had no such order.
    var disposition: String?
    var amount: Money?
    /// nil: that of `last`.
    var createdAt: Instant?
    /// The first night since the base night that stored the order; nil if the base night's row is the last one.
    var storedSince: Instant?
    var last: Kept
  }

  /// The days that nights have reported, each with the as-of of its newest report. Days before the stored orders are
  /// left out, because a longer lookback adds their orders.
  private static func reportedDays(
    before asOf: Instant, on connection: borrowing BlockingConnection
  ) throws(PostgresError) -> [String: Instant] {
    let rows = try connection.execute(
      """
      SELECT period_until::text, max(as_of) FROM night_audit.runs r
      WHERE is_nightly AND complete IS NOT NULL AND as_of < $1 AND NOT \(PublishedReport.isGone("r", from: "directory"))
        AND period_until >= (
          (SELECT min(o.created_at) FROM night_audit.order_nights o WHERE o.as_of < $1) AT TIME ZONE time_zone)::date
      GROUP BY period_until
      """, [.timestamp(asOf.microseconds)])
    var days: [String: Instant] = [:]
    for row in rows { days[try row.text(0)] = try row.instant(1) }
    return days
  }

  /// Compares with the last complete night, both sorted by order ID. `adjusted` receives changed orders from before
  /// `period`, and `figures` counts what changed.
  func compare(
    with base: BaseNight?, isKept: Bool, _ selection: Selection, asOf: Instant, createdBefore period: Instant,
    lookbackStart: Instant, in dimensions: ReportDimensions, on connection: borrowing BlockingConnection,
    figures: inout NightFigures, each: (Identifier, DecidedOrder) throws -> Void, adjusted: (ChangeRow) throws -> Void
  ) throws {
    if base == nil, !isKept { return }
    var dimensions = dimensions
    var few: Set<Identifier> = []
    let isOfFew = selection.isOfOrderOrUser
    if isOfFew {
      try tonight.restart()
      while let found = try tonight.next() { few.insert(Identifier(utf8: found.key)) }
    }
    try tonight.restart()
    let reportedDays = try base == nil ? [:] : Self.reportedDays(before: asOf, on: connection)
    // Rows to store are compared with the last stored rows, rows to report with the base night, which may be an earlier
    // one.
    let instant = base?.asOf.sqlText ?? "'-infinity'::timestamptz"
    func ofBase(_ column: String, orLast last: String? = nil) -> String {
      """
      CASE WHEN o.as_of <= \(instant) THEN \(last ?? "o.\(column)") ELSE (
        SELECT b.\(column) FROM night_audit.order_nights b
        WHERE b.order_id = o.order_id AND b.as_of <= \(instant) ORDER BY b.as_of DESC LIMIT 1) END
      """
    }
    var before = try OrderedStream(
      connection.copyOut(
        """
        SELECT DISTINCT ON (o.order_id) \(Kept.columns.map { "o.\($0.selection)" }.joined(separator: ", ")),
          \(ofBase("disposition")), \(ofBase("currency")), \(ofBase("amount")),
          \(ofBase("created_at", orLast: "NULL")),
          CASE WHEN o.as_of > \(instant) THEN (SELECT min(s.as_of) FROM night_audit.order_nights s
            WHERE s.order_id = o.order_id AND s.as_of > \(instant)) END
        FROM night_audit.order_nights o
        WHERE o.as_of < \(asOf.sqlText) \(isOfFew ? "AND o.order_id IN (SELECT id FROM ids)" : "")
        ORDER BY o.order_id, o.as_of DESC
        """, ids: few)
    ) {
      Earlier(
        disposition: try $0.optionalText(12), amount: try $0.optionalMoney(13), createdAt: try $0.optionalInstant(15),
        storedSince: try $0.optionalInstant(16), last: try Kept($0))
    }
    func report(missing row: Earlier) throws {
      guard row.last.createdAt >= lookbackStart else { return }
      if row.last.disposition != nil, !selection.isNarrowing {
        record.clear()
        row.last.writeMissing(to: &record)
        try differing.add(row.last.orderId, record)
      }
      // A night since the base night may have stored already that the order is missing.
      guard let amount = row.amount else { return }
      figures.add(missing: row.last.orderId)
      guard row.last.createdAt < period, !selection.isNarrowing else { return }
      try adjusted(
        ChangeRow(
          adjusted: row.last.orderId, userId: row.last.userId, before: amount, after: nil,
          createdAt: row.last.createdAt))
    }
    var last: Identifier?
    while let found = try tonight.next() {
      let orderId = Identifier(utf8: found.key)
      // Further rows of an ID are invalid and come after the row that counts.
      if orderId == last { continue }
      last = orderId
      while let key = before.nextKey, key < BorrowedText(found.key) {
        if let row = try before.next() { try report(missing: row) }
      }
      let known = try before.isNext(BorrowedText(found.key)) ? try before.next() : nil
      var reader = RecordReader(found.content)
      let now = try DecidedOrder(from: &reader)
      try each(orderId, now)
      let row = Kept(orderId, now, testUsers: testUsers, in: &dimensions)
      if known?.last.isSame(as: row) != true { try differing.add(key: found.key, content: found.content) }
      let storedSince = known?.storedSince ?? asOf
      guard let known, let before = known.disposition.flatMap({ Disposition(rawValue: $0) }) else {
        // The day's own report, and every report until then, was made without the order.
        if now.createdAt < period, let amount = now.amount, let day = row.businessDay, let reported = reportedDays[day],
          reported < storedSince
        {
          try adjusted(
            ChangeRow(
              added: orderId, userId: now.userId, amount: amount, createdAt: now.createdAt,
              disposition: now.disposition))
        }
        continue
      }
      figures.add(orderId, from: (before, known.last.amount), to: (now.disposition, now.amount))
      let createdAt = known.createdAt ?? known.last.createdAt
      // An invalid row may have no date, and then gets each night's own.
      if createdAt != now.createdAt, known.amount != nil, let amount = now.amount {
        let (from, to) = (dimensions.businessDay(of: createdAt), dimensions.businessDay(of: now.createdAt))
        let reported = createdAt < period ? createdAt : now.createdAt
        if from != to, reported < period {
          try adjusted(
            ChangeRow(moved: orderId, userId: now.userId, amount: amount, from: from, to: to, createdAt: reported))
        }
      }
      guard now.createdAt < period else { continue }
      if let stated = known.amount, let amount = now.amount, stated != amount {
        try adjusted(
          ChangeRow(adjusted: orderId, userId: now.userId, before: stated, after: amount, createdAt: now.createdAt))
      }
      if before != now.disposition {
        try adjusted(
          ChangeRow(
            adjusted: orderId, userId: now.userId, amount: now.amount ?? known.last.amount,
            createdAt: now.createdAt, before: before, after: now.disposition,
            because: now.dispositionReason.words))
      }
    }
    while let row = try before.next() { try report(missing: row) }
  }

  /// The orders that differ from the last stored rows, those without one, and the missing ones.
  func differingOrders() throws -> Set<Identifier> {
    var orders: Set<Identifier> = []
    try differing.restart()
    while let found = try differing.next() { orders.insert(Identifier(utf8: found.key)) }
    return orders
  }

  /// Saves the orders that differ, and removes those that left the lookback.
  func save(
    _ record: RunRecord, lookbackStart: Instant, in dimensions: ReportDimensions,
    on connection: borrowing BlockingConnection
  ) throws {
    var dimensions = dimensions
    try differing.restart()
    try NightTable.replace(
      "order_nights", or: "created_at < \(lookbackStart.sqlText)", Kept.columns, of: record, on: connection
    ) {
      guard let found = try differing.next() else { return nil }
      var reader = RecordReader(found.content)
      let orderId = Identifier(utf8: found.key)
      if found.content.first == Kept.missingMark { return try Kept(missing: orderId, from: &reader) }
      return Kept(orderId, try DecidedOrder(from: &reader), testUsers: testUsers, in: &dimensions)
    }
  }
}

extension OrderNights.DecidedOrder {
  fileprivate init(_ judgement: Judgement) {
    (userId, productId, createdAt) = (judgement.row.userId, judgement.row.productId, judgement.row.createdAt)
    (disposition, environment, country) = (judgement.disposition, judgement.environment, judgement.country)
    sale = JournalSale(judgement)
    dispositionReason = judgement.dispositionReason
    switch judgement.row {
    case .valid(let order): (amount, bundleId) = (order.amount, order.bundleId)
    case .bad(let bad): (amount, bundleId) = (nil, bad.bundleId)
    }
  }

  /// An invalid row sorts after a valid row of the same ID.
  fileprivate func write(to record: inout RecordBytes) {
    record.put(UInt8(disposition == .badRow ? 1 : 0))
    record.put(userId)
    record.put(productId)
    record.put(amount)
    record.put(Optional(createdAt))
    record.put(disposition.rawValue)
    record.put(environment?.rawValue)
    record.put(bundleId)
    record.put(country?.code)
    record.put(sale != nil)
    if let sale {
      record.put(sale.transactionId)
      record.put(sale.refund?.amount)
      record.put(sale.refund?.date)
      record.put(sale.service?.lowerBound)
      record.put(sale.service?.upperBound)
    }
    dispositionReason.write(to: &record)
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    _ = try record.byte()
    userId = try record.id()
    productId = try record.id()
    amount = try record.optionalMoney()
    createdAt = try record.optionalInstant() ?? Instant(microseconds: 0)
    guard let word = Disposition(rawValue: try record.text()) else { throw RecordReader.Mismatch() }
    disposition = word
    environment = try record.optionalText().flatMap(AppleEnvironment.init)
    bundleId = try record.optionalText()
    country = Country(code: try record.optionalText())
    if try record.flag() {
      var found = JournalSale(transactionId: try record.optionalId())
      let (amount, date) = (try record.optionalMoney(), try record.optionalInstant())
      if let amount, let date { found.refund = JournalSale.Refund(amount: amount, date: date) }
      let (start, end) = (try record.optionalInstant(), try record.optionalInstant())
      if let start, let end { found.service = start...end }
      sale = found
    }
    dispositionReason = try DispositionReason(from: &record)
  }
}

extension DispositionReason {
  fileprivate func write(to record: inout RecordBytes) {
    switch ground {
    case .broken: record.put(UInt8(0))
    case .paid: record.put(UInt8(1))
    case .reversed: record.put(UInt8(2))
    case .nothingToPay: record.put(UInt8(5))
    case .unpaid(let reason):
      record.put(UInt8(3))
      record.put(reason.rawValue)
    case .unconfirmed(let reason):
      record.put(UInt8(4))
      record.put(reason.rawValue)
    }
    record.put(paidAt)
    record.put(refundedAt)
    record.put(deliveredAt)
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let ground: PaymentGround
    switch try record.byte() {
    case 0: ground = .broken
    case 1: ground = .paid
    case 2: ground = .reversed
    case 5: ground = .nothingToPay
    case 3: ground = .unpaid(try record.paymentReason())
    case 4: ground = .unconfirmed(try record.paymentReason())
    default: throw RecordReader.Mismatch()
    }
    self.init(
      ground: ground, paidAt: try record.optionalInstant(), refundedAt: try record.optionalInstant(),
      deliveredAt: try record.optionalInstant())
  }
}

extension RecordReader {
  fileprivate mutating func paymentReason() throws(Mismatch) -> PaymentReason {
    guard let reason = PaymentReason(rawValue: try text()) else { throw Mismatch() }
    return reason
  }
}
