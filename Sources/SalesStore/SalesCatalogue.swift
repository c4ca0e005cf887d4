import Postgres
import Reconciliation

extension SalesRows {
  /// Reads pairs of user ids of one person from the optional relation `user_aliases`.
  package func aliases(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [(Identifier, Identifier)] {
    var reader = try connection.copyOut(
      "SELECT a.user_id::text, a.same_as::text FROM \(schema).user_aliases a")
    var pairs: [(Identifier, Identifier)] = []
    while try reader.advance() {
      guard case .sound(let userId) = try reader.salesText(0), case .sound(let sameAs) = try reader.salesText(1),
        !userId.isEmpty, !sameAs.isEmpty
      else { continue }
      pairs.append((userId, sameAs))
    }
    return pairs
  }

  package struct Product: Hashable, Sendable {
    package var productId: Identifier
    /// Apple's type, such as `Non-Consumable`.
    package var type: String?
    package var name: String?
    package var soldFrom: Instant?
    package var soldUntil: Instant?
  }

  /// Reads the shop's catalogue, sorted by product id.
  package func products(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Product] {
    // Dates outside the range of reports are clamped to it; least and greatest ignore NULL.
    var reader = try connection.copyOut(
      """
      SELECT p.product_id::text, p.type::text, p.name::text,
        least(greatest(p.sold_from::timestamptz, '1901-01-01Z'), '9999-01-01Z'),
        greatest(least(p.sold_until::timestamptz, '9999-01-01Z'), '1901-01-01Z')
      FROM \(schema).products p ORDER BY p.product_id::text COLLATE "C", 4, 5
      """)
    var products: [Product] = []
    while try reader.advance() {
      guard case .sound(let productId) = try reader.salesText(0), !productId.isEmpty else { continue }
      products.append(
        Product(
          productId: productId, type: try reader.salesText(1).present?.text,
          name: try reader.salesText(2).present?.text, soldFrom: try Self.timestamp(reader, 3).instant,
          soldUntil: try Self.timestamp(reader, 4).instant))
    }
    return products
  }
}
