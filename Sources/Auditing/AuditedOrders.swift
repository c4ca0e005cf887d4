import Postgres
import Reconciliation

/// The orders that an audit has judged, each once. Used on the audit's thread.
package struct AuditedOrders {
  let nights: OrderNights
  /// Where temporary files go.
  package let temporaryDirectory: String

  init(_ collector: AuditCollector) {
    nights = collector.nights
    temporaryDirectory = collector.temporaryDirectory
  }

  /// Hands on every order of the lookback that keeps the contract. Throws what reading them throws, and `body`.
  package func forEach(_ body: (JudgedOrder) throws -> Void) throws { try nights.forEachOrder(body) }
}

/// Where the supplement of a report comes from.
package enum SupplementSource: Sendable {
  /// It was made before.
  case made(ReportSupplement)
  /// It is made of orders that are judged; what goes wrong is told in it.
  case ofOrders(@Sendable (BlockingScope, AuditedOrders) -> ReportSupplement)

  func supplement(_ scope: BlockingScope, _ collector: AuditCollector) -> ReportSupplement {
    switch self {
    case .made(let supplement): supplement
    case .ofOrders(let make): make(scope, AuditedOrders(collector))
    }
  }
}
