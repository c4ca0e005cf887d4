import Reconciliation

/// The filters of the command line. They restrict the listed orders, not the evidence that is read.
package struct Selection: Hashable, Sendable {
  package var orderId: Identifier?
  package var userId: Identifier?
  package var productId: Identifier?
  package var bundleId: String?
  /// The days whose orders a re-check asks about; nil: all days. An audit has its own period instead.
  package var period: Period?
  /// True if there is no other app, so that orders without a bundle ID belong to it.
  package var isOnlyApp = false
  /// True if the encoding of the shop's database lacks a character of an ID, so that no row has it.
  package var matchesNoRow = false

  package init() {}
  package var isNarrowing: Bool {
    orderId != nil || userId != nil || productId != nil || bundleId != nil || period != nil
  }
  package var isOfOrderOrUser: Bool { orderId != nil || userId != nil }

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
