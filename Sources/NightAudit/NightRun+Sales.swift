import Postgres
import Run
import SalesStore
import Settings

extension NightRun {
  /// Ends the run early if the shop's relations break the contract: `SalesContractError`, `PostgresError`.
  func requireSales() async throws {
    let settings = settings
    try await withBlockingThread { scope in
      _ = try SalesStore.connect(settings, scope, applicationName: "night-audit")
    }
  }
}
