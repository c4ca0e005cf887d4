import Postgres
import Reconciliation
import SalesStore
import Streams

/// Whose account tokens are, for orders without a token whose transaction carries one. Shops that keep the tokens they give
/// to StoreKit have no such orders, so the tables are only joined when the first one comes.
///
/// Used by one thread at a time; not `Sendable`.
final class AccountTokens {
  private let sales: SalesRows
  /// By order: another user that the shop has the token for.
  private var users: [Identifier: Identifier]?

  init(_ sales: SalesRows) { self.sales = sales }

  /// Another user that the shop has the token for which Apple's transaction carries.
  ///
  /// - Parameter connection: in the run's snapshot, and not reading anything else.
  func otherUser(
    for facts: OrderFacts, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Identifier? {
    guard facts.lacksTokenOfTransaction else { return nil }
    if users == nil { users = try read(connection) }
    return users?[facts.order.orderId]
  }

  /// The same for one order, read for it alone.
  func otherUser(
    forOnly facts: OrderFacts, _ connection: borrowing BlockingConnection
  ) throws(PostgresError) -> Identifier? {
    guard facts.lacksTokenOfTransaction else { return nil }
    let literal = try PostgresLiteral.text(facts.order.orderId.text)
    return try read(connection, where: "o.order_id::text COLLATE \"C\" = \(literal)")[facts.order.orderId]
  }

  private func read(
    _ connection: borrowing BlockingConnection, where restriction: String = "TRUE"
  ) throws(PostgresError) -> [Identifier: Identifier] {
    var reader = try connection.copyOut(
      """
      WITH bare AS (
        SELECT o.order_id::text AS order_id, o.user_id::text AS user_id, replace(lower(t.app_account_token), '-', '') AS token
        FROM night_audit.transactions t JOIN \(sales.schema).orders o ON o.order_id::text = t.order_id
        WHERE t.app_account_token IS NOT NULL AND o.app_account_token IS NULL AND \(restriction)
        UNION
        SELECT o.order_id::text, o.user_id::text, replace(lower(t.app_account_token), '-', '')
        FROM night_audit.transactions t JOIN \(sales.schema).orders o ON o.transaction_id::text = t.transaction_id
        WHERE t.app_account_token IS NOT NULL AND o.app_account_token IS NULL AND \(restriction))
      SELECT bare.order_id, min(other.user_id::text COLLATE "C")
      FROM bare JOIN \(sales.schema).orders other ON replace(lower(other.app_account_token::text), '-', '') = bare.token
      GROUP BY bare.order_id, bare.user_id
      HAVING NOT bool_or(other.user_id::text = bare.user_id)
      """)
    var users: [Identifier: Identifier] = [:]
    while try reader.advance() { users[try reader.id(0)] = try reader.id(1) }
    return users
  }
}
