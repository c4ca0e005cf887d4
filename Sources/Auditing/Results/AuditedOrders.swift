import Reconciliation

/// The orders that an audit has judged, each once. Used on the audit's thread.
package struct AuditedOrders {
  let nights: OrderNights
  package let temporaryDirectory: String

  init(_ collector: AuditCollector) {
    nights = collector.nights
    temporaryDirectory = collector.temporaryDirectory
  }

  /// Passes every valid order of the lookback to `body`.
  package func forEach(_ body: (JudgedOrder) throws -> Void) throws { try nights.forEachOrder(body) }
}
