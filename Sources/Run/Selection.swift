import Reconciliation

/// What a run lists: the filters of the command line. They narrow what is listed, never what is known.
package struct Selection: Hashable, Sendable {
  package var orderId: Identifier?
  package var userId: Identifier?
  package var productId: Identifier?
  /// The bundle id of the app that `--app` names.
  package var bundleId: String?
  /// Whether there is no other app than that: whatever names none is its.
  package var isOnlyApp = false

  package init() {}

  /// Whether anything is filtered out at all.
  package var isNarrowing: Bool { orderId != nil || userId != nil || productId != nil || bundleId != nil }

  /// Whether only one order, or only one user's orders, are listed.
  package var isOfOrderOrUser: Bool { orderId != nil || userId != nil }

  /// Whether an order of these properties is listed.
  ///
  /// - Parameter bundleId: the app of the order; nil where it is unknown.
  package func includes(orderId: Identifier?, userId: Identifier?, productId: Identifier?, bundleId: String?) -> Bool {
    if let wanted = self.orderId, wanted != orderId { return false }
    if let wanted = self.userId, wanted != userId { return false }
    if let wanted = self.productId, wanted != productId { return false }
    if let wanted = self.bundleId, wanted != bundleId { return bundleId == nil && isOnlyApp }
    return true
  }

  /// Whether a finding is listed.
  package func includes(_ finding: Finding) -> Bool {
    isNarrowing == false
      || includes(
        orderId: finding.orderId, userId: finding.userId, productId: finding.productId, bundleId: finding.bundleId)
  }
}
