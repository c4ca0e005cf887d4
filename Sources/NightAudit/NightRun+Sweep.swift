import AppStore
import Asking
import Logging
import Postgres
import Reconciliation
import Run

extension NightRun {
  /// Sweeps Apple's side of every app that can be swept; nil when nothing was.
  ///
  /// A narrowed run asks about what it lists and leaves the sweep to the night: the sweep is about whole apps. Offline
  /// nobody is asked.
  ///
  /// - Parameter session: where pages are stored.
  package func sweep(
    _ request: NightRequest, _ apps: [SweptApp], gate: AskingGate, runId: String, session: OpenSession,
    deadline: ContinuousClock.Instant
  ) async throws -> SweepSummary? {
    if apps.isEmpty || request.isOffline || request.selection.isNarrowing { return nil }
    var plan = SweepStage.Plan(
      asOf: request.asOf, refundWindow: settings.refundWindow, staleAfter: settings.staleAfter)
    plan.pagesUnderWay = min(plan.pagesUnderWay, settings.concurrency)
    let stage = SweepStage(
      apps: apps, plan: plan, gate: gate, session: session, runId: runId, logger: logger, stop: stop,
      progress: progress,
      deadline: deadline)
    progress.begin("sweeping Apple's notifications", total: 0)
    let summary = try await stage.run()
    progress.end()
    logger.info(
      "swept Apple's side",
      metadata: [
        "pages": "\(summary.pages)", "notifications": "\(summary.notifications)",
        "histories": "\(summary.histories)", "new_facts": "\(summary.facts)",
      ])
    return summary
  }
}
