import Postgres
import Reconciliation

extension SalesRows {
  /// Pairs of ids of one person, from the optional relation `user_aliases`; what is missing or no id is left out.
  ///
  /// Throws `PostgresError`.
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

  /// One product of the optional relation `products`.
  package struct Product: Hashable, Sendable {
    package var productId: Identifier
    /// Apple's word, such as `Non-Consumable`.
    package var type: String?
    package var name: String?
    /// nil: ever since.
    package var soldFrom: Instant?
    /// nil: still.
    package var soldUntil: Instant?
  }

  /// The shop's catalogue, by product id; a row without a product id is left out.
  ///
  /// Throws `PostgresError`.
  package func products(_ connection: borrowing BlockingConnection) throws(PostgresError) -> [Product] {
    // What no report can show is before or after everything that one can; of two times, one that is missing is passed over.
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
