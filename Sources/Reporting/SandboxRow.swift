import Reconciliation

/// What one user bought of one product in the sandbox. It is play money and in no total.
package struct SandboxRow: Hashable, Sendable {
  /// Who bought.
  package var userId: Identifier
  /// What.
  package var productId: Identifier
  /// Of the play money.
  package var currency: Currency
  /// How many orders.
  package var orders: Int
  /// Their sum in minor units.
  package var minorUnits: Int128
  /// Whether the user is on the list of test users.
  package var isAllowed: Bool

  /// A row of known values.
  package init(
    userId: Identifier, productId: Identifier, currency: Currency, orders: Int, minorUnits: Int128, isAllowed: Bool
  ) {
    self.userId = userId
    self.productId = productId
    self.currency = currency
    self.orders = orders
    self.minorUnits = minorUnits
    self.isAllowed = isAllowed
  }
}
