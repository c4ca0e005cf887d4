import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings

/// The command `explain ORDER`: reads the facts about one order and explains its verdict. Read-only; sends no requests.
package struct Explain: Sendable {
  /// The order does not exist. Exit status 1.
  package struct Missing: RunEndingError, CustomStringConvertible {
    package var exitStatus: ExitStatus { .nothingThere }
    package var orderId: String
    package var similarIDs: [String]

    package var description: String {
      (["there is no order \(orderId)."] + similarIDs).joined(separator: "\n  ")
    }
  }

  private let settings: Settings

  package init(settings: Settings) { self.settings = settings }

  /// Explains one order, in one snapshot of each store. Throws `Missing` if the order does not exist.
  package func order(_ orderId: Identifier, asOf: Instant) async throws -> Explanation {
    try await reading(orderId, asOf: asOf) { reader in
      if let explanation = try reader.explanation(of: orderId) { return explanation }
      throw Missing(orderId: orderId.text, similarIDs: try SimilarIDs.of(orderId.text, reader.orders))
    }
  }

  /// Explains every order that refers to one of the transactions.
  package func orders(behind transactionIds: [Identifier], asOf: Instant) async throws -> [Explanation] {
    try await reading(asOf: asOf) { reader in
      try reader.orders.orderIds(behind: Set(transactionIds)).sorted().compactMap { try reader.explanation(of: $0) }
    }
  }

  /// - Parameter orderId: `Missing` is thrown if the encoding of the shop's database lacks a character of it.
  private func reading<Result: Sendable>(
    _ orderId: Identifier? = nil, asOf: Instant, _ body: @escaping @Sendable (ExplanationReader) throws -> Result
  ) async throws -> Result {
    let settings = settings
    let isPastAudit = asOf < .now - settings.clockSkew
    return try await withBlockingThread { scope in
      try SalesStore.restartingOnce(settings, scope) { _ in
        let own = try scope.connect(settings.databaseURL, applicationName: "night-audit explain")
        try Migrator.requireCurrent(own)
        let shop = try SalesStore.connect(settings, scope, applicationName: "night-audit explain")
        if let orderId, try !SalesStore.canHave(orderId, on: shop) {
          throw Missing(orderId: orderId.text, similarIDs: [])
        }
        try own.executeScript("SET jit = off")
        try shop.executeScript("SET jit = off")
        try own.begin(.snapshot)
        try shop.begin(.snapshot)
        let past = Horizon(asOf: asOf, clock: .now, isPastAudit: true)
        let sales = try SalesRows(settings, horizon: isPastAudit ? past : nil)
        let rules = try settings.rules(asOf: asOf).completed(sales, settings: settings, shop: shop, own: own)
        let stores = StoreConnections(sales: shop, own: own)
        let orders = OrderReader(stores: stores, sales: sales, rules: rules)
        let result = try body(ExplanationReader(orders: orders, lookback: settings.lookback))
        stores.own.rollback()
        stores.sales.rollback()
        return result
      }
    }
  }
}
