import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

// Reads a few groups by order ID, with the same result as the merged streams.

extension OrderGroup {
  /// The groups of some orders that exist. `repeatedRows` receives the number of further rows of each ID.
  static func groups(
    of orderIds: Set<Identifier>, shop: borrowing BlockingConnection, own: borrowing BlockingConnection,
    _ sales: SalesRows, rules: Rules, _ repeatedRows: inout [Identifier: Int]
  ) throws -> [OrderGroup] {
    let rows = try OrderRow.rows(of: orderIds, shop: shop, sales, rules: rules)
    let proofs = Dictionary(
      grouping: try Proof.proofs(
        "r.order_id::text COLLATE \"C\" IN (SELECT id FROM ids)", orderIds, shop: shop, own: own, sales, rules: rules)
    ) { $0.receipt.orderId }
    var lookups: [Identifier: LookedUp] = [:]
    var waiting = try own.copyOut(LookupRow.query(where: "l.order_id IN (SELECT id FROM ids)"), ids: orderIds)
    while try waiting.advance() {
      let row = try LookupRow(waiting)
      lookups[row.orderId] = LookedUp(subjectId: row.subjectId, state: row.state, contained: [])
    }
    var links = try own.copyOut(ProofLink.ofLookups(where: "w.order_id IN (SELECT id FROM ids)"), ids: orderIds)
    while try links.advance() {
      let link = try ProofLink(links)
      lookups[link.id]?.contained.append(link.key)
    }
    return rows.map { orderId, rows in
      repeatedRows[orderId] = rows.count - 1
      var group = OrderGroup(row: rows[0], proofs: proofs[orderId] ?? [])
      group.take(lookups[orderId], rules: rules)
      return group
    }
  }
}

extension OrderRow {
  /// The rows of existing orders among these, for each ID the row that counts first.
  static func rows(
    of orderIds: Set<Identifier>, shop: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws -> [Identifier: [OrderRow]] {
    var rows: [Identifier: [OrderRow]] = [:]
    var orders = try shop.copyOut(
      """
      SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o
      WHERE o.order_id::text COLLATE "C" IN (SELECT id FROM ids) AND \(try sales.isKnown("o.created_at"))
      """, ids: orderIds)
    while try orders.advance() {
      let row = try sales.order(orders, asOf: rules.asOf)
      rows[row.orderId, default: []].append(row)
    }
    return rows.mapValues { $0.count == 1 ? $0 : sorted($0) }
  }

  /// IDs of orders with a row that meets `condition` on alias `o`, which need not be the row that counts.
  static func ids(
    where condition: String, _ ids: Set<Identifier>, shop: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> Set<Identifier> {
    var orderIds: Set<Identifier> = []
    var found = try shop.copyOut(
      """
      SELECT o.order_id::text FROM \(sales.schema).orders o
      WHERE \(condition) AND \(try sales.isKnown("o.created_at"))
      """, ids: ids)
    while try found.advance() { if let id = try found.optionalId(0), !id.isEmpty { orderIds.insert(id) } }
    return orderIds
  }

  static func counting(
    _ orderIds: Set<Identifier>, shop: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws -> [Order] {
    try rows(of: orderIds, shop: shop, sales, rules: rules).values.compactMap { rows -> Order? in
      guard case .valid(let order) = rows[0] else { return nil }
      return order
    }
  }

  /// Orders that may have one of these account tokens on file. A superset, to be filtered by the decoded rows.
  static func holding(
    _ tokens: Set<String>, shop: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws -> [Order] {
    let ids = try ids(
      where: """
        regexp_replace(
          translate(lower(o.app_account_token::text COLLATE "C"), E'-{} \\t\\n\\x0B\\f\\r', ''), '^urn:uuid:', '')
          IN (SELECT id FROM ids)
        """, Set(tokens.map { Identifier($0) }), shop: shop, sales)
    return try counting(ids, shop: shop, sales, rules: rules)
  }
}

extension Proof {
  /// Receipts (alias `r`) with checks and transactions. Includes all rows of their IDs, which decide which row counts.
  static func proofs(
    _ restriction: String, _ ids: Set<Identifier>, shop: borrowing BlockingConnection,
    own: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws -> [Proof] {
    let chosen = try receipts(restriction, ids, shop: shop, sales, rules: rules)
    let receiptIds = Set(chosen.map(\.receipt.receiptId)).subtracting([""])
    let sameIds = try receipts(
      "r.receipt_id::text COLLATE \"C\" IN (SELECT id FROM ids)", receiptIds, shop: shop, sales, rules: rules)
    let rows = Dictionary(grouping: sameIds, by: \.receipt.receiptId)
    var states: [Identifier: ProofState] = [:]
    var checks = try own.copyOut(ReceiptRow.checks(where: "c.subject_id IN (SELECT id FROM ids)"), ids: receiptIds)
    while try checks.advance() { states[try checks.id(0)] = try ProofState(checks, from: 1) }
    var contained: [Identifier: [TransactionKey]] = [:]
    var links = try own.copyOut(ProofLink.ofReceipts(where: "l.subject_id IN (SELECT id FROM ids)"), ids: receiptIds)
    while try links.advance() {
      let link = try ProofLink(links)
      contained[link.id, default: []].append(link.key)
    }
    // An invalid ID is shown in a changed form, which finds no row.
    let unnamed = chosen.filter { rows[$0.receipt.receiptId] == nil }.map { Proof(receipt: $0.receipt, contained: []) }
    return rows.keys.sorted().reduce(into: unnamed) { proofs, id in
      var ofOne = ReceiptRow.ordered(rows[id] ?? []).map { Proof(receipt: $0.receipt, contained: []) }
      ofOne[0].receipt.state = states[id] ?? .neverChecked
      ofOne[0].contained = (contained[id] ?? []).filter(ofOne[0].receipt.state.containsTransaction)
      proofs += ofOne
    }
  }

  private static func receipts(
    _ restriction: String, _ ids: Set<Identifier>, shop: borrowing BlockingConnection, _ sales: SalesRows, rules: Rules
  ) throws -> [ReceiptRow] {
    var receipts: [ReceiptRow] = []
    var rows = try shop.copyOut(
      """
      SELECT \(SalesRows.receiptColumns), TRUE FROM \(sales.schema).receipts r
      WHERE \(restriction) AND \(try sales.isKnown("r.received_at"))
      ORDER BY r.receipt_id::text COLLATE "C"
      """, ids: ids)
    while try rows.advance() { receipts.append(try ReceiptRow(rows, asOf: rules.asOf)) }
    return receipts
  }
}
