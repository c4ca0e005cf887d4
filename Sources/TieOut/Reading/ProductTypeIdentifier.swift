import Reconciliation

/// The kind of a sales report's row (App Store Connect Help, "Product type identifiers").
package enum SalesRowKind: String, Hashable, Sendable {
  case purchase
  /// A restored non-consumable: units without money.
  case restore
  /// An app purchase, download or update: not in the tie-out, but settled.
  case app
  /// An unknown code of an in-app purchase: treated as a purchase and reported.
  case unknown

  /// - Parameter hasParent: the row names its app, as only in-app rows do.
  package init(code: Identifier, hasParent: Bool) {
    if Self.purchases.contains(code) {
      self = .purchase
    } else if Self.restores.contains(code) {
      self = .restore
    } else if Self.apps.contains(code) || !hasParent {
      self = .app
    } else {
      self = .unknown
    }
  }

  // `-M` and `FI1` are for the Mac; `IAC` is the free subscription of old files.
  private static let purchases: Set<Identifier> = ["IA1", "IA1-M", "FI1", "IA9", "IA9-M", "IAY", "IAY-M", "IAC"]
  /// Rows with these codes show the original price.
  static let restores: Set<Identifier> = ["IA3", "IA3-M"]
  private static let apps: Set<Identifier> = [
    "1", "1F", "1T", "F1", "1-B", "F1-B", "1E", "1EP", "1EU", "3", "3F", "3T", "F3", "5", "7", "7F", "7T", "F7",
  ]
}
