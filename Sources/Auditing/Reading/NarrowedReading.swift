import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The rows for a report on one order or user: every claim to a listed payment, with its facts. Further orders are read
/// but not listed, so the result equals that of a full audit.
struct NarrowedReading {
  private let plan: AuditPlan
  private let sales: SalesRows
  /// Orders to read, and orders that deliveries and receipts refer to, existing or not: that decides findings on those.
  private var orders: Set<Identifier> = []
  private var receipts: Set<Identifier> = []
  private let transactions: Set<Identifier>
  /// Deliveries without an order. For repeated IDs the first row counts, with any user.
  private var deliveries: Set<Identifier> = []
  /// The user whose rows without an ID are read too; nil for a report on an order.
  private let userId: Identifier?
  /// Fingerprints of purchases that more than one of the transactions is of.
  let sharedPurchases: Set<UInt64>
  let repeated: RepeatedDeliveries

  private static let storedOrders = StoredIds(name: "orders")
  private static let storedReceipts = StoredIds(name: "receipts")
  private static let storedTransactions = StoredIds(name: "transactions")
  private static let storedDeliveries = StoredIds(name: "deliveries")

  /// Beyond this number of orders or receipts all rows are streamed, in bounded memory.
  private static let limit = 5_000

  /// nil if all rows are to be read: the selection has neither an order nor a user, or they have too many rows.
  init?(_ plan: AuditPlan, _ reader: OrderReader) throws {
    guard plan.parts == nil else { return nil }
    (self.plan, sales) = (plan, reader.sales)
    userId = plan.selection.orderId == nil && !plan.selection.matchesNoRow ? plan.selection.userId : nil
    var start: Set<Identifier>
    if plan.selection.matchesNoRow {
      start = []
    } else if let orderId = plan.selection.orderId {
      start = [orderId]
    } else if let userId {
      // Orders and payments under other IDs of the person share amounts at risk with the listed ones.
      let users = reader.rules.people.ids(of: userId)
      start = try reader.orderIds(ofUsers: users)
      for user in users {
        for row in try reader.rows(ofUser: user, in: "receipts", id: "receipt_id", date: "received_at") {
          if let id = row.id { receipts.insert(id) }
          if let id = row.orderId { orders.insert(id) }
        }
      }
      for row in try reader.rows(ofUser: userId, in: "deliveries", id: "delivery_id", date: "delivered_at") {
        if let id = row.orderId { orders.insert(id) } else if let id = row.id { deliveries.insert(id) }
      }
    } else {
      return nil
    }
    guard [start, receipts, orders, deliveries].allSatisfy({ $0.count <= Self.limit }),
      let related = try reader.nonConsumables(beside: start, atMost: Self.limit)
    else { return nil }
    start.formUnion(related.map(\.orderId))
    guard start.count <= Self.limit else { return nil }
    let around = try RelatedOrders(around: start, receipts: receipts, atMost: Self.limit, reader)
    guard around.isWhole else { return nil }
    receipts.formUnion(around.receiptIds)
    transactions = Set(around.references.keys)
    sharedPurchases = around.sharedPurchases
    orders.formUnion(start.union(around.groups.keys).union(around.referencedOrders))
    orders.formUnion(try reader.orders(holding: Self.tokens(of: around, reader.rules)).map(\.orderId))
    repeated = try RepeatedDeliveries(of: orders, and: deliveries, sales, shop: reader.stores.sales)
    try reader.stores.sales.store(orders, as: Self.storedOrders)
    try reader.stores.sales.store(deliveries, as: Self.storedDeliveries)
    try reader.stores.sales.store(receipts, as: Self.storedReceipts)
  }

  /// Account tokens that a payment carries and its own order lacks: further orders may have them on file.
  private static func tokens(of around: RelatedOrders, _ rules: Rules) -> Set<String> {
    var tokens: Set<String> = []
    for record in around.records.values.joined() {
      guard let token = record.statedToken else { continue }
      let candidates = Candidates(
        for: record, references: around.references[record.transactionId] ?? [], rules: rules)
      if !candidates.withOtherToken.isEmpty || record.linkingToken != nil { tokens.insert(token) }
    }
    return tokens
  }

  // MARK: - The rows

  func store(on own: borrowing BlockingConnection) throws(PostgresError) {
    try own.store(orders, as: Self.storedOrders)
    try own.store(receipts, as: Self.storedReceipts)
    try own.store(transactions, as: Self.storedTransactions)
  }

  func totals(on shop: borrowing BlockingConnection) throws(PostgresError) -> SalesTotals {
    try SalesTotals(sales, where: Self.named("o.order_id", Self.storedOrders), try nameless("o"), on: shop)
  }

  func query(_ relation: AuditRelation) throws -> String {
    switch relation {
    case .receipts:
      try sales.receipts(
        where: Self.named("r.receipt_id", Self.storedReceipts),
        "\(Self.lacksId("r.receipt_id")) AND \(Self.named("r.order_id", Self.storedOrders))",
        "\(Self.lacksId("r.receipt_id")) AND \(Self.lacksId("r.order_id")) AND \(try isOfUser("r"))",
        listedIn: plan.selection.receiptScope(sales, onlyBundleId: plan.onlyBundleId))
    case .checks: try ReceiptRow.checks(hiding: sales.isHidden, where: Self.storedReceipts.contain("c.subject_id"))
    case .receiptLinks: ProofLink.ofReceipts(where: Self.storedReceipts.contain("l.subject_id"))
    case .orders: try sales.orders(where: Self.named("o.order_id", Self.storedOrders), try nameless("o"))
    case .lookups: try LookupRow.query(hiding: sales.isHidden, where: Self.storedOrders.contain("l.order_id"))
    case .lookupLinks: ProofLink.ofLookups(where: Self.storedOrders.contain("w.order_id"))
    case .transactions:
      try TransactionTable.byId(hiding: sales.isHidden, where: Self.storedTransactions.contain("t.transaction_id"))
    case .deliveries:
      try sales.deliveries(
        where: Self.named("d.order_id", Self.storedOrders),
        "\(Self.lacksId("d.order_id")) AND \(Self.named("d.delivery_id", Self.storedDeliveries))",
        "\(Self.lacksId("d.delivery_id")) AND \(try nameless("d"))")
    }
  }

  private static func named(_ column: String, _ list: StoredIds) -> String {
    list.contain("\(column)::text COLLATE \"C\"")
  }

  private static func lacksId(_ column: String) -> String { "nullif(\(column)::text COLLATE \"C\", '') IS NULL" }

  private func isOfUser(_ alias: String) throws(PostgresError) -> String {
    guard let userId else { return "FALSE" }
    return try SalesRows.equals("\(alias).user_id", userId.text)
  }

  private func nameless(_ alias: String) throws(PostgresError) -> String {
    "\(Self.lacksId("\(alias).order_id")) AND \(try isOfUser(alias))"
  }
}
