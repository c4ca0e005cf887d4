import Postgres
import Reconciliation

/// For orders without an account token whose transaction carries one: another user that the shop has this token for.
///
/// Shops that keep the tokens they give to StoreKit have no such orders, so that their tables are only joined when the
/// first one comes. Used by one thread at a time; not `Sendable`.
final class AccountTokens {
  private let sales: SalesRows
  private var users: [Identifier: Identifier]?

  init(_ sales: SalesRows) { self.sales = sales }

  /// Who that is for one of all orders.
  ///
  /// - Parameter connection: in the run's snapshot, and not reading anything else.
  func user(for orderId: Identifier, _ connection: borrowing BlockingConnection) throws -> Identifier? {
    if users == nil { users = try AccountTokens.users(connection, sales: sales) }
    return users?[orderId]
  }

  /// Reads who that is, by order.
  ///
  /// - Parameter only: the one order that is asked about; nil reads all.
  static func users(
    _ connection: borrowing BlockingConnection, sales: SalesRows, only: Identifier? = nil
  ) throws -> [Identifier: Identifier] {
    let restriction = try only.map { "AND o.order_id::text COLLATE \"C\" = \(try PostgresLiteral.text($0.text))" } ?? ""
    var reader = try connection.copyOut(
      """
      WITH bare AS (
        SELECT o.order_id::text AS order_id, o.user_id::text AS user_id, replace(lower(t.app_account_token), '-', '') AS token
        FROM night_audit.transactions t JOIN \(sales.schema).orders o ON o.order_id::text = t.order_id
        WHERE t.app_account_token IS NOT NULL AND o.app_account_token IS NULL \(restriction)
        UNION
        SELECT o.order_id::text, o.user_id::text, replace(lower(t.app_account_token), '-', '')
        FROM night_audit.transactions t JOIN \(sales.schema).orders o ON o.transaction_id::text = t.transaction_id
        WHERE t.app_account_token IS NOT NULL AND o.app_account_token IS NULL \(restriction))
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
