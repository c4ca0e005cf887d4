import Postgres
import Run
import SalesStore

extension NightRun {
  /// Ends the run before it does anything when the shop's relations are not what the contract says. Throws
  /// `SalesContractError`, or `PostgresError`.
  func requireSales() async throws {
    let settings = settings
    try await withBlockingThread { scope in
      _ = try SalesStore.connect(settings, scope, applicationName: "night-audit")
    }
  }
}
