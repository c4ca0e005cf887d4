import Postgres
import Reconciliation

/// Claims that cannot be settled order by order: a transaction that an order names although it is filed under another one,
/// or that receipts of several orders brought.
///
/// Everything else is settled while the streams pass. Memory grows with what is contested, not with orders.
struct ContestedClaims {
  /// An order that takes part in a contest, and what that has come to for it.
  struct Contestant {
    let orderId: Identifier
    /// All of its receipts, sound ones too.
    let receipts: [Receipt]
    let brought: [TransactionRecord]
    fileprivate(set) var claims = OrderClaims()
  }

  /// In the byte order of their ids.
  let contestants: [Contestant]
  /// What the contests are about.
  private let keys: Set<TransactionKey>
  /// Every transaction that some contestant claims, names or owns.
  private let claimed: Set<TransactionKey>

  /// Whether some contest is about this transaction.
  func contains(_ key: TransactionKey) -> Bool { keys.contains(key) }

  /// Whether a contestant claims, names or owns this transaction.
  func isClaimed(_ key: TransactionKey) -> Bool { claimed.contains(key) }

  /// Reads what is contested and settles it.
  ///
  /// - Parameters:
  ///   - connection: in the run's snapshot.
  ///   - circle: the only orders that are looked at; whoever else could contest their claims must be among them.
  ///   - readReceipts: finds all receipts of some orders, each order's in the byte order of their ids.
  init(
    _ connection: borrowing BlockingConnection, sales: SalesRows, rules: Rules, among circle: Set<Identifier>? = nil,
    readReceipts: (Set<Identifier>) throws -> [Identifier: [Receipt]]
  ) throws {
    var collected = try ContestedClaims.collect(connection, sales, among: circle)
    keys = collected.keys
    var receipts = try readReceipts(collected.orderIds)
    var claimants: [Claimant] = []
    var contestants: [Contestant] = []
    try ContestedClaims.orders(collected.orderIds, connection, sales, asOf: rules.asOf) { order in
      // A view may have an order twice.
      guard collected.orderIds.remove(order.orderId) != nil else { return }
      var brought = collected.filed.removeValue(forKey: order.orderId) ?? []
      brought += (collected.detours[order.orderId] ?? []).compactMap { collected.records[$0] }
      if let named = order.transactionId {
        for environment in AppleEnvironment.allCases {
          let key = TransactionKey(environment: environment, transactionId: named)
          if let record = collected.records[key], !brought.contains(where: { $0.key == key }) { brought.append(record) }
        }
      }
      let facts = OrderFacts(
        order: order, receipts: receipts.removeValue(forKey: order.orderId) ?? [], brought: brought)
      claimants.append(facts.claimant)
      contestants.append(Contestant(orderId: order.orderId, receipts: facts.receipts, brought: facts.brought))
    }
    let settlement = Settlement(settling: claimants, rules: rules)
    claimed = settlement.claimed
    for place in contestants.indices {
      contestants[place].claims = settlement.claims[contestants[place].orderId] ?? OrderClaims()
    }
    contestants.sort { $0.orderId < $1.orderId }
    self.contestants = contestants
  }

  private struct Collected {
    var keys: Set<TransactionKey> = []
    var orderIds: Set<Identifier> = []
    /// Contested transactions.
    var records: [TransactionKey: TransactionRecord] = [:]
    /// Every transaction that is filed under a contesting order, contested or not.
    var filed: [Identifier: [TransactionRecord]] = [:]
    var detours: [Identifier: [TransactionKey]] = [:]
  }

  private static func collect(
    _ connection: borrowing BlockingConnection, _ sales: SalesRows, among circle: Set<Identifier>?
  ) throws -> Collected {
    var collected = Collected()
    let restrictions =
      try circle.map { try literals(Array($0)).map { "o.order_id::text COLLATE \"C\" = ANY (\($0))" } } ?? ["TRUE"]
    for restriction in restrictions { try collect(&collected, connection, sales, restriction) }
    if collected.keys.isEmpty { return collected }
    // The orders that contested transactions are filed under take part with everything that is theirs.
    for record in try transactions("t.transaction_id", collected.keys.map(\.transactionId), connection) {
      guard collected.keys.contains(record.record.key) else { continue }
      collected.records[record.record.key] = record.record
      if let orderId = record.orderId { collected.orderIds.insert(orderId) }
    }
    for record in try transactions("t.order_id", Array(collected.orderIds), connection) {
      if let orderId = record.orderId { collected.filed[orderId, default: []].append(record.record) }
    }
    return collected
  }

  /// - Parameter restriction: a condition on orders aliased `o`.
  private static func collect(
    _ collected: inout Collected, _ connection: borrowing BlockingConnection, _ sales: SalesRows, _ restriction: String
  ) throws {
    var named = try connection.copyOut(
      """
      SELECT o.order_id::text, t.environment, t.transaction_id
      FROM \(sales.schema).orders o
      JOIN night_audit.transactions t ON t.transaction_id = o.transaction_id::text
      WHERE t.order_id IS DISTINCT FROM o.order_id::text AND \(restriction)
      """)
    while try named.advance() {
      collected.orderIds.insert(try named.id(0))
      collected.keys.insert(try key(named, 1))
    }
    // Whoever names a transaction claims no other one that is named: such a detour contests nothing.
    var detours = try connection.copyOut(
      """
      SELECT l.order_id, l.environment, l.transaction_id FROM night_audit.receipt_transactions l
      JOIN \(sales.schema).orders o ON o.order_id::text = l.order_id
      LEFT JOIN night_audit.transactions t ON t.transaction_id = l.transaction_id AND t.environment = l.environment
      LEFT JOIN \(sales.schema).orders filed ON filed.order_id::text = t.order_id
      WHERE l.is_detour
        AND (o.transaction_id IS NULL OR filed.transaction_id::text IS DISTINCT FROM l.transaction_id)
        AND \(restriction)
      """)
    while try detours.advance() {
      let orderId = try detours.id(0)
      let key = try key(detours, 1)
      collected.orderIds.insert(orderId)
      collected.keys.insert(key)
      collected.detours[orderId, default: []].append(key)
    }
  }

  private static func key(_ row: borrowing CopyReader, _ column: Int) throws -> TransactionKey {
    TransactionKey(
      environment: try row.word(column, of: Vocabularies.environment) ?? .localTesting,
      transactionId: try row.id(column + 1))
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

  /// Ids as array constants of bounded length: COPY takes no parameters.
  private static func literals(_ ids: [Identifier]) throws -> [String] {
    let sorted = ids.sorted()
    return try stride(from: 0, to: sorted.count, by: 1_000).map { start in
      let items = try sorted[start..<min(start + 1_000, sorted.count)].map { try PostgresLiteral.text($0.text) }
      return "ARRAY[\(items.joined(separator: ","))]::text[]"
    }
  }
}
