import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// Reads the shop's receipts and orders on its own connection, without joins to night-audit's tables.
package struct ProofSource: Sendable {
  let session: OpenSession
  let sales: SalesRows
  private var schema: String { sales.schema }

  private static let calendar = "BETWEEN '0001-01-01' AND '9999-12-31'"

  /// The app stated on an order aliased `o`. An empty text counts as none, as in the audit.
  private static let bundleId = #"nullif(o.bundle_id::text COLLATE "C", '')"#

  private static let rowsAtATime = 5_000

  /// A condition that a column equals one of the texts by its own collation, which is that of its index. The caller
  /// drops texts that only the collation takes for equal: with a second, bytewise condition the planner expects almost
  /// no rows and reads the whole relation.
  private static func isAmong(_ texts: String, _ column: String) -> String { "\(column)::text = ANY (\(texts))" }

  /// A text that changes with the definition of the relations, because a corrected view shows other rows.
  func definition() async throws -> String {
    try await session.execute(
      """
      SELECT coalesce(\(SQLDigest.of("""
        string_agg(c.relname || c.oid::text || coalesce(pg_get_viewdef(c.oid), ''), '|' ORDER BY c.relname::text COLLATE "C")
        """)), '')
      FROM pg_catalog.pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relname IN ('orders', 'receipts')
      """, [.text(schema)]
    ).single().text(0)
  }

  /// Reads the receipts of a span as new checks. Returns the sum of the counts that `take` returns.
  func receipts(
    from: Instant, until: Instant, asOf: Instant, _ take: @Sendable ([CheckRow]) async throws -> Int
  ) async throws -> Int {
    try await read(
      "receipts",
      """
      SELECT r.receipt_id::text, r.order_id::text, r.received_at,
        r.status::text COLLATE "C" IS DISTINCT FROM 'verified', r.user_id::text, r.environment::text
      FROM \(schema).receipts r
      WHERE r.received_at >= $1 AND r.received_at <= $2 AND \(SalesRows.isValidReceipt)
      """, [.timestamp(from.microseconds), .timestamp(until.microseconds)]
    ) { rows in
      try await take(
        try rows.compactMap { row throws(PostgresError) -> CheckRow? in
          guard try row.areTexts(0, 1, 4, 5) else { return nil }
          var history = CheckHistory(dated: try row.instant(2), knownSince: asOf)
          history.isUrgent = try row.bool(3)
          var check = CheckRow(subject: CheckSubject(kind: .receipt, id: try row.id(0)), history: history)
          check.orderId = try row.optionalId(1)
          return check
        })
    }
  }

  /// Reads the orders that changed since an instant, with the ID that each one states. `onlyBundleId` is the app of
  /// orders that state none. Returns the sum of the counts that `take` returns.
  func orders(
    changedFrom: Instant, createdFrom: Instant, until: Instant, onlyBundleId: String?,
    _ take: @Sendable ([(id: Identifier, candidate: PendingLookups.Candidate?)]) async throws -> Int
  ) async throws -> Int {
    try await read(
      "orders",
      """
      SELECT o.order_id::text, coalesce(\(Self.bundleId), $4),
        \(SalesRows.statedTransaction),
        o.created_at, o.status::text COLLATE "C" IS DISTINCT FROM 'verified'
      FROM \(schema).orders o
      WHERE o.updated_at >= $1 AND o.created_at >= $2 AND o.created_at <= $3 AND o.created_at \(Self.calendar)
        AND o.order_id::text COLLATE "C" <> '' AND octet_length(o.order_id::text) <= 1000
      """,
      [
        .timestamp(changedFrom.microseconds), .timestamp(createdFrom.microseconds), .timestamp(until.microseconds),
        .text(onlyBundleId),
      ]
    ) { rows in
      try await take(
        try rows.compactMap { row throws(PostgresError) -> (id: Identifier, candidate: PendingLookups.Candidate?)? in
          guard try row.areTexts(0, 1, 2) else { return nil }
          let id = try row.id(0)
          guard let bundleId = try row.optionalText(1), let transactionId = try row.optionalText(2) else {
            return (id, nil)
          }
          let candidate = PendingLookups.Candidate(
            orderId: id, bundleId: bundleId, transactionId: transactionId,
            dated: try row.instant(3), isUrgent: try row.bool(4))
          return (id, candidate)
        })
    }
  }

  /// Digests of payload, app and stated ID, and of the payload alone, over raw bytes (aliases `r` and `o`).
  private static let fingerprint = "\(SQLDigest.of(fingerprinted)) || ' ' || \(payloadFingerprint)"
  private static let fingerprinted = """
    concat_ws(E'\\x1f', r.payload::text, coalesce(o.bundle_id::text, ''), coalesce(o.transaction_id::text, ''))
    """
  private static let payloadFingerprint = SQLDigest.of("coalesce(r.payload::text, '')")

  /// Describes receipts by ID; deleted ones are missing. Of several rows with one ID, the audit's choice counts. Orders
  /// are read first, because the relations of a cluster may lie on different hosts.
  func describe(_ ids: [Identifier]) async throws -> [Identifier: ProofDescription] {
    if ids.isEmpty { return [:] }
    let orderIds = try await session.execute(
      """
      SELECT DISTINCT r.order_id::text COLLATE "C" FROM \(schema).receipts r
      WHERE \(Self.isAmong("$1", "r.receipt_id")) AND r.order_id IS NOT NULL
      """, [.textArray(ids.map(\.text))]
    ).compactMap { try $0.isText(0) ? try $0.id(0) : nil }
    let described = try await described(orders: Set(orderIds))
    let orders = described.values
    let rows = try await session.execute(
      """
      SELECT r.receipt_id::text, r.order_id::text, coalesce(octet_length(r.payload::text), 0),
        \(Self.fingerprint) AS fingerprint, r.user_id::text, r.environment::text
      FROM \(schema).receipts r LEFT JOIN unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[])
        AS o (order_id, bundle_id, transaction_id, created_at) ON o.order_id = r.order_id::text COLLATE "C"
      WHERE \(Self.isAmong("$1", "r.receipt_id")) AND \(SalesRows.isValidReceipt)
      ORDER BY \(SalesRows.receiptPrecedence), fingerprint
      """,
      [
        .textArray(ids.map(\.text)), .textArray(orders.map { $0.orderId?.text }), .textArray(orders.map(\.bundleId)),
        .textArray(orders.map(\.statedTransactionId)), .timestampArray(orders.map { $0.orderCreatedAt?.microseconds }),
      ])
    let asked = Set(ids)
    var found: [Identifier: ProofDescription] = [:]
    for row in rows where try row.areTexts(1, 4, 5) {
      let id = Identifier(try row.text(0))
      if found[id] != nil || !asked.contains(id) { continue }
      var receipt = try row.optionalId(1).flatMap { described[$0] } ?? ProofDescription()
      receipt.orderId = try row.optionalId(1)
      (receipt.payloadBytes, receipt.fingerprint) = (Int(try row.int32(2)), try row.text(3))
      if receipt.userId == nil { receipt.userId = try row.optionalText(4) }
      found[id] = receipt
    }
    return found
  }

  func described(orders ids: Set<Identifier>) async throws -> [Identifier: ProofDescription] {
    if ids.isEmpty { return [:] }
    let rows = try await session.execute(
      """
      SELECT o.order_id::text, \(Self.bundleId), \(SalesRows.statedTransaction),
        CASE WHEN o.created_at \(Self.calendar) THEN o.created_at END, o.user_id::text, o.product_id::text
      FROM \(schema).orders o WHERE \(Self.isAmong("$1", "o.order_id"))
      """, [.textArray(ids.sorted().map(\.text))])
    var orders: [Identifier: ProofDescription] = [:]
    for row in rows where try row.areTexts(0, 1, 2, 4, 5) {
      let id = try row.id(0)
      if orders[id] != nil { continue }
      orders[id] = ProofDescription(
        orderId: id, bundleId: try row.optionalText(1), statedTransactionId: try row.optionalText(2),
        orderCreatedAt: try row.optionalInstant(3), userId: try row.optionalText(4), productId: try row.optionalText(5))
    }
    return orders
  }

  /// The app that the order of each receipt states, for the receipts among `ids` that the shop has.
  func statedApps(ofReceipts ids: [Identifier]) async throws -> [Identifier: String?] {
    if ids.isEmpty { return [:] }
    let rows = try await session.execute(
      """
      SELECT r.receipt_id::text, r.order_id::text FROM \(schema).receipts r
      WHERE \(Self.isAmong("$1", "r.receipt_id")) AND \(SalesRows.isValidReceipt)
      ORDER BY \(SalesRows.receiptPrecedence)
      """, [.textArray(ids.map(\.text))])
    let asked = Set(ids)
    var orderIds: [Identifier: Identifier?] = [:]
    for row in rows where try row.areTexts(0, 1) {
      let id = try row.id(0)
      if asked.contains(id), !orderIds.keys.contains(id) { orderIds.updateValue(try row.optionalId(1), forKey: id) }
    }
    let orders = try await described(orders: Set(orderIds.values.compactMap(\.self)))
    return orderIds.mapValues { orderId in orderId.flatMap { orders[$0]?.bundleId } }
  }

  func people() async throws -> People {
    let sales = sales
    return try await session.withConnection { connection in
      let exists = try connection.execute("SELECT to_regclass($1) IS NOT NULL", [.text("\(sales.schema).user_aliases")])
      return try exists.single().bool(0) ? People(aliases: sales.aliases(connection)) : People()
    }
  }

  /// The texts among `ids` that a column of the receipts has.
  func present(_ ids: [Identifier], in column: String = "receipt_id") async throws -> Set<Identifier> {
    if ids.isEmpty { return [] }
    let rows = try await session.execute(
      """
      SELECT DISTINCT r.\(column)::text COLLATE "C" FROM \(schema).receipts r
      WHERE \(Self.isAmong("$1", "r.\(column)")) AND \(SalesRows.isValidReceipt)
      """, [.textArray(ids.map(\.text))])
    return Set(try rows.map { Identifier(try $0.text(0)) }).intersection(ids)
  }

  /// The dates of these receipts; the earliest one of several rows with one ID. Deleted receipts are missing.
  func receiptDates(_ ids: [Identifier]) async throws -> [Identifier: Instant] {
    try await dates(
      """
      SELECT r.receipt_id::text, r.received_at FROM \(schema).receipts r
      WHERE \(Self.isAmong("$1", "r.receipt_id")) AND \(SalesRows.isValidReceipt)
      """, ids)
  }

  /// The dates of these orders; the earliest one of several rows with one ID. Deleted orders are missing.
  func orderDates(_ ids: [Identifier]) async throws -> [Identifier: Instant] {
    try await dates(
      """
      SELECT o.order_id::text, o.created_at FROM \(schema).orders o
      WHERE \(Self.isAmong("$1", "o.order_id")) AND o.created_at \(Self.calendar)
      """, ids)
  }

  private func dates(_ sql: String, _ ids: [Identifier]) async throws -> [Identifier: Instant] {
    if ids.isEmpty { return [:] }
    var dates: [Identifier: Instant] = [:]
    for row in try await session.execute(sql, [.textArray(ids.map(\.text))]) where try row.isText(0) {
      let (id, date) = (Identifier(try row.text(0)), try row.instant(1))
      dates[id] = min(date, dates[id] ?? date)
    }
    return dates
  }

  /// Payloads by receipt ID. Receipts that were deleted or changed since `fingerprints` were read are missing.
  func payloads(_ fingerprints: [Identifier: String]) async throws -> [Identifier: String] {
    if fingerprints.isEmpty { return [:] }
    let rows = try await session.execute(
      """
      SELECT r.receipt_id::text COLLATE "C", min(r.payload::text COLLATE "C") FROM \(schema).receipts r
      JOIN unnest($1::text[], $2::text[]) AS described (id, fingerprint)
        ON described.id = r.receipt_id::text COLLATE "C" AND described.fingerprint = \(Self.payloadFingerprint)
      WHERE \(Self.isAmong("$1", "r.receipt_id")) GROUP BY 1
      """,
      [
        .textArray(fingerprints.keys.map(\.text)),
        .textArray(fingerprints.values.map { ProofFingerprint($0).payloadText }),
      ])
    var payloads: [Identifier: String] = [:]
    // A payload that is not valid text is none of the three kinds of receipt, and counts as empty.
    for row in rows { payloads[Identifier(try row.text(0))] = try row.isText(1) ? try row.optionalText(1) ?? "" : "" }
    return payloads
  }

  /// The proofs of the selected orders. Without other filters, those of a user include receipts without an order.
  func listed(_ selection: Selection, onlyBundleId: String?) async throws -> ListedProofs {
    if selection.matchesNoRow { return ListedProofs(receiptIds: [], orderIds: []) }
    var parameters: [PostgresValue] = []
    var conditions: [String] = []
    func add(_ value: PostgresValue, _ condition: (String) -> String) {
      parameters.append(value)
      conditions.append(condition("$\(parameters.count)"))
    }
    func isSame(_ column: String, as text: String) -> String {
      "\(column)::text = \(text)::text AND \(column)::text COLLATE \"C\" = \(text)::text"
    }
    if let id = selection.orderId { add(.text(id.text)) { isSame("o.order_id", as: $0) } }
    if let id = selection.userId { add(.text(id.text)) { isSame("o.user_id", as: $0) } }
    if let id = selection.productId { add(.text(id.text)) { isSame("o.product_id", as: $0) } }
    if let id = selection.bundleId {
      add(.text(id)) { onlyBundleId == id ? "coalesce(\(Self.bundleId), \($0)) = \($0)" : "\(Self.bundleId) = \($0)" }
    }
    if let period = selection.period {
      add(.timestamp(period.start.microseconds)) { "o.created_at >= \($0)" }
      add(.timestamp(period.end.microseconds)) { "o.created_at < \($0)" }
    }
    let orderIds = Set(
      try await session.execute(
        "SELECT o.order_id::text FROM \(schema).orders o WHERE \(conditions.joined(separator: " AND "))", parameters
      ).compactMap { try $0.isText(0) ? Identifier(try $0.text(0)) : nil })
    let ofUser = conditions.count == 1 ? selection.userId : nil
    let receipts = try await session.execute(
      """
      SELECT r.receipt_id::text, r.order_id::text\(ofUser == nil ? ", false" : ", (\(isSame("r.user_id", as: "$2"))) IS TRUE")
      FROM \(schema).receipts r
      WHERE \(Self.isAmong("$1", "r.order_id"))\(ofUser == nil ? "" : " OR \(isSame("r.user_id", as: "$2"))")
      """, [.textArray(orderIds.map(\.text))] + (ofUser.map { [.text($0.text)] } ?? []))
    var receiptIds: Set<Identifier> = []
    for row in receipts where try row.isText(0) {
      let isOfOrder = try row.isText(1) && row.optionalText(1).map { orderIds.contains(Identifier($0)) } ?? false
      if try isOfOrder || row.bool(2) { receiptIds.insert(Identifier(try row.text(0))) }
    }
    return ListedProofs(receiptIds: receiptIds, orderIds: orderIds)
  }

  /// Reads a query through a cursor, so that memory holds one portion at a time. The cursor has the name of the relation,
  /// because an error shows the text of its statement.
  private func read(
    _ relation: String, _ sql: String, _ parameters: [PostgresValue],
    _ take: @Sendable (PostgresRows) async throws -> Int
  ) async throws -> Int {
    try await session.run { session, _ in
      var count = 0
      try await session.executeScript("BEGIN READ ONLY")
      do {
        try await session.execute("DECLARE \(relation) NO SCROLL CURSOR FOR \(sql)", parameters)
        while true {
          let rows = try await session.execute("FETCH \(Self.rowsAtATime) FROM \(relation)")
          if rows.isEmpty { break }
          count += try await take(rows)
        }
        try await session.executeScript("COMMIT")
        return count
      } catch {
        // A failed rollback means that the session is lost, and the transaction with it.
        try? await session.executeScript("ROLLBACK")
        throw error
      }
    }
  }
}

extension PostgresRow {
  fileprivate func areTexts(_ columns: Int...) throws(PostgresError) -> Bool {
    for column in columns where try !isText(column) { return false }
    return true
  }
}
