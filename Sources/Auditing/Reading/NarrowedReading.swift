import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The rows for a report on one order or user: every claim to a listed payment, with its facts. Further orders are read
/// but neither judged nor listed, so the result equals that of a full audit.
struct NarrowedReading {
  private let orders: Set<Identifier>
  private let receipts: Set<Identifier>
  private let transactions: Set<Identifier>
  private let deliveries: Set<Identifier>
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

  /// nil if all rows are to be read.
  init?(
    _ plan: AuditPlan, _ sales: SalesRows, shop: borrowing BlockingConnection, own: borrowing BlockingConnection
  ) throws {
    guard plan.parts == nil, let beginning = try Beginning(plan, sales, shop: shop) else { return nil }
    let rules = plan.rules
    let around = try RelatedOrders(
      around: beginning.orders, receipts: beginning.receipts, atMost: Self.limit, shop: shop, own: own, sales,
      rules: rules)
    guard around.isWhole else { return nil }
    userId = plan.selection.orderId == nil ? plan.selection.userId : nil
    receipts = around.receiptIds.union(beginning.receipts)
    transactions = Set(around.references.keys)
    sharedPurchases = around.sharedPurchases
    orders = try around.referencedOrders.union(around.groups.keys).union(beginning.orders).union(
      beginning.referencedOrders
    )
    .union(Self.ordersWithToken(around, shop: shop, sales, rules: rules))
    deliveries = beginning.deliveries
    repeated = try RepeatedDeliveries(of: orders, and: deliveries, sales, shop: shop)
    try shop.store(orders, as: Self.storedOrders)
    try shop.store(deliveries, as: Self.storedDeliveries)
    try shop.store(receipts, as: Self.storedReceipts)
  }

  private struct Beginning {
    var orders: Set<Identifier> = []
    var receipts: Set<Identifier> = []
    /// Orders referenced by deliveries and receipts, existing or not: that decides findings about those.
    var referencedOrders: Set<Identifier> = []
    /// Deliveries without an order. For repeated IDs the first row counts, with any user.
    var deliveries: Set<Identifier> = []

    /// nil if the selection has neither an order nor a user, or the user has too many rows.
    init?(_ plan: AuditPlan, _ sales: SalesRows, shop: borrowing BlockingConnection) throws {
      if let orderId = plan.selection.orderId {
        orders = [orderId]
      } else if let userId = plan.selection.userId {
        orders = try OrderRow.ids(where: try SalesRows.equals("o.user_id", userId.text), [], shop: shop, sales)
        var sent = try shop.copyOut(
          """
          SELECT r.receipt_id::text, r.order_id::text FROM \(sales.schema).receipts r
          WHERE \(try SalesRows.equals("r.user_id", userId.text)) AND \(try sales.isKnown("r.received_at"))
          """)
        while try sent.advance() {
          if let id = try sent.optionalId(0), !id.isEmpty { receipts.insert(id) }
          if let id = try sent.optionalId(1), !id.isEmpty { referencedOrders.insert(id) }
        }
        _ = consume sent
        var received = try shop.copyOut(
          """
          SELECT d.order_id::text, d.delivery_id::text FROM \(sales.schema).deliveries d
          WHERE \(try SalesRows.equals("d.user_id", userId.text)) AND \(try sales.isKnown("d.delivered_at"))
          """)
        while try received.advance() {
          if let id = try received.optionalId(0), !id.isEmpty {
            referencedOrders.insert(id)
          } else if let id = try received.optionalId(1), !id.isEmpty {
            deliveries.insert(id)
          }
        }
      } else {
        return nil
      }
      guard [orders, receipts, referencedOrders, deliveries].allSatisfy({ $0.count <= NarrowedReading.limit }) else {
        return nil
      }
      try addRelatedPurchases(plan.rules, sales, shop: shop)
      guard orders.count <= NarrowedReading.limit else { return nil }
    }

    /// Adds other orders of the same non-consumable products, for the finding `bought_twice`.
    private mutating func addRelatedPurchases(
      _ rules: Rules, _ sales: SalesRows, shop: borrowing BlockingConnection
    ) throws {
      guard let catalogue = rules.catalogue else { return }
      let buyers = try OrderRow.counting(orders, shop: shop, sales, rules: rules)
        .filter { catalogue.isNonConsumable($0.productId) }
        .reduce(into: Set<Identifier>()) { $0.formUnion(rules.people.ids(of: $1.userId)) }
      if buyers.isEmpty { return }
      let placed = try OrderRow.ids(
        where: #"o.user_id::text COLLATE "C" IN (SELECT id FROM ids)"#, buyers, shop: shop, sales)
      guard placed.count <= NarrowedReading.limit else { return orders.formUnion(placed) }
      for order in try OrderRow.counting(placed, shop: shop, sales, rules: rules)
      where catalogue.isNonConsumable(order.productId) { orders.insert(order.orderId) }
    }
  }

  /// Orders with an account token on file that a payment carries and its own order lacks.
  private static func ordersWithToken(
    _ around: RelatedOrders, shop: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws -> Set<Identifier> {
    var tokens: Set<String> = []
    for record in around.records.values.joined() {
      guard case .stated(.some(let token)) = record.appAccountToken else { continue }
      let candidates = Candidates(
        for: record, references: around.references[record.transactionId] ?? [], rules: rules)
      if !candidates.withOtherToken.isEmpty || record.linkingToken != nil {
        tokens.insert(AccountToken.spelling(token))
      }
    }
    if tokens.isEmpty { return [] }
    return Set(try OrderRow.holding(tokens, shop: shop, sales, rules: rules).map(\.orderId))
  }

  // MARK: - The rows

  func store(on own: borrowing BlockingConnection) throws(PostgresError) {
    try own.store(orders, as: Self.storedOrders)
    try own.store(receipts, as: Self.storedReceipts)
    try own.store(transactions, as: Self.storedTransactions)
  }

  func totals(_ sales: SalesRows, on shop: borrowing BlockingConnection) throws(PostgresError) -> SalesTotals {
    try SalesTotals(sales, where: Self.named("o.order_id", Self.storedOrders), try nameless("o"), on: shop)
  }

  func query(_ relation: AuditRelation, _ plan: AuditPlan, _ sales: SalesRows) throws -> String {
    switch relation {
    case .receipts:
      try sales.receipts(
        where: Self.named("r.receipt_id", Self.storedReceipts),
        "\(Self.lacksId("r.receipt_id")) AND \(Self.named("r.order_id", Self.storedOrders))",
        "\(Self.lacksId("r.receipt_id")) AND \(Self.lacksId("r.order_id")) AND \(try isOfUser("r"))",
        listedIn: plan.selection.receiptScope(sales, onlyBundleId: plan.onlyBundleId))
    case .checks: ReceiptRow.checks(where: Self.storedReceipts.contain("c.subject_id"))
    case .receiptLinks: ProofLink.ofReceipts(where: Self.storedReceipts.contain("l.subject_id"))
    case .orders: try sales.orders(where: Self.named("o.order_id", Self.storedOrders), try nameless("o"))
    case .lookups: LookupRow.query(where: Self.storedOrders.contain("l.order_id"))
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
