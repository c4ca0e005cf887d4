import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Streams

/// Tonight's disposition of each order, compared with the last complete night; never read as facts. Used by one thread
/// at a time; not `Sendable`.
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

    /// For a sandbox purchase, whether its user is a test user; otherwise nil.
    func isAllowed(among testUsers: Set<Identifier>) -> Bool? {
      environment == .sandbox ? testUsers.contains(userId) : nil
    }
  }

  /// The state of an order in the table `order_nights`.
  private struct Kept: Equatable {
    var userId: Identifier?
    var productId: Identifier?
    var amount: Money?
    /// nil without an amount, because an invalid row may have no date and then gets each night's own.
    var createdAt: Instant?
    var disposition: String
    var environment: String?
    var isAllowed: Bool?
    var app: String?
    var country: String?
    /// As `createdAt`.
    var businessDay: String?

    init(_ now: DecidedOrder, testUsers: Set<Identifier>, in dimensions: inout ReportDimensions) {
      (userId, productId, amount) = (now.userId, now.productId, now.amount)
      createdAt = now.amount == nil ? nil : now.createdAt
      (disposition, environment) = (now.disposition.rawValue, now.environment?.rawValue)
      isAllowed = now.isAllowed(among: testUsers)
      (app, country) = (dimensions.app(now.bundleId), now.country?.code)
      businessDay = createdAt.map { dimensions.businessDay(of: $0) }
    }

    /// - Parameter row: has the order ID and the base disposition in its first two columns.
    init(_ row: borrowing CopyReader) throws(PostgresError) {
      (userId, productId, amount) = (try row.optionalId(2), try row.optionalId(3), try row.optionalMoney(4))
      createdAt = amount == nil ? nil : Instant(microseconds: try row.timestamp(6))
      (disposition, environment, isAllowed) = (try row.text(7), try row.optionalText(8), try row.optionalBool(9))
      (app, country) = (try row.optionalText(10), try row.optionalText(11))
      businessDay = amount == nil ? nil : try row.optionalText(12)
    }
  }

  init(isWanted: Bool, testUsers: Set<Identifier>, temporaryDirectory: String) {
    self.isWanted = isWanted
    self.testUsers = testUsers
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

  /// Compares with the last complete night, both sorted by order ID. `adjusted` receives changed orders from before
  /// `period`, and `figures` counts what changed.
  func compare(
    with base: BaseNight?, isKept: Bool, isOfFew: Bool, asOf: Instant, createdBefore period: Instant,
    lookbackStart: Instant, in dimensions: ReportDimensions, on connection: borrowing BlockingConnection,
    figures: inout NightFigures,
    each: (Identifier, DecidedOrder) throws -> Void, adjusted: (ChangeRow) throws -> Void
  ) throws {
    if base == nil, !isKept { return }
    var dimensions = dimensions
    var few: Set<Identifier> = []
    if isOfFew {
      try tonight.restart()
      while let found = try tonight.next() { few.insert(Identifier(utf8: found.key)) }
    }
    try tonight.restart()
    // Differences are against the last stored row; the base night may be an earlier one.
    let instant = base?.asOf.sqlText ?? "'-infinity'::timestamptz"
    var before = try OrderedStream(
      connection.copyOut(
        """
        SELECT DISTINCT ON (o.order_id) o.order_id,
          CASE WHEN o.as_of <= \(instant) THEN o.disposition ELSE (
            SELECT b.disposition FROM night_audit.order_nights b
            WHERE b.order_id = o.order_id AND b.as_of <= \(instant) ORDER BY b.as_of DESC LIMIT 1) END,
          o.user_id, o.product_id, o.currency, o.amount, o.created_at, o.disposition, o.environment, o.is_allowed,
          o.app, o.country, o.business_day::text
        FROM night_audit.order_nights o
        WHERE o.as_of < \(asOf.sqlText) \(isOfFew ? "AND o.order_id IN (SELECT id FROM ids)" : "")
        ORDER BY o.order_id, o.as_of DESC
        """, ids: few)
    ) { (base: try $0.optionalText(1), last: try Kept($0)) }
    func isMissed(_ row: (base: String?, last: Kept)) -> Bool {
      row.base != nil && row.last.createdAt.map { $0 >= lookbackStart } ?? false
    }
    var last: Identifier?
    while let found = try tonight.next() {
      let orderId = Identifier(utf8: found.key)
      // Further rows of an ID are invalid and come after the row that counts.
      if orderId == last { continue }
      last = orderId
      while let key = before.nextKey, key < BorrowedText(found.key) {
        let missing = key.id
        if let row = try before.next(), isMissed(row) { figures.add(missing: missing) }
      }
      let known = try before.isNext(BorrowedText(found.key)) ? try before.next() : nil
      var reader = RecordReader(found.content)
      let now = try DecidedOrder(from: &reader)
      try each(orderId, now)
      if known?.last != Kept(now, testUsers: testUsers, in: &dimensions) {
        try differing.add(key: found.key, content: found.content)
      }
      guard let known, let before = known.base.flatMap({ Disposition(rawValue: $0) }) else { continue }
      figures.add(orderId, from: (before, known.last.amount), to: (now.disposition, now.amount))
      guard now.createdAt < period else { continue }
      if before != now.disposition {
        try adjusted(
          ChangeRow(
            adjusted: orderId, userId: now.userId, amount: now.amount ?? known.last.amount,
            createdAt: now.createdAt, before: before, after: now.disposition,
            because: now.dispositionReason.words))
      }
    }
    while let key = before.nextKey {
      let missing = key.id
      if let row = try before.next(), isMissed(row) { figures.add(missing: missing) }
    }
  }

  private static let columns = [
    "order_id", "user_id", "product_id", "currency", "amount", "created_at", "disposition", "environment",
    "is_allowed", "app", "country", "business_day",
  ]

  func save(
    _ record: RunRecord, lookbackStart: Instant, in dimensions: ReportDimensions,
    on connection: borrowing BlockingConnection
  ) throws {
    var dimensions = dimensions
    try connection.executeScript(
      """
      CREATE TEMPORARY TABLE differing (order_id text, user_id text, product_id text, currency text, amount numeric,
        created_at timestamptz, disposition text, environment text, is_allowed boolean,
        app text, country text, business_day text) ON COMMIT DROP
      """)
    _ = try connection.copyIn(into: try PostgresIdentifier("differing"), columns: Self.columns) { writer in
      while let found = try differing.next() {
        var reader = RecordReader(found.content)
        let now = try DecidedOrder(from: &reader)
        let isAllowed = now.isAllowed(among: testUsers)
        try writer.row { row throws(PostgresError) in
          try row.text(String(decoding: found.key, as: UTF8.self))
          try row.text(now.userId.text)
          try row.text(now.productId.text)
          try row.text(now.amount?.currency.code)
          try row.numeric(now.amount?.minorUnits, decimals: Int(now.amount?.currency.digits ?? 0))
          try row.timestamp(now.createdAt.microseconds)
          try row.text(now.disposition.rawValue)
          try row.text(now.environment?.rawValue)
          try row.bool(isAllowed)
          try row.text(dimensions.app(now.bundleId))
          try row.text(now.country?.code)
          try row.text(dimensions.businessDay(of: now.createdAt))
        }
      }
    }
    // A repeated night replaces its rows; orders that left the lookback are removed.
    try connection.execute(
      """
      DELETE FROM night_audit.order_nights
      WHERE run_id IN (SELECT run_id FROM night_audit.runs WHERE as_of = $1) OR created_at < $2
      """,
      [.timestamp(record.asOf.microseconds), .timestamp(lookbackStart.microseconds)])
    try connection.execute(
      """
      INSERT INTO night_audit.order_nights
        (order_id, as_of, run_id, user_id, product_id, currency, amount, created_at, disposition, environment, is_allowed,
        app, country, business_day)
      SELECT order_id, $1, $2::uuid, user_id, product_id, currency, amount, created_at, disposition, environment, is_allowed,
        app, country, business_day::date
      FROM differing
      """, [.timestamp(record.asOf.microseconds), .text(record.runId)])
  }
}

extension OrderNights.DecidedOrder {
  fileprivate init(_ judgement: Judgement) {
    userId = judgement.row.userId
    productId = judgement.row.productId
    createdAt = judgement.row.createdAt
    disposition = judgement.disposition
    environment = judgement.environment
    country = judgement.country
    sale = JournalSale(judgement)
    dispositionReason = judgement.dispositionReason
    switch judgement.row {
    case .valid(let order): (amount, bundleId) = (order.amount, order.bundleId)
    case .bad(let bad): (amount, bundleId) = (nil, bad.bundleId)
    }
  }
}

extension OrderNights.DecidedOrder {
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
