import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

/// Claims that cannot be settled order by order: a transaction that an order names although it is filed under another one,
/// or that receipts of several orders brought.
///
/// Everything else is settled while the streams pass. Only ids are held of all contests; they are settled batch by batch.
struct Contests {
  /// Orders whose claims depend on no order outside.
  struct Batch {
    fileprivate(set) var orderIds: Set<Identifier> = []
    /// What the contests are about.
    fileprivate(set) var keys: Set<TransactionKey> = []
    /// Of an order, the contested transactions that its receipts brought.
    fileprivate var detours: [Identifier: [TransactionKey]] = [:]
  }

  private(set) var batches: [Batch] = []
  private var batchByOrder: [Identifier: Int32] = [:]

  /// The place in `batches` where an order is; nil for one that contests nothing.
  func batch(of orderId: Identifier) -> Int? { batchByOrder[orderId].map { Int($0) } }

  /// An order that has to do with a transaction.
  private struct Link {
    var orderId: Identifier
    var key: TransactionKey
    var isDetour = false
  }

  /// Finds out who contests what.
  ///
  /// - Parameters:
  ///   - connection: in the run's snapshot.
  ///   - circle: the only orders that are looked at; whoever else could contest their claims must be among them.
  ///   - batchSize: orders in a batch at least, but for the last one. More take more memory and nothing else.
  init(
    _ connection: borrowing BlockingConnection, _ sales: SalesRows, among circle: Set<Identifier>? = nil,
    batchSize: Int
  ) throws {
    let restrictions =
      try circle.map { try Contests.literals(Array($0)).map { "o.order_id::text COLLATE \"C\" = ANY (\($0))" } }
      ?? ["TRUE"]
    var links: [Link] = []
    for restriction in restrictions { links += try Contests.links(connection, sales, restriction) }
    var places: [Identifier: Int] = [:]
    let edges = links.map { link in
      let place = places[link.orderId] ?? places.count
      places[link.orderId] = place
      return (order: place, key: link.key)
    }
    var batch = Batch()
    for component in Settlement.components(edges) {
      for link in component.map({ links[$0] }) {
        batch.orderIds.insert(link.orderId)
        batch.keys.insert(link.key)
        if link.isDetour { batch.detours[link.orderId, default: []].append(link.key) }
        batchByOrder[link.orderId] = Int32(batches.count)
      }
      if batch.orderIds.count >= batchSize {
        batches.append(batch)
        batch = Batch()
      }
    }
    if !batch.orderIds.isEmpty { batches.append(batch) }
  }

  /// - Parameter restriction: a condition on orders aliased `o`.
  private static func links(
    _ connection: borrowing BlockingConnection, _ sales: SalesRows, _ restriction: String
  ) throws -> [Link] {
    var links: [Link] = []
    func take(_ row: borrowing CopyReader, isDetour: Bool) throws {
      let key = TransactionKey(
        environment: try row.word(1, of: Vocabularies.environment) ?? .localTesting, transactionId: try row.id(2))
      links.append(Link(orderId: try row.id(0), key: key, isDetour: isDetour))
      // The order that the transaction is filed under takes part with everything that is its own.
      if let owner = try row.optionalId(3) { links.append(Link(orderId: owner, key: key)) }
    }
    var named = try connection.copyOut(
      """
      SELECT o.order_id::text, t.environment, t.transaction_id, t.order_id
      FROM \(sales.schema).orders o
      JOIN night_audit.transactions t ON t.transaction_id = o.transaction_id::text
      WHERE t.order_id IS DISTINCT FROM o.order_id::text AND o.order_id IS NOT NULL AND \(restriction)
      """)
    while try named.advance() { try take(named, isDetour: false) }
    // Whoever names a transaction claims no other one that is named: such a detour contests nothing.
    var detours = try connection.copyOut(
      """
      SELECT l.order_id, l.environment, l.transaction_id, t.order_id FROM night_audit.receipt_transactions l
      JOIN \(sales.schema).orders o ON o.order_id::text = l.order_id
      LEFT JOIN night_audit.transactions t ON t.transaction_id = l.transaction_id AND t.environment = l.environment
      LEFT JOIN \(sales.schema).orders filed ON filed.order_id::text = t.order_id
      WHERE l.is_detour
        AND (o.transaction_id IS NULL OR filed.transaction_id::text IS DISTINCT FROM l.transaction_id)
        AND \(restriction)
      """)
    while try detours.advance() { try take(detours, isDetour: true) }
    return links
  }

  // MARK: - Settling

