import AppStore
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings
import Streams

struct SalesHealth {
  let settings: Settings

  /// - Parameter scope: opens our own store, which may be another database.
  func examine(_ connection: borrowing BlockingConnection, _ scope: BlockingScope) throws -> [Diagnosis] {
    let examination = SalesExamination(settings)
    let defects = try examination.defects(connection)
    if !defects.isEmpty { return defects.map { Diagnosis.problem($0.subject, $0.problem) } }
    try withoutCompilation(connection)
    let sales = try SalesRows(settings)
    var found = try writingRights(connection) + reach(connection)
    var tallies: [RowTally] = []
    for (name, tally) in try relations(connection, scope, sales) {
      do { tallies.append(try tally.get()) } catch { found.append(unreadable(name, error)) }
    }
    // The orders that a night would count as bad, whichever of their rows is bad.
    let bad = tallies.reduce(into: Set<Identifier>()) { $0.formUnion($1.badOrders) }
    let holds = Tally(odd: bad.count, all: tallies.first { $0.noun == "orders" }?.recent ?? 0)
      .holdsNight(settings.holdShare)
    for tally in tallies {
      // A relation with a small part of the bad orders is not the cause.
      let isCause = tally.badOrders.count * 3 >= bad.count
      found += [tally.diagnosis(holdsNight: holds && isCause)] + tally.further
    }
    guard tallies.count == 3 else { return found }
    let rows = Dictionary(uniqueKeysWithValues: tallies.map { ($0.noun, $0.rows) })
    found += try SalesIndexes(settings: settings, rows: rows).examine(connection)
    let (payloads, comparison) = try payloads(connection, sales, of: tallies[2].recent)
    let stored = try storedPrices(of: tallies[0].sample.orders, scope)
    let hasPrices = comparison.hasPrices || stored.hasPrices
    let links = SalesLinks(
      settings: settings, schema: sales.schema, lastingProducts: comparison.lastingProducts, hasPrices: hasPrices,
      orders: tallies[0].recent)
    // A difference that the receipts show is not repeated.
    found += payloads + stored.diagnoses.filter { one in !payloads.contains { $0.subject == one.subject } }
    found += try links.examine(connection)
    if !hasPrices, let tally = tallies[0].prices.misplaced, tally.holdsNight(settings.holdShare) {
      found.append(
        Diagnosis(
          subject: name("orders.amount"), held: true,
          because: """
            \(tally.odd) of \(tally.all) amounts are far from the usual amount of their product: they are of other orders, or in \
            another currency than stated
            """,
          remedy: "select the total and the currency of the order itself in the view; check its joins",
          examples: tally.examples))
    }
    found += try samples(connection, sales, newestDelivery: tallies[1].newest?.id, newestReceipt: tallies[2].newest?.id)
    return found
  }

  private func name(_ relation: String) -> String { "\(settings.salesSchema).\(relation)" }

  /// All rows are read, because a view can fail on a single one.
  private func unreadable(_ relation: String, _ error: any Error) -> Diagnosis {
    guard let error = error as? PostgresError else {
      return .problem(name(relation), "\(error)", ExitStatus(for: error))
    }
    return .problem(
      name(relation),
      "cannot be read to its end: \(error.description(inDoctor: true)); correct the view, or the row that it fails on",
      error.exitStatus)
  }

  private func reach(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    switch try SnapshotScope(of: settings.salesSchema, on: connection) {
    case .everyConnection: []
    case .oneConnection:
      [.fine("orders, receipts, deliveries (foreign tables; one reader reads them, in one snapshot)")]
    case .noConnection:
      [
        .warning(
          "orders, receipts, deliveries (Citus, or several databases)",
          """
          the databases, or the workers, share no snapshot, so a run describes an instant ten minutes before its start. Start \
          nights at least ten minutes after midnight, or they report the day before. The coordinator of a Citus cluster sorts \
          the rows by ID, in temporary files of its own. For runs of some users or products it receives the IDs of their orders
          """)
      ]
    }
  }

  private func writingRights(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let rows = try connection.execute(
      """
      SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname IN ('orders', 'receipts', 'deliveries')
        AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
        AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') ORDER BY 1
      """, [.text(settings.salesSchema)])
    return try rows.map { row in
      Diagnosis.warning(
        name(try row.text(0)),
        "may be written by this role, which only needs to read; revoke INSERT, UPDATE, DELETE and TRUNCATE")
    }
  }

