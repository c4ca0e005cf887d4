import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// The relations that an audit reads, each in the byte order of its first column, missing IDs last. For orders and
/// receipts they may come first.
enum AuditRelation: UInt8, CaseIterable {
  case receipts = 1
  case checks, receiptLinks
  case orders, lookups, lookupLinks
  case transactions
  case deliveries
}

protocol AuditRows: AnyObject {
  /// Reads the part's rows of a relation. One of a store at a time, except `receiptLinks` and `lookupLinks`.
  func read(_ relation: AuditRelation) throws -> CopyReader

  /// Reads the part's deliveries of some orders, perhaps with others, in the byte order of order IDs.
  func readDeliveries(of orderIds: some Collection<Identifier>) throws -> CopyReader
}

extension AuditRelation {
  var isOfShop: Bool {
    switch self {
    case .receipts, .orders, .deliveries: true
    case .checks, .receiptLinks, .lookups, .lookupLinks, .transactions: false
    }
  }

  func cuts(of partition: AuditPartition) -> Cuts {
    switch self {
    case .receipts, .checks, .receiptLinks: partition.receipts
    case .orders, .lookups, .lookupLinks, .deliveries: partition.orders
    case .transactions: partition.transactions
    }
  }

  func query(_ plan: AuditPlan, _ sales: SalesRows, _ partition: AuditPartition, part: Int) throws -> String {
    let cuts = cuts(of: partition)
    func lies(_ column: String) throws(PostgresError) -> String { try cuts.condition(part, on: column) }
    switch self {
    case .receipts:
      return try sales.receipts(
        where: lies(sales.ordering.key(.receiptId)),
        listedIn: plan.selection.receiptScope(sales, onlyBundleId: plan.onlyBundleId))
    case .checks: return try ReceiptRow.checks(hiding: sales.isHidden, where: lies("c.subject_id"))
    case .receiptLinks: return ProofLink.ofReceipts(where: try lies("l.subject_id"))
    case .orders: return try sales.orders(where: lies(sales.ordering.key(.orderId)))
    case .lookups: return try LookupRow.query(hiding: sales.isHidden, where: lies("l.order_id"))
    case .lookupLinks: return ProofLink.ofLookups(where: try lies("w.order_id"))
    case .transactions: return try TransactionTable.byId(hiding: sales.isHidden, where: lies("t.transaction_id"))
    case .deliveries: return try sales.deliveries(where: lies(sales.ordering.key(.deliveredOrderId)))
    }
  }
}

extension StoredIds {
  static let contested = StoredIds(name: "contested")

  func deliveries(_ sales: SalesRows, _ partition: AuditPartition, part: Int) throws -> String {
    let lies = try partition.orders.condition(part, on: sales.ordering.key(.deliveredOrderId))
    return try sales.deliveries(where: "\(lies) AND \(contain("d.order_id::text COLLATE \"C\""))")
  }
}

extension Cuts {
  /// The SQL condition for a part, on a column that compares byte by byte.
  func condition(_ part: Int, on column: String) throws(PostgresError) -> String {
    let (from, before) = bounds(of: part)
    var conditions: [String] = []
    if let from {
      let lowerBoundCondition = "\(column) >= \(try PostgresLiteral.text(from.text))"
      conditions.append(before == nil ? "(\(lowerBoundCondition) OR \(column) IS NULL)" : lowerBoundCondition)
    }
    if let before { conditions.append("\(column) < \(try PostgresLiteral.text(before.text))") }
    return conditions.isEmpty ? "TRUE" : conditions.joined(separator: " AND ")
  }
}
