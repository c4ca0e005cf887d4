import Reconciliation

/// The filters of the command line. They restrict the listed orders, not the evidence that is read.
package struct Selection: Hashable, Sendable {
  package var orderId: Identifier?
  package var userId: Identifier?
  package var productId: Identifier?
  /// The bundle ID of `--app`.
  package var bundleId: String?
  /// True if there is no other app, so that orders without a bundle ID belong to it.
  package var isOnlyApp = false

  package init() {}

  /// True if there is a filter.
  package var isNarrowing: Bool { orderId != nil || userId != nil || productId != nil || bundleId != nil }

  /// True if only one order or one user's orders are listed.
  package var isOfOrderOrUser: Bool { orderId != nil || userId != nil }

  /// True if an order is listed.
  /// - Parameter bundleId: the app of the order; nil if unknown.
  package func includes(orderId: Identifier?, userId: Identifier?, productId: Identifier?, bundleId: String?) -> Bool {
    if let wanted = self.orderId, wanted != orderId { return false }
    if let wanted = self.userId, wanted != userId { return false }
    if let wanted = self.productId, wanted != productId { return false }
    if let wanted = self.bundleId, wanted != bundleId { return bundleId == nil && isOnlyApp }
    return true
  }

  package func includes(_ finding: Finding) -> Bool {
    isNarrowing == false
      || includes(
        orderId: finding.orderId, userId: finding.userId, productId: finding.productId, bundleId: finding.bundleId)
  }
}