  /// Settles a batch.
  ///
  /// - Parameters:
  ///   - receipts: all receipts of its orders, by order.
  ///   - connection: in the run's snapshot.
  /// - Returns: its orders in no order, and every transaction that some of them claims, names or owns.
  static func settle(
    _ batch: Batch, receipts: [Identifier: [Receipt]], _ connection: borrowing BlockingConnection, _ sales: SalesRows,
    rules: Rules
  ) throws -> (contestants: [Contestant], claimed: Set<TransactionKey>) {
    var contested: [TransactionKey: TransactionRecord] = [:]
    for filed in try transactions("t.transaction_id", batch.keys.map(\.transactionId), connection)
    where batch.keys.contains(filed.record.key) {
      contested[filed.record.key] = filed.record
    }
    var filed: [Identifier: [TransactionRecord]] = [:]
    for one in try transactions("t.order_id", Array(batch.orderIds), connection) {
      if let orderId = one.orderId { filed[orderId, default: []].append(one.record) }
    }
    var claimants: [Claimant] = []
    var contestants: [Identifier: Contestant] = [:]
    try orders(batch.orderIds, connection, sales, asOf: rules.asOf) { order in
      // A view may have an order twice.
      if contestants[order.orderId] != nil { return }
      var brought = filed[order.orderId] ?? []
      brought += (batch.detours[order.orderId] ?? []).compactMap { contested[$0] }
      if let named = order.transactionId {
        for environment in AppleEnvironment.allCases {
          let key = TransactionKey(environment: environment, transactionId: named)
          if let record = contested[key], !brought.contains(where: { $0.key == key }) { brought.append(record) }
        }
      }
      let facts = OrderFacts(order: order, receipts: receipts[order.orderId] ?? [], brought: brought)
      claimants.append(facts.claimant)
      contestants[order.orderId] = Contestant(
        orderId: order.orderId, receipts: facts.receipts, brought: facts.brought, claims: OrderClaims())
    }
    let settlement = Settlement(settling: claimants, rules: rules)
    for (orderId, claims) in settlement.claims { contestants[orderId]?.claims = claims }
    return (Array(contestants.values), settlement.claimed)
  }

  /// Transactions by the values of one column.
  static func transactions(
    _ column: String, _ ids: [Identifier], _ connection: borrowing BlockingConnection
  ) throws -> [FiledTransaction] {
    var found: [FiledTransaction] = []
    for list in try literals(ids) {
      var reader = try connection.copyOut(
        "SELECT \(TransactionTable.columns) FROM night_audit.transactions t WHERE \(column) = ANY (\(list))")
      while try reader.advance() { found.append(try FiledTransaction(reader)) }
    }
    return found
  }

  /// Those of some orders that keep the sales schema's contract.
  static func orders(
    _ ids: Set<Identifier>, _ connection: borrowing BlockingConnection, _ sales: SalesRows, asOf: Instant,
    each: (Order) -> Void
  ) throws {
    for list in try literals(Array(ids)) {
      var reader = try connection.copyOut(
        """
        SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o
        WHERE o.order_id::text COLLATE "C" = ANY (\(list))
        """)
      while try reader.advance() {
        if case .valid(let order) = try SalesRows.order(reader, asOf: asOf) { each(order) }
      }
    }
  }

  /// The receipts of some orders, by order.
  static func receipts(
    _ ids: Set<Identifier>, _ connection: borrowing BlockingConnection, _ sales: SalesRows, asOf: Instant
  ) throws -> [Identifier: [Receipt]] {
    var found: [Identifier: [Receipt]] = [:]
    for list in try literals(Array(ids)) {
      var reader = try connection.copyOut(
        ReceiptRow.joined(sales, where: "r.order_id::text COLLATE \"C\" = ANY (\(list))"))
      while try reader.advance() {
        let receipt = try ReceiptRow(joined: reader, asOf: asOf).receipt
        if let orderId = receipt.orderId { found[orderId, default: []].append(receipt) }
      }
    }
    return found
  }

  /// Room for a batch that the last contest in it took over its size: each list is a question of its own.
  private static let literalSize = 2_000

  /// Ids as array constants of bounded length: COPY takes no parameters.
  private static func literals(_ ids: [Identifier]) throws -> [String] {
    let sorted = ids.sorted()
    return try stride(from: 0, to: sorted.count, by: literalSize).map { start in
      let items = try sorted[start..<min(start + literalSize, sorted.count)].map { try PostgresLiteral.text($0.text) }
      return "ARRAY[\(items.joined(separator: ","))]::text[]"
    }
  }
}
