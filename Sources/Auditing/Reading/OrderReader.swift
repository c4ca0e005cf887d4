import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

/// Reads the rows of a few orders, receipts and transactions by ID, with the same result as the merged streams.
struct OrderReader {
  let stores: StoreConnections
  let sales: SalesRows
  let rules: Rules

  // MARK: - Orders

  /// The groups of those orders that exist, each with the number of further rows of its ID.
  func groups(of orderIds: Set<Identifier>) throws -> [(group: OrderGroup, repeatedRows: Int)] {
    if orderIds.isEmpty { return [] }
    let proofs = Dictionary(grouping: try proofs(by: "order_id", orderIds)) { $0.receipt.orderId }
    let contained = try contained(ProofLink.ofLookups(where: "w.order_id IN (SELECT id FROM ids)"), orderIds)
    var lookups: [Identifier: LookedUp] = [:]
    let query = try LookupRow.query(hiding: sales.isHidden, where: "l.order_id IN (SELECT id FROM ids)")
    for row in try stores.own.rows(query, orderIds, { try LookupRow($0) }) {
      let keys = contained[row.orderId] ?? []
      lookups[row.orderId] = LookedUp(subjectId: row.subjectId, state: row.state, contained: keys)
    }
    return try rows(of: orderIds).map { orderId, rows in
      var group = OrderGroup(row: rows[0], proofs: proofs[orderId] ?? [])
      group.take(lookups[orderId], rules: rules)
      return (group: group, repeatedRows: rows.count - 1)
    }
  }

  /// The rows of existing orders among these, for each ID the row that counts first.
  private func rows(of orderIds: Set<Identifier>) throws -> [Identifier: [OrderRow]] {
    let rows = try stores.sales.rows(
      """
      SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o
      WHERE o.order_id::text COLLATE "C" IN (SELECT id FROM ids) AND \(try sales.isKnown("o.created_at"))
      """, orderIds
    ) { try sales.order($0, asOf: rules.asOf) }
    return Dictionary(grouping: rows, by: \.orderId).mapValues { $0.count == 1 ? $0 : OrderRow.sorted($0) }
  }

  /// The valid orders among these; for a repeated ID the row that counts.
  func orders(_ orderIds: Set<Identifier>) throws -> [Identifier: Order] {
    try rows(of: orderIds).compactMapValues { rows in
      guard case .valid(let order) = rows[0] else { return nil }
      return order
    }
  }

  /// IDs of orders with a row that meets `condition` on alias `o`, which need not be the row that counts.
  private func orderIds(where condition: String, _ ids: Set<Identifier>) throws -> Set<Identifier> {
    try stores.sales.firstColumn(
      """
      SELECT o.order_id::text FROM \(sales.schema).orders o
      WHERE \(condition) AND \(try sales.isKnown("o.created_at"))
      """, ids
    ).subtracting([""])
  }

