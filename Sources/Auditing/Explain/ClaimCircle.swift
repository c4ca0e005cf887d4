import Postgres
import Reconciliation
import SalesStore

/// The orders that could have a say in what one order owns.
enum ClaimCircle {
  /// Walks from orders to the transactions that they name, brought or are filed under, from those to every order that
  /// does the same, and so on until nobody new turns up: claims outside cannot change what is settled inside.
  ///
  /// - Parameter connection: in a snapshot.
  static func orders(
    around orderId: Identifier, _ connection: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> Set<Identifier> {
    var orders: Set<Identifier> = [orderId]
    var transactions: Set<Identifier> = []
    var newOrders = [orderId.text]
    while !newOrders.isEmpty {
      var newTransactions: [String] = []
      for row in try connection.execute(transactionsOfOrders(sales), [.textArray(newOrders)]) {
        let id = try row.text(0)
        if transactions.insert(Identifier(id)).inserted { newTransactions.append(id) }
      }
      newOrders = []
      if newTransactions.isEmpty { break }
      for row in try connection.execute(ordersOfTransactions(sales), [.textArray(newTransactions)]) {
        let id = try row.text(0)
        if orders.insert(Identifier(id)).inserted { newOrders.append(id) }
      }
    }
    return orders
  }

  /// A proof that is no detour brought what is filed under its own order.
  private static func transactionsOfOrders(_ sales: SalesRows) -> String {
    """
    SELECT transaction_id FROM night_audit.transactions WHERE order_id = ANY ($1)
    UNION
    SELECT transaction_id FROM night_audit.receipt_transactions WHERE is_detour AND order_id = ANY ($1)
    UNION
    SELECT o.transaction_id::text FROM \(sales.schema).orders o
    WHERE o.order_id::text COLLATE "C" = ANY ($1) AND o.transaction_id IS NOT NULL
    """
  }

  private static func ordersOfTransactions(_ sales: SalesRows) -> String {
    """
    SELECT order_id FROM night_audit.transactions WHERE transaction_id = ANY ($1) AND order_id IS NOT NULL
    UNION
    SELECT order_id FROM night_audit.receipt_transactions WHERE transaction_id = ANY ($1) AND order_id IS NOT NULL
    UNION
    SELECT o.order_id::text FROM \(sales.schema).orders o
    WHERE o.transaction_id::text COLLATE "C" = ANY ($1) AND o.order_id IS NOT NULL
    """
  }
}
