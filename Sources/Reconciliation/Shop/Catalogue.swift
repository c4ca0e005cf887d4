/// Apple's type of a product, as in signed transactions.
public enum ProductType: String, Hashable, Sendable {
  case autoRenewable = "Auto-Renewable Subscription"
  case nonConsumable = "Non-Consumable"
  case consumable = "Consumable"
  case nonRenewing = "Non-Renewing Subscription"
}

/// The products that the shop sells, from the relation `products`.
public struct Catalogue: Hashable, Sendable {
  public struct Product: Hashable, Sendable {
    public var productId: Identifier
    public var type: ProductType?
    public var name: String?
    public var soldFrom: Instant?
    /// The first instant after the sale; nil: still on sale.
    public var soldUntil: Instant?

    public init(
      productId: Identifier, type: ProductType? = nil, name: String? = nil, soldFrom: Instant? = nil,
      soldUntil: Instant? = nil
    ) {
      (self.productId, self.type, self.name) = (productId, type, name)
      (self.soldFrom, self.soldUntil) = (soldFrom, soldUntil)
    }

    public func isOnSale(at instant: Instant) -> Bool {
      soldFrom.map { $0 <= instant } ?? true && soldUntil.map { instant < $0 } ?? true
    }
  }

  private var products: [Identifier: [Product]] = [:]

  /// Collects rows in any order. A product with several rows is on sale if one of them is.
  public init(_ products: some Sequence<Product>) {
    for product in products { self.products[product.productId, default: []].append(product) }
  }

  public var rows: [Product] { products.values.flatMap(\.self) }

  public func knows(_ productId: Identifier) -> Bool { products[productId] != nil }

  public func isOnSale(_ productId: Identifier, at instant: Instant) -> Bool? {
    products[productId]?.contains { $0.isOnSale(at: instant) }
  }

  public func isNonConsumable(_ productId: Identifier) -> Bool {
    products[productId]?.contains { $0.type == .nonConsumable } ?? false
  }
}
