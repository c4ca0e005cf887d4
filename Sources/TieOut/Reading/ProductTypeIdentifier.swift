import Reconciliation

/// What a row of a sales report is about, by Apple's product type identifier (App Store Connect Help, "Product type
/// identifiers").
package enum SalesRowKind: String, Hashable, Sendable {
  /// An in-app purchase for money or for nothing.
  case purchase
  /// A non-consumable that was restored: units without money.
  case restore
  /// An app: bought, downloaded again or updated. No tie-out of purchases counts it; its proceeds are settled all the same.
  case app
  /// A code that nobody knows, of an in-app purchase by its parent: treated as a purchase, counted and told.
  case unknown

  /// - Parameter hasParent: whether the row names the app that it belongs to, as only in-app rows do.
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

  // `-M` and `FI1` are of the Mac; `IAC` is the free subscription of old files.
  private static let purchases: Set<Identifier> = ["IA1", "IA1-M", "FI1", "IA9", "IA9-M", "IAY", "IAY-M", "IAC"]
  /// Codes of what was bought before, by its price then.
  static let restores: Set<Identifier> = ["IA3", "IA3-M"]
  private static let apps: Set<Identifier> = [
    "1", "1F", "1T", "F1", "1-B", "F1-B", "1E", "1EP", "1EU", "3", "3F", "3T", "F3", "5", "7", "7F", "7T", "F7",
  ]
}
