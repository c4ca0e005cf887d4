import AppStore
import Postgres
import Publishing
import Reconciliation
import Run
import SalesStore

struct SalesHealth {
  let settings: Settings

  func examine(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    let examination = SalesExamination(settings)
    let defects = try examination.defects(connection)
    if !defects.isEmpty { return defects.map { Diagnosis(subject: $0.subject, problem: $0.problem) } }
    // No expression is worth compiling.
    try connection.executeScript("SET jit = off")
    let sales = try SalesRows(settings)
    var found = try writingRights(connection) + reach(connection)
    found += relation("orders") { try orders(connection, sales) }
    found += relation("deliveries") { try deliveries(connection, sales) }
    found += relation("receipts") { try receipts(connection, sales) }
    if found.allSatisfy({ $0.problem == nil }) {
      found += try SalesIndexes(settings: settings, rows: try rows(connection)).examine(connection)
      found += try SalesLinks(settings: settings, schema: sales.schema).examine(connection)
      found += try samples(connection, sales)
    }
    return found
  }

  private func rows(_ connection: borrowing BlockingConnection) throws -> [String: Int] {
    let schema = try PostgresIdentifier(settings.salesSchema).sql
    return try ["orders", "receipts", "deliveries"].reduce(into: [:]) { counts, name in
      counts[name] = Int(try connection.execute("SELECT count(*) FROM \(schema).\(name)").single().int64(0))
    }
  }

  private func name(_ relation: String) -> String { "\(settings.salesSchema).\(relation)" }

  /// Runs a check on all rows, because a view can fail on a single row.
  private func relation(_ relation: String, _ body: () throws -> [Diagnosis]) -> [Diagnosis] {
    do { return try body() } catch let error as PostgresError {
      return [
        Diagnosis(
          subject: name(relation),
          problem: "cannot be read to its end: \(error); correct the view, or the row that it fails on",
          status: error.exitStatus)
      ]
    } catch {
      return [Diagnosis(subject: name(relation), problem: "\(error)", status: ExitStatus(for: error))]
    }
  }

