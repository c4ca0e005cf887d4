import Postgres
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

/// The source of a report's tie-out section.
package enum SupplementSource: Sendable {
  case made(ReportSupplement)
  /// The section is built from the judged orders; errors are reported in it.
  case ofOrders(@Sendable (BlockingScope, AuditedOrders) -> ReportSupplement)

  func supplement(_ scope: BlockingScope, _ collector: AuditCollector) -> ReportSupplement {
    switch self {
    case .made(let supplement): supplement
    case .ofOrders(let make): make(scope, AuditedOrders(collector))
    }
  }
}
