import Reconciliation

/// A storefront and a currency, by which amounts are compared.
struct Place: Hashable, Comparable {
  var country: Identifier
  var currency: Identifier

  static func < (left: Place, right: Place) -> Bool {
    (left.country, left.currency) < (right.country, right.currency)
  }
}