  private func reach(_ connection: borrowing BlockingConnection) throws -> [Diagnosis] {
    switch try SnapshotScope(of: settings.salesSchema, on: connection) {
    case .everyConnection: []
    case .oneConnection:
      [Diagnosis(subject: "orders, receipts, deliveries (foreign tables; one reader reads them, in one snapshot)")]
    case .oneStatement:
      [
        Diagnosis(
          subject: "orders, receipts, deliveries (Citus)",
          warning: """
            its workers share no snapshot. A row that changes while a night reads is judged by its old or its new state, and orders \
            with new critical findings are read again first. The coordinator sorts the rows by ID, in temporary files of its \
            own. For runs of some users or products it receives the IDs of their orders
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
      Diagnosis(
        subject: name(try row.text(0)),
        warning: "may be written by this role, which only needs to read; revoke INSERT, UPDATE, DELETE and TRUNCATE")
    }
  }

  // MARK: - Relations

  private func orders(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> [Diagnosis] {
    var tally = RowTally(name: name("orders"), noun: "orders")
    var cents = (looksLike: 0, of: 0)
    var ofOtherStores = 0
    var reader = try connection.copyOut(
      "SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o ORDER BY o.order_id::text COLLATE \"C\"")
    while try reader.advance() {
      let row = try sales.order(reader, asOf: .now)
      var defect: String?
      switch row {
      case .bad(let bad): defect = bad.defect
      case .valid(let order):
        // Order IDs of Google Play, from the column itself, because an order has no ID that Apple cannot give.
        if (try? reader.text(8))?.hasPrefix("GPA.") == true { ofOtherStores += 1 }
        if order.amount.currency.digits == 2, order.amount.minorUnits > 0 {
          cents.of += 1
          // 499.00 in place of 4.99.
          let whole = order.amount.minorUnits.quotientAndRemainder(dividingBy: 100)
          if whole.remainder == 0, whole.quotient % 100 == 99 || whole.quotient % 100 == 49 { cents.looksLike += 1 }
        }
      }
      tally.add(row.orderId, defect: defect, key: "order_id")
    }
    // Only bad orders can hold a night here; missing orders and deliveries are compared by the night itself.
    let figures = NightFigures(orders: tally.rows, badRows: NightFigures.Sample(count: tally.bad))
    let holds = Plausibility(share: settings.holdShare, precedent: nil).causes(figures)
    var found = tally.diagnoses(holdsNight: !holds.isEmpty)
    if cents.of >= 20, cents.looksLike * 2 > cents.of {
      found.append(
        Diagnosis(
          subject: name("orders.amount"),
          problem: """
            looks like cents: most amounts are whole numbers such as 499, and a night would be held; write amount / 100.0 in \
            the view
            """))
    }
    if ofOtherStores > 0 {
      found.append(
        Diagnosis(
          subject: name("orders.transaction_id"),
          warning: """
            \(ofOtherStores) orders have transaction IDs of Google Play (GPA.…), which Apple does not know; leave other stores' orders \
            out of the view: WHERE store = 'apple'
            """))
    }
    return found
  }

  private func deliveries(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> [Diagnosis] {
    var tally = RowTally(name: name("deliveries"), noun: "deliveries")
    var reader = try connection.copyOut(
      "SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d ORDER BY d.delivery_id::text COLLATE \"C\""
    )
    while try reader.advance() {
      let delivery = try sales.delivery(reader, asOf: .now)
      tally.add(delivery.deliveryId, defect: delivery.defect, key: "delivery_id")
    }
    return tally.diagnoses()
  }

  private func receipts(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> [Diagnosis] {
    var tally = RowTally(name: name("receipts"), noun: "receipts")
    var reader = try connection.copyOut(
      "SELECT \(SalesRows.receiptColumns) FROM \(sales.schema).receipts r ORDER BY r.receipt_id::text COLLATE \"C\"")
    while try reader.advance() {
      let receipt = try SalesRows.receipt(reader, asOf: .now)
      tally.add(receipt.receiptId, defect: receipt.defect, key: "receipt_id")
    }
    _ = consume reader
    return tally.diagnoses() + (try payloads(connection, sales))
  }

  private func payloads(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> [Diagnosis] {
    var reader = try connection.copyOut(
      """
      SELECT \(SalesRows.orderColumns), r.payload, o.order_id IS NOT NULL FROM (
        SELECT r.payload::text AS payload, r.order_id::text AS order_id FROM \(sales.schema).receipts r
        WHERE r.payload IS NOT NULL AND octet_length(r.payload::text) < 1000000 ORDER BY r.received_at DESC LIMIT 1000) r
      LEFT JOIN \(sales.schema).orders o ON o.order_id::text COLLATE "C" = r.order_id
      """)
    var kinds: [ReceiptKind: Int] = [:]
    var count = 0
    var comparison = PayloadComparison(settings: settings)
    let payloadColumn = SalesRows.order.count
    while try reader.advance() {
      count += 1
      let payload = try reader.isText(payloadColumn) ? ReceivedPayload(try reader.text(payloadColumn)) : nil
      kinds[payload?.kind ?? .malformed, default: 0] += 1
      guard let fact = payload?.claimedTransaction else { continue }
      var order: Order?
      if try reader.bool(payloadColumn + 1), case .valid(let row) = try sales.order(reader, asOf: .now) { order = row }
      comparison.add(fact, order)
    }
    if count == 0 { return [] }
    let shares = ReceiptKind.allCases.compactMap { kind in kinds[kind].map { "\($0) \(kind.rawValue)" } }
    var diagnosis = Diagnosis(
      subject: "\(name("receipts.payload")) (newest \(count): \(shares.joined(separator: ", ")))")
    if (kinds[.malformed] ?? 0) * 2 > count {
      diagnosis.warning = "most payloads are no receipts; the column must hold the text that the client sent"
    }
    return [diagnosis] + comparison.diagnoses
  }

  // MARK: - Samples

  private func samples(_ connection: borrowing BlockingConnection, _ sales: SalesRows) throws -> [Diagnosis] {
    var found: [Diagnosis] = []
    let now = Instant.now
    var orders = try connection.copyOut(
      """
      SELECT \(SalesRows.orderColumns), d.order_id IS NOT NULL FROM (
        SELECT * FROM \(sales.schema).orders o ORDER BY o.created_at DESC NULLS LAST, o.order_id::text COLLATE "C" LIMIT 1000
      ) o LEFT JOIN (
        SELECT DISTINCT d.order_id::text AS order_id FROM \(sales.schema).deliveries d WHERE d.revoked_at IS NULL OFFSET 0
      ) d ON d.order_id COLLATE "C" = o.order_id::text
      ORDER BY d.order_id IS NULL, o.created_at DESC NULLS LAST, o.order_id::text COLLATE "C" LIMIT 1
      """)
    if try orders.advance(), case .valid(let order) = try sales.order(orders, asOf: now) {
      found.append(
        Diagnosis(
          subject: """
            order \(order.orderId): \(order.amount.decimalText) \(order.amount.currency), status \(order.status.rawValue), \
            \(order.quantity) x \(order.productId), \(try orders.bool(SalesRows.order.count) ? "delivered" : "not delivered")
            """))
    }
    // Read to the end, because an aborted COPY aborts the transaction.
    _ = try orders.advance()
    var deliveries = try connection.copyOut(
      """
      SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d
      ORDER BY d.delivered_at DESC NULLS LAST, d.delivery_id::text COLLATE "C" LIMIT 1
      """)
    if try deliveries.advance() {
      let delivery = try sales.delivery(deliveries, asOf: now)
      found.append(
        Diagnosis(
          subject: """
            delivery \(delivery.deliveryId): \(delivery.quantity.map { "\($0) x " } ?? "")\(delivery.productId) to user \
            \(delivery.userId), \(delivery.orderId.map { "for order \($0)" } ?? "for no order")\(delivery.stands ? "" : ", taken back")
            """))
    }
    _ = try deliveries.advance()
    var receipts = try connection.copyOut(
      """
      SELECT \(SalesRows.receiptColumns), left(r.payload::text, 1000000) FROM \(sales.schema).receipts r
      ORDER BY r.received_at DESC NULLS LAST, r.receipt_id::text COLLATE "C" LIMIT 1
      """)
    if try receipts.advance() {
      let receipt = try SalesRows.receipt(receipts, asOf: now)
      let payload = try receipts.isText(8) ? try receipts.optionalText(8) ?? "" : ""
      let kind =
        switch ReceivedPayload(payload).kind {
        case .app: "an app receipt"
        case .transaction: "an old transaction receipt"
        case .signed: "a signed transaction"
        case .malformed: "no receipt that can be read"
        }
      found.append(
        Diagnosis(
          subject: """
            receipt \(receipt.receiptId): \(kind) of \(payload.utf8.count) bytes, \
            \(receipt.orderId.map { "for order \($0)" } ?? "for no order")
            """))
    }
    _ = try receipts.advance()
    return found
  }
}

private struct RowTally {
  let name: String
  let noun: String
  private(set) var rows = 0
  private(set) var bad = 0
  private var firstDefect: String?
  private var last: Identifier?

  init(name: String, noun: String) {
    self.name = name
    self.noun = noun
  }

  mutating func add(_ id: Identifier, defect: String?, key: String) {
    let defect = defect ?? (id == last ? "\(key) is not unique" : nil)
    last = id
    rows += 1
    guard let defect else { return }
    bad += 1
    firstDefect = firstDefect ?? "\(id.isEmpty ? "a row without an ID" : id.text): \(defect)"
  }

  func diagnoses(holdsNight: Bool = false) -> [Diagnosis] {
    var diagnosis = Diagnosis(subject: "\(name) (\(rows) rows)")
    if rows == 0 {
      diagnosis.warning = "is empty; check that the view shows the shop's \(noun) to this role"
    } else if let firstDefect {
      let summary = "\(bad) rows break the contract, such as \(firstDefect)"
      if holdsNight {
        diagnosis.problem = "\(summary); a night would be held, correct the view"
      } else if noun == "orders", bad * 2 > rows {
        diagnosis.problem = "\(summary), and these are most of them; correct the view"
      } else {
        diagnosis.warning = "\(summary); they are reported as bad_row and count for nothing"
      }
    }
    return [diagnosis]
  }
}
