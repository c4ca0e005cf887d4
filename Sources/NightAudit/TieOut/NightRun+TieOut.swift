import AppStore
import AuditStore
import Auditing
import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings
import TieOut

extension NightRun {
  /// Fetches Apple's reports (also monthly ones of `year`) and compares; nil if no tie-out is configured.
  package func tieOut(
    _ requested: NightRequest, mayFetch: Bool, year: Int? = nil
  ) async throws -> TieOutOutcome? {
    guard var run = try tieOutRun(asOf: requested.asOf) else { return nil }
    if let late = try await requireNotFuture(requested.asOf) { throw late }
    let request = try await requireSales(requested)
    run.asOf = request.asOf
    let gathered = try await run.gather(mayFetch: mayFetch, year: year)
    return try await audit(try plan(request), faults: [:], nil) { [run] audit, scope in
      try audit.judge(scope) { try run.compare(scope, gathered, $0) }
    }
  }

  private func tieOutRun(asOf: Instant) throws -> TieOutRun? {
    guard settings.isTieOutConfigured else { return nil }
    return try TieOutRun(settings: settings, asOf: asOf, logger: logger) { [stop] in stop.stopped != nil }
  }

  package func gross(year: Int?, asOf: Instant) async throws -> YearGross? {
    guard let year else { return nil }
    let vendors = settings.appStoreConnect.vendorNumbers
    let today = settings.tieOut.timeZone.reportDay(of: asOf)
    return try await settings.withStore("night-audit tie-out", .snapshot) {
      try YearGross.read(year: year, today: today, asOf: asOf, vendors: vendors, on: $0)
    }
  }

  /// Fetches reports now and compares them once the night's orders are judged. A failure fails no night.
  func tieOutOfNight(_ request: NightRequest) async -> SupplementSource? {
    // A narrowed run does not audit all orders, so it shows the stored tie-out.
    guard settings.isTieOutConfigured, !request.selection.isNarrowing else {
      return await storedTieOut(request).map(SupplementSource.made)
    }
    do {
      guard let run = try tieOutRun(asOf: request.asOf) else { return nil }
      let gathered = try await run.gather(mayFetch: request.mayAsk)
      return .ofOrders { scope, orders in
        let problem = compare(scope, run, gathered, orders)
        return storedTieOut(scope, request, problem: problem)
      }
    } catch {
      let problem = failed(error)
      return await storedTieOut(request, problem: problem).map(SupplementSource.made)
    }
  }

  private func compare(
    _ scope: BlockingScope, _ run: TieOutRun, _ gathered: TieOutRun.Gathered, _ orders: AuditedOrders
  ) -> String? {
    do {
      let outcome = try run.compare(scope, gathered, orders)
      logger.info(
        "tied out",
        metadata: [
          "apple": "\(outcome.totals.apple)", "ours": "\(outcome.totals.ours)",
          "unexplained": "\(outcome.totals.unexplained)", "complete": "\(outcome.isComplete)",
        ])
      return nil
    } catch {
      return failed(error)
    }
  }

  private func failed(_ error: any Error) -> String {
    let problem = "the tie-out failed: \(error)"
    logger.error("\(problem)")
    return problem
  }

  func storedTieOut(_ request: NightRequest, problem: String? = nil) async -> ReportSupplement? {
    guard settings.isTieOutConfigured else { return nil }
    do {
      return try await withBlockingThread { storedTieOut($0, request, problem: problem) }
    } catch {
      return unreadable(error, problem: problem)
    }
  }

  private func storedTieOut(_ scope: BlockingScope, _ request: NightRequest, problem: String?) -> ReportSupplement {
    do {
      let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit tie-out")
      return try SalesStore.restartingOnce(settings, scope) { _ in
        let sales = try SalesStore.open(settings, scope, applicationName: "night-audit tie-out")
        return try TieOutReport.read(
          settings: settings, asOf: request.asOf, listed: request.selection.bundleId, problem: problem,
          on: connection, sales: sales
        ).supplement(databaseURL: settings.databaseURL)
      }
    } catch {
      return unreadable(error, problem: problem)
    }
  }

  private func unreadable(_ error: any Error, problem: String?) -> ReportSupplement {
    logger.error("the tie-out cannot be read: \(error)")
    return TieOutReport(problem: problem ?? "the tie-out cannot be read: \(error)")
      .supplement(databaseURL: settings.databaseURL)
  }
}

extension TieOutRun {
  fileprivate func compare(
    _ scope: BlockingScope, _ gathered: Gathered, _ orders: AuditedOrders
  ) throws -> TieOutOutcome {
    try compare(scope, gathered, temporaryDirectory: orders.temporaryDirectory) { each in try orders.forEach(each) }
  }
}
