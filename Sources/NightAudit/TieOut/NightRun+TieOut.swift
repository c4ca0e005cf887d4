import AppStore
import Auditing
import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import TieOut

extension NightRun {
  /// Fetches and compares Apple's sales and finance reports; nil when the tie-out is not configured.
  /// - Parameters:
  ///   - mayFetch: whether Apple is asked.
  ///   - year: also fetches the monthly reports of this calendar year.
  package func tieOut(asOf: Instant, mayFetch: Bool, year: Int? = nil) async throws -> TieOutOutcome? {
    guard let tieOut = try tieOutSettings() else { return nil }
    try await requireHasCome(asOf)
    let stop = stop
    let run = TieOutRun(
      settings: tieOut, databaseURL: settings.databaseURL, salesURL: settings.salesURL ?? settings.databaseURL,
      asOf: asOf, day: Period.dayBefore(asOf, in: settings.timeZone).until, logger: logger
    ) { stop.stopped != nil }
    return try await run.run(mayFetch: mayFetch, year: year)
  }

  /// What customers paid in a calendar year.
  package func gross(year: Int, asOf: Instant) async throws -> YearGross {
    let zone = ReportZone(settings.tieOut.timeZoneName)
    let vendors = settings.appStoreConnect.vendorNumbers
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tie-out")
    let gross = try await session.withConnection {
      try YearGross.read(
        year: year, today: zone?.day(of: asOf) ?? ReportDay(number: 0), vendors: vendors, on: $0)
    }
    await session.close()
    return gross
  }

  /// The tie-out within a night: whatever goes wrong makes it incomplete and costs the night nothing.
  func tieOutOfNight(_ request: NightRequest) async -> ReportSupplement? {
    guard settings.isTieOutConfigured else { return nil }
    var problem: String?
    do {
      let outcome = try await tieOut(asOf: request.asOf, mayFetch: request.mayAsk)
      if let outcome {
        logger.info(
          "tied out",
          metadata: [
            "apple": "\(outcome.totals.apple)", "ours": "\(outcome.totals.ours)",
            "unexplained": "\(outcome.totals.unexplained)", "complete": "\(outcome.isComplete)",
          ])
      }
    } catch {
      problem = "the tie-out failed: \(error)"
      logger.error("\(problem ?? "")")
    }
    return await storedTieOut(request, problem: problem)
  }

  /// What is stored of the newest tie-out; nil when none is configured.
  func storedTieOut(_ request: NightRequest, problem: String? = nil) async -> ReportSupplement? {
    guard settings.isTieOutConfigured else { return nil }
    do {
      let settings = settings
      return try await withBlockingThread { scope in
        let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit tie-out")
        return try SalesStore.startingOverOnce(settings, scope) { _ in
          let sales = try SalesStore.open(settings, scope, applicationName: "night-audit tie-out")
          return try TieOutReport.read(
            settings: settings, asOf: request.asOf, problem: problem, on: connection, sales: sales
          )
          .supplement(databaseURL: settings.databaseURL)
        }
      }
    } catch {
      logger.error("the tie-out cannot be read: \(error)")
      return TieOutReport(problem: problem ?? "the tie-out cannot be read: \(error)")
        .supplement(databaseURL: settings.databaseURL)
    }
  }

  /// The settings with the key read; nil when there is nothing to compare with.
  package func tieOutSettings() throws -> TieOutSettings? {
    guard settings.isTieOutConfigured else { return nil }
    let (raw, connect) = (settings.tieOut, settings.appStoreConnect)
    guard let zone = ReportZone(raw.timeZoneName) else {
      throw ConfigurationError(key: "tieOut.timeZone", problem: "\(raw.timeZoneName) is no time zone")
    }
    return TieOutSettings(
      connect: try connect.privateKeyFile.map { _ in try TieOutSettings.Connect(connect) }, folder: raw.folder,
      zone: zone,
      trailingDays: min(raw.trailingDays, AskingPlan.longestWindow), keepRaw: raw.keepRaw, alertUnits: raw.alertUnits,
      apps: settings.apps.map { Scope.App(name: $0.name, bundleId: $0.bundleId, sku: $0.sku) },
      salesSchema: settings.salesSchema, timeout: settings.timeout)
  }
}