  func orderIds(ofUsers userIds: Set<Identifier>) throws -> Set<Identifier> {
    try orderIds(where: #"o.user_id::text COLLATE "C" IN (SELECT id FROM ids)"#, userIds)
  }

  private func orderIds(stating transactionIds: Set<Identifier>) throws -> Set<Identifier> {
    try orderIds(where: "\(SalesRows.namedTransaction) IN (SELECT id FROM ids)", transactionIds)
  }

  /// Orders that may have one of these account tokens on file. A superset, to be filtered by the decoded rows.
  func orders(holding tokens: Set<String>) throws -> [Order] {
    if tokens.isEmpty { return [] }
    let ids = try orderIds(
      where: """
        regexp_replace(
          translate(lower(o.app_account_token::text COLLATE "C"), E'-{} \\t\\n\\x0B\\f\\r', ''), '^urn:uuid:', '')
          IN (SELECT id FROM ids)
        """, Set(tokens.map { Identifier($0) }))
    return Array(try orders(ids).values)
  }

  /// All orders of non-consumable products by the people who placed some of these orders for such products, for the
  /// finding `bought_twice`; nil if the people placed more orders than `limit`.
  func nonConsumables(beside orderIds: Set<Identifier>, atMost limit: Int = .max) throws -> [Order]? {
    guard let catalogue = rules.catalogue else { return [] }
    func read(_ orderIds: Set<Identifier>) throws -> [Order] {
      try orders(orderIds).values.filter { catalogue.isNonConsumable($0.productId) }
    }
    let buyers = try read(orderIds).reduce(into: Set<Identifier>()) { $0.formUnion(rules.people.ids(of: $1.userId)) }
    if buyers.isEmpty { return [] }
    let placed = try self.orderIds(ofUsers: buyers)
    return try placed.count > limit ? nil : read(placed)
  }

  /// The orders that state one of these transactions or have a proof of one.
  func orderIds(behind transactionIds: Set<Identifier>) throws -> Set<Identifier> {
    let (orders, receipts) = try mentions(of: transactionIds)
    return orders.union(
      try stores.sales.firstColumn(
        """
        SELECT r.order_id::text FROM \(sales.schema).receipts r
        WHERE r.receipt_id::text COLLATE "C" IN (SELECT id FROM ids) AND r.order_id IS NOT NULL
        """, receipts))
  }

  // MARK: - Transactions

  func transactions(_ transactionIds: Set<Identifier>) throws -> [TransactionRecord] {
    let query = try TransactionTable.byId(hiding: sales.isHidden, where: "t.transaction_id IN (SELECT id FROM ids)")
    return try stores.own.rows(query, transactionIds) { try TransactionTable.record($0, hiding: sales.hides) }
  }

  /// Orders that state one of these transactions or have a look-up of one. Receipts that contain one.
  func mentions(of transactionIds: Set<Identifier>) throws -> (orders: Set<Identifier>, receipts: Set<Identifier>) {
    let sources = try stores.own.rows(
      """
      SELECT l.subject_id, w.order_id FROM night_audit.receipt_transactions l
      LEFT JOIN night_audit.lookups w ON l.subject_kind = 'lookup' AND w.subject_id = l.subject_id
      WHERE l.transaction_id IN (SELECT id FROM ids)
      """, transactionIds
    ) { (subjectId: try $0.id(0), waiting: try $0.optionalId(1)) }
    let orders = try orderIds(stating: transactionIds).union(sources.compactMap(\.waiting))
    return (orders, Set(sources.filter { $0.waiting == nil }.map(\.subjectId)))
  }

  /// Orders that a token or a subscription could link to some transactions.
  func orderIds(linkedTo records: [TransactionRecord]) throws -> Set<Identifier> {
    var (tokens, originals): (Set<String>, Set<Identifier>) = ([], [])
    for record in records {
      if let token = record.statedToken { tokens.insert(token) }
      if record.expiresDate != nil, let original = record.originalTransactionId { originals.insert(original) }
      if let bundle = record.bundleTransactionId { originals.insert(bundle) }
    }
    let linked = try orders(holding: tokens).filter { order in
      records.contains { LinkableOrder(order, isStatedIDContained: false).isLinked(to: $0, rules: rules) }
    }
    return try (originals.isEmpty ? [] : orderIds(stating: originals)).union(linked.map(\.orderId))
  }

  /// IDs of transactions that a token or a subscription could link orders to.
  func transactionIds(linkedBy links: Set<UnprovenLink>) throws -> Set<Identifier> {
    var (tokens, originals): (Set<Identifier>, Set<Identifier>) = ([], [])
    for link in links {
      switch link {
      case .token(let token): tokens.insert(Identifier(token))
      case .subscription(let original): originals.insert(original)
      }
    }
    let searches = [
      ("t.app_account_token IS NOT NULL AND replace(lower(t.app_account_token), '-', '') COLLATE \"C\"", tokens),
      ("t.expires_at IS NOT NULL AND t.original_transaction_id", originals),
      ("t.expires_at IS NOT NULL AND coalesce(t.price_milliunits, 0) = 0 AND t.web_order_line_item_id", originals),
    ]
    var found: Set<Identifier> = []
    for (column, ids) in searches where !ids.isEmpty {
      found.formUnion(
        try stores.own.firstColumn(
          "SELECT t.transaction_id FROM night_audit.transactions t WHERE \(column) IN (SELECT id FROM ids)", ids))
    }
    return found
  }

  /// Transactions of the same purchases as some are, themselves included, and the periods of their subscriptions.
  func transactionIds(ofSamePurchasesAs transactionIds: Set<Identifier>) throws -> Set<Identifier> {
    let isRestore = TransactionTable.restoresAnotherID("r")
    let restored = try stores.own.firstColumn(
      """
      SELECT r.original_transaction_id FROM night_audit.transactions r
      WHERE r.transaction_id IN (SELECT id FROM ids) AND \(isRestore)
      """, transactionIds)
    let ids = transactionIds.union(restored)
    let restores = try stores.own.firstColumn(
      """
      SELECT r.transaction_id FROM night_audit.transactions r
      WHERE r.original_transaction_id IN (SELECT id FROM ids) AND \(isRestore)
      """, ids)
    let periods = try stores.own.firstColumn(
      """
      SELECT s.transaction_id FROM night_audit.transactions r
      JOIN night_audit.transactions s ON s.original_transaction_id = r.original_transaction_id
        AND s.environment = r.environment AND s.expires_at IS NOT NULL
      WHERE r.transaction_id IN (SELECT id FROM ids) AND r.expires_at IS NOT NULL
      """, transactionIds)
    return ids.union(restores).union(periods)
  }

  // MARK: - Receipts

  /// Receipts with checks and transactions. Includes all rows of their IDs, which decide which row counts.
  func proofs(by column: String, _ ids: Set<Identifier>) throws -> [Proof] {
    if ids.isEmpty { return [] }
    let chosen = try receipts(by: column, ids)
    let receiptIds = Set(chosen.map(\.receipt.receiptId)).subtracting([""])
    let rows = Dictionary(grouping: try receipts(by: "receipt_id", receiptIds), by: \.receipt.receiptId)
    let checks = try stores.own.rows(
      ReceiptRow.checks(hiding: sales.isHidden, where: "c.subject_id IN (SELECT id FROM ids)"), receiptIds
    ) { (id: try $0.id(0), state: try ProofState($0, from: 1)) }
    let states = checks.reduce(into: [Identifier: ProofState]()) { $0[$1.id] = $1.state }
    let contained = try contained(ProofLink.ofReceipts(where: "l.subject_id IN (SELECT id FROM ids)"), receiptIds)
    // An invalid ID is shown in a changed form, which finds no row.
    let unnamed = chosen.filter { rows[$0.receipt.receiptId] == nil }.map { Proof(receipt: $0.receipt, contained: []) }
    return rows.keys.sorted().reduce(into: unnamed) { proofs, id in
      var ofOne = ReceiptRow.ordered(rows[id] ?? []).map { Proof(receipt: $0.receipt, contained: []) }
      ofOne[0].receipt.state = states[id] ?? .neverChecked
      ofOne[0].contained = (contained[id] ?? []).filter(ofOne[0].receipt.state.containsTransaction)
      proofs += ofOne
    }
  }

  private func receipts(by column: String, _ ids: Set<Identifier>) throws -> [ReceiptRow] {
    try stores.sales.rows(
      """
      SELECT \(SalesRows.receiptColumns), TRUE FROM \(sales.schema).receipts r
      WHERE r.\(column)::text COLLATE "C" IN (SELECT id FROM ids) AND \(try sales.isKnown("r.received_at"))
      ORDER BY r.receipt_id::text COLLATE "C"
      """, ids
    ) { try ReceiptRow($0, asOf: rules.asOf) }
  }

  /// The transactions that proofs contain, by the ID for merging.
  private func contained(_ query: String, _ ids: Set<Identifier>) throws -> [Identifier: [TransactionKey]] {
    Dictionary(grouping: try stores.own.rows(query, ids) { try ProofLink($0) }, by: \.id)
      .mapValues { $0.map(\.key) }
  }

  // MARK: - Deliveries

  /// The order's deliveries. A delivery is a bad row if another row of its ID counts, which may be of another order.
  func deliveries(of orderId: Identifier) throws -> [Delivery] {
    var repeated = try RepeatedDeliveries(of: [orderId], sales, shop: stores.sales)
    var deliveries: [Delivery] = []
    var rows = try stores.sales.copyOut(try sales.deliveries(where: SalesRows.equals("d.order_id", orderId.text)))
    while try rows.advance() { deliveries.append(try sales.delivery(rows, asOf: rules.asOf)) }
    return repeated.mark(deliveries)
  }

  func ordersWithGoods(among orderIds: Set<Identifier>) throws -> Set<Identifier> {
    var repeated = try RepeatedDeliveries(of: orderIds, sales, shop: stores.sales)
    let query = try sales.deliveries(where: "d.order_id::text COLLATE \"C\" IN (SELECT id FROM ids)")
    let deliveries = try stores.sales.rows(query, orderIds) { try sales.delivery($0, asOf: rules.asOf) }
    return Set(repeated.mark(deliveries).filter(\.hasGoods).compactMap(\.orderId))
  }

  // MARK: - Users

  /// The order ID and the own ID of each receipt or delivery of a user; nil in place of an empty or invalid one.
  func rows(
    ofUser userId: Identifier, in relation: String, id: String, date: String
  ) throws -> [(orderId: Identifier?, id: Identifier?)] {
    var found: [(orderId: Identifier?, id: Identifier?)] = []
    var rows = try stores.sales.copyOut(
      """
      SELECT r.order_id::text, r.\(id)::text FROM \(sales.schema).\(relation) r
      WHERE \(try SalesRows.equals("r.user_id", userId.text)) AND \(try sales.isKnown("r.\(date)"))
      """)
    while try rows.advance() {
      let (orderId, id) = (try rows.validId(0), try rows.validId(1))
      found.append((orderId: orderId == "" ? nil : orderId, id: id == "" ? nil : id))
    }
    return found
  }
}

extension Delivery {
  var hasGoods: Bool { defect == nil && stands && (quantity ?? 0) > 0 }
}

extension BlockingConnection {
  /// Decodes the rows of a query that reads `ids`.
  func rows<Row>(
    _ query: String, _ ids: Set<Identifier>, _ decode: (borrowing CopyReader) throws -> Row
  ) throws -> [Row] {
    var rows: [Row] = []
    var reader = try copyOut(query, ids: ids)
    while try reader.advance() { rows.append(try decode(reader)) }
    return rows
  }

  /// The IDs in the first column of a query that reads `ids`. Rows without a valid one are left out.
  fileprivate func firstColumn(_ query: String, _ ids: Set<Identifier>) throws -> Set<Identifier> {
    Set(try rows(query, ids) { try $0.validId(0) }.compactMap(\.self))
  }
}

extension CopyReader {
  /// nil also for an ID that is not UTF-8, which a database without an encoding may have.
  fileprivate func validId(_ column: Int) throws(PostgresError) -> Identifier? {
    try isText(column) ? optionalId(column) : nil
  }
}