  // MARK: - Relations

  private func withoutCompilation(_ connection: borrowing BlockingConnection) throws {
    // No expression is worth compiling.
    try connection.executeScript("SET jit = off")
  }

  private typealias Relation = (name: String, tally: Result<RowTally, any Error>)

  /// Reads every row of the three relations: orders in one connection, and the others at the same time in a second one.
  /// Reading millions of rows takes most of the time. Without a second connection the others are read afterwards.
  private func relations(
    _ connection: borrowing BlockingConnection, _ scope: BlockingScope, _ sales: SalesRows
  ) throws -> [Relation] {
    func others(_ connection: borrowing BlockingConnection) -> [Relation] {
      [("deliveries", deliveries), ("receipts", receipts)].map { name, read in
        (name, Result { try read(connection, sales) })
      }
    }
    let halves = try inParallel(2) { half -> [Relation]? in
      if half == 0 { return [("orders", Result { try orders(connection, sales) })] }
      guard let second = try? SalesStore.open(settings, scope, applicationName: "night-audit doctor") else {
        return nil
      }
      try withoutCompilation(second)
      return others(second)
    }
    return (halves[0] ?? []) + (halves[1] ?? others(connection))
  }

  private func orders(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> RowTally {
    let now = Instant.now
    var tally = RowTally(name: name("orders"), noun: "orders", key: "order_id", since: now - settings.lookback)
    var columns = OrderColumns(latest: now + settings.clockSkew)
    var reader = try connection.copyOut(
      "SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o ORDER BY o.order_id::text COLLATE \"C\"")
    while try reader.advance() {
      // In place, as nearly all rows are read. Nights read no older orders.
      if let order = try sales.plainOrder(reader) {
        if tally.isRecent(order.createdAt) {
          try columns.add(order, reader)
          tally.prices.add(order)
          if order.transactionId != nil { try tally.sample.add(sales.order(reader, asOf: now)) }
        }
        tally.add(order.orderId, order: order.orderId.id, at: order.createdAt)
        continue
      }
      let row = try sales.order(reader, asOf: now)
      var (defect, createdAt): (String?, Instant)
      switch row {
      case .bad(let bad): (defect, createdAt) = (bad.defect, bad.createdAt)
      case .valid(let order):
        (defect, createdAt) = (nil, order.createdAt)
        guard tally.isRecent(createdAt) else { break }
        try columns.add(order, reader)
        tally.prices.add(order)
        if order.transactionId != nil { tally.sample.add(row) }
      }
      tally.add(row.orderId, defect: defect, order: row.orderId, at: createdAt)
    }
    tally.further = columns.diagnoses(settings)
    return tally
  }

  private func deliveries(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> RowTally {
    let now = Instant.now
    var tally = RowTally(
      name: name("deliveries"), noun: "deliveries", key: "delivery_id", since: now - settings.lookback)
    var reader = try connection.copyOut(
      "SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d ORDER BY d.delivery_id::text COLLATE \"C\""
    )
    while try reader.advance() {
      if let delivery = try sales.plainDelivery(reader) {
        tally.add(delivery.deliveryId, order: delivery.orderId.id, at: delivery.deliveredAt)
        continue
      }
      let delivery = try sales.delivery(reader, asOf: now)
      tally.add(delivery.deliveryId, defect: delivery.defect, order: delivery.orderId, at: delivery.deliveredAt)
    }
    return tally
  }

  private func receipts(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> RowTally {
    let now = Instant.now
    var tally = RowTally(name: name("receipts"), noun: "receipts", key: "receipt_id", since: now - settings.lookback)
    var reader = try connection.copyOut(
      "SELECT \(SalesRows.receiptColumns) FROM \(sales.schema).receipts r ORDER BY r.receipt_id::text COLLATE \"C\"")
    var plain = BorrowedReceipt.blank
    while try reader.advance() {
      if try SalesRows.readPlain(reader, into: &plain) {
        tally.add(plain.receiptId, order: plain.orderId.id, at: plain.receivedAt)
        continue
      }
      let receipt = try SalesRows.receipt(reader, asOf: now)
      tally.add(receipt.receiptId, defect: receipt.defect, order: receipt.orderId, at: receipt.receivedAt)
    }
    return tally
  }

  /// More receipts are sampled evenly, because a million signed transactions take a minute to read and to parse.
  private static let comparedReceipts = 50_000

  /// App receipts are longer than signed transactions.
  private static let comparedAppReceipts = 5_000

  private func payloads(
    _ connection: borrowing BlockingConnection, _ sales: SalesRows, of rows: Int
  ) throws -> (found: [Diagnosis], comparison: PayloadComparison) {
    let step = (rows + Self.comparedReceipts - 1) / Self.comparedReceipts
    let isChosen = step > 1 ? "AND hashtext(r.receipt_id::text) % \(step) = 0" : ""
    var reader = try connection.copyOut(
      """
      SELECT \(SalesRows.orderColumns), r.payload, o.order_id IS NOT NULL, r.user_id FROM (
        SELECT r.payload::text AS payload, r.order_id::text AS order_id, r.received_at, r.user_id::text AS user_id
        FROM \(sales.schema).receipts r
        WHERE r.payload IS NOT NULL AND octet_length(r.payload::text) < 1000000 \(isChosen)) r
      LEFT JOIN \(sales.schema).orders o ON o.order_id::text COLLATE "C" = r.order_id
      WHERE o.created_at >= \(settings.lookbackStart) OR o.order_id IS NULL AND r.received_at >= \(settings.lookbackStart)
      """)
    var kinds: [ReceiptKind: Int] = [:]
    var count = 0
    // One customer's false receipts count once.
    var (malformed, senders) = (Tally(), Set<Identifier>())
    var comparison = PayloadComparison(settings: settings)
    let appStep = max(1, min(rows, Self.comparedReceipts) / Self.comparedAppReceipts)
    let payloadColumn = SalesRows.order.count
    while try reader.advance() {
      count += 1
      let payload = try reader.isText(payloadColumn) ? ReceivedPayload(try reader.text(payloadColumn)) : nil
      kinds[payload?.kind ?? .malformed, default: 0] += 1
      var order: Order?
      if try reader.bool(payloadColumn + 1), case .valid(let row) = try sales.order(reader, asOf: .now) { order = row }
      let isMalformed = payload?.kind ?? .malformed == .malformed
      let sender = payloadColumn + 2
      let userId = try reader.isText(sender) ? reader.optionalText(sender).map { Identifier($0) } : nil
      let person = userId ?? order?.userId ?? Identifier("receipt \(count)")
      if senders.insert(person).inserted || !isMalformed {
        malformed.count(isMalformed, "a receipt \(order.map { "of order \($0.orderId)" } ?? "without an order")")
      }
      if let fact = payload?.claimedTransaction {
        comparison.add(fact, order)
      } else if count % appStep == 0, let listed = payload?.listedTransactions {
        comparison.add(listed, order)
      }
    }
    if count == 0 { return ([], comparison) }
    let shares = ReceiptKind.allCases.compactMap { kind in kinds[kind].map { "\($0) \(kind.rawValue)" } }
    let sample = (step > 1 ? "a sample of " : "") + counted(count, "payload")
    var diagnosis = Diagnosis(subject: "\(name("receipts.payload")) (\(sample): \(shares.joined(separator: ", ")))")
    if malformed.odd * 2 > malformed.all {
      diagnosis = Diagnosis(
        subject: diagnosis.subject, held: malformed.holdsNight(settings.systemicShare),
        because: "most payloads are no receipts",
        remedy: "the column must hold the text that the client sent", examples: malformed.examples)
    }
    return ([diagnosis] + comparison.diagnoses, comparison)
  }

  /// Compares a sample of orders with the prices that Apple has reported to our own store. The sales may be in another
  /// database, so the store is asked by ID.
  private func storedPrices(of orders: [Order], _ scope: BlockingScope) throws -> PayloadComparison {
    var comparison = PayloadComparison(settings: settings, transactions: "transactions that Apple reported")
    if orders.isEmpty { return comparison }
    // A store that cannot be read is reported by another check.
    let rows = try? scope.connect(settings.databaseURL, applicationName: "night-audit doctor").execute(
      """
      SELECT o.position, t.price_milliunits, t.currency, t.purchased_at
      FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS o (transaction_id, product_id, position)
      JOIN night_audit.transactions t ON t.transaction_id = o.transaction_id AND t.product_id = o.product_id
      WHERE t.environment = 'Production' AND t.price_milliunits IS NOT NULL AND t.currency IS NOT NULL
        AND t.purchased_at IS NOT NULL AND t.commitment_info IS NULL
      """, [.textArray(orders.map { $0.transactionId?.text }), .textArray(orders.map(\.productId.text))])
    guard let rows else { return comparison }
    for row in rows {
      let order = orders[Int(try row.int64(0)) - 1]
      // An original transaction ID may stand for a later period, which has a price of its own.
      let distance = Instant(microseconds: try row.timestamp(3)) - order.createdAt
      guard distance.magnitude <= settings.matchWindow else { continue }
      comparison.addPrice(try row.int64(1), currency: try row.text(2), order)
    }
    return comparison
  }

  // MARK: - Samples

  /// The newest rows. Deliveries and receipts were read before, so that their relations are not searched again.
  private func samples(
    _ connection: borrowing BlockingConnection, _ sales: SalesRows, newestDelivery: Identifier?,
    newestReceipt: Identifier?
  ) throws -> [Diagnosis] {
    var found: [Diagnosis] = []
    let now = Instant.now
    var orders = try connection.copyOut(
      """
      WITH newest AS MATERIALIZED (
        SELECT * FROM \(sales.schema).orders o ORDER BY o.created_at DESC NULLS LAST, o.order_id::text COLLATE "C" LIMIT 1000)
      SELECT \(SalesRows.orderColumns), d.order_id IS NOT NULL FROM newest o LEFT JOIN (
        SELECT DISTINCT d.order_id::text COLLATE "C" AS order_id FROM \(sales.schema).deliveries d
        WHERE d.revoked_at IS NULL AND d.order_id::text COLLATE "C" IN (SELECT order_id::text COLLATE "C" FROM newest)
      ) d ON d.order_id = o.order_id::text COLLATE "C"
      ORDER BY d.order_id IS NULL, o.created_at DESC NULLS LAST, o.order_id::text COLLATE "C" LIMIT 1
      """)
    if try orders.advance(), case .valid(let order) = try sales.order(orders, asOf: now) {
      found.append(
        .fine(
          """
          order \(order.orderId): \(order.amount.decimalText) \(order.amount.currency), status \(order.status.rawValue), \
          \(order.quantity) x \(order.productId), \(try orders.bool(SalesRows.order.count) ? "delivered" : "not delivered")
          """))
    }
    // Read to the end, because an aborted COPY aborts the transaction.
    _ = try orders.advance()
    if let newestDelivery { found += try delivery(newestDelivery, connection, sales) }
    if let newestReceipt { found += try receipt(newestReceipt, connection, sales) }
    return found
  }

  private func delivery(
    _ id: Identifier, _ connection: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> [Diagnosis] {
    var deliveries = try connection.copyOut(
      """
      SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d
      WHERE \(try SalesRows.equals("d.delivery_id", id.text)) LIMIT 1
      """)
    guard try deliveries.advance() else { return [] }
    let delivery = try sales.delivery(deliveries, asOf: .now)
    // Read to the end, because an aborted COPY aborts the transaction.
    _ = try deliveries.advance()
    return [
      .fine(
        """
        delivery \(delivery.deliveryId): \(delivery.quantity.map { "\($0) x " } ?? "")\(delivery.productId) to user \
        \(delivery.userId), \(delivery.orderId.map { "for order \($0)" } ?? "for no order")\(delivery.stands ? "" : ", taken back")
        """)
    ]
  }

  private func receipt(
    _ id: Identifier, _ connection: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> [Diagnosis] {
    var receipts = try connection.copyOut(
      """
      SELECT \(SalesRows.receiptColumns), left(r.payload::text, 1000000) FROM \(sales.schema).receipts r
      WHERE \(try SalesRows.equals("r.receipt_id", id.text)) LIMIT 1
      """)
    guard try receipts.advance() else { return [] }
    let receipt = try SalesRows.receipt(receipts, asOf: .now)
    let payload = try receipts.isText(8) ? try receipts.optionalText(8) ?? "" : ""
    _ = try receipts.advance()
    let kind =
      switch ReceivedPayload(payload).kind {
      case .app: "an app receipt"
      case .transaction: "an old transaction receipt"
      case .signed: "a signed transaction"
      case .malformed: "a malformed payload"
      }
    return [
      .fine(
        """
        receipt \(receipt.receiptId): \(kind) of \(payload.utf8.count) bytes, \
        \(receipt.orderId.map { "for order \($0)" } ?? "for no order")
        """)
    ]
  }
}
