import AppStore
import Asking
import AuditStore
import Logging
import Postgres
import Reconciliation
import Run
import Settings

/// Reads notification histories of apps, and transaction histories of customers.
///
/// Narrowed and offline runs read neither.
struct FeedReading {
  let run: NightRun
  let request: NightRequest
  let apps: [SweptApp]
  let gate: AskingGate
  let runId: String
  let session: OpenSession

  private var isWanted: Bool { !apps.isEmpty && !request.isOffline && !request.selection.isNarrowing }

  /// Sweeps the notification history of every app that has a key; nil if it did not run.
  func sweep(deadline: ContinuousClock.Instant) async throws -> SweepSummary? {
    if !isWanted { return nil }
    var plan = SweepStage.Plan(asOf: request.asOf, refundWindow: run.settings.refundWindow)
    plan.pagesUnderWay = min(plan.pagesUnderWay, run.settings.concurrency)
    plan.lease = Span(microseconds: run.settings.timeout.microseconds * 2)
    let stage = SweepStage(
      apps: apps, plan: plan, gate: gate, session: session, runId: runId, logger: run.logger, stop: run.stop,
      progress: run.progress, deadline: deadline)
    let summary = try await run.progress.during("sweeping Apple's notification history", total: 0, stage.run)
    run.logger.info(
      "swept Apple's notification history",
      metadata: [
        "pages": "\(summary.pages)", "notifications": "\(summary.notifications)", "new_facts": "\(summary.facts)",
      ])
    return summary
  }

  /// Reads the histories of `customers`, or else of the customers that the evidence suggests; nil if it did not run.
  func histories(
    of customers: Set<CustomerHistories.Customer>? = nil, deadline: ContinuousClock.Instant
  ) async throws -> SweepSummary? {
    if !isWanted { return nil }
    let (asOf, staleAfter) = (request.asOf, run.settings.staleAfter)
    for app in apps {
      let histories = CustomerHistories(bundleId: app.bundleId)
      try await session.withConnection { connection in
        if let customers {
          let ids = customers.filter { $0.bundleId == app.bundleId }.map(\.transactionId)
          try histories.want(ids, asOf: asOf, staleAfter: staleAfter, on: connection)
        } else {
          try histories.requestUpgradedAndSample(asOf: asOf, staleAfter: staleAfter, on: connection)
        }
      }
    }
    let summary = try await HistoryStage(
      apps: apps, asOf: asOf, gate: gate, session: session, runId: runId, logger: run.logger, stop: run.stop,
      progress: run.progress, deadline: deadline
    ).run()
    if summary.pages > 0 {
      run.logger.info(
        "read the purchase histories of customers",
        metadata: ["histories": "\(summary.histories)", "pages": "\(summary.pages)", "new_facts": "\(summary.facts)"])
    }
    return summary
  }
}
