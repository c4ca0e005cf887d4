import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore

/// `explain ORDER`: reads what is known about one order and what follows from it. Asks nobody and changes nothing.
package struct Explain: Sendable {
  /// No order has that id. Exit status 1.
  package struct Missing: EndsRun, CustomStringConvertible {
    package var exitStatus: ExitStatus { .nothingThere }
    package var orderId: String
    /// What may have been meant.
    package var nearMisses: [String]

    package var description: String {
      (["there is no order \(orderId)."] + nearMisses).joined(separator: "\n  ")
    }
  }

  private let settings: Settings

  package init(settings: Settings) { self.settings = settings }

  /// Reads one order in one snapshot.
  ///
  /// - Throws: `Missing` when there is no such order.
  package func dossier(_ orderId: Identifier, asOf: Instant) async throws -> OrderDossier {
    let settings = settings
    return try await withBlockingThread { scope in
      let own = try scope.connect(settings.databaseURL, applicationName: "night-audit explain")
      try Migrator.requireCurrent(own)
      let shop = try SalesStore.connect(settings, scope, applicationName: "night-audit explain")
      try own.executeScript("SET jit = off")
      try shop.executeScript("SET jit = off")
      try own.begin(.snapshot)
      try shop.begin(.snapshot)
      let sales = try SalesRows(settings)
      let rules = try settings.rules(asOf: asOf).completed(sales, shop: shop)
      let reader = DossierReader(
        shop: shop, own: own, sales: sales, rules: rules, lookback: settings.lookback)
      guard let dossier = try reader.dossier(orderId) else {
        throw Missing(
          orderId: orderId.text, nearMisses: try NearMisses.of(orderId.text, shop: reader.shop, own: reader.own, sales))
      }
      reader.own.rollback()
      reader.shop.rollback()
      return dossier
    }
  }
}
