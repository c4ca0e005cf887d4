import Asking
import AuditStore
import Auditing
import CSystemCalls
import Foundation
import Postgres
import Publishing
import Reconciliation
import Run

/// What a request comes to: what is audited, what is recorded of it, and where its report goes.
extension NightRun {
  /// Whether an as-of was past already when the run began: then nothing that is dated later was there. However long Apple is
  /// asked, who is asked about and what is audited go by the same.
  func isOfThePast(_ asOf: Instant) -> Bool { asOf < startedAt - settings.clockSkew }

  func plan(_ request: NightRequest) throws -> AuditPlan {
    var plan = AuditPlan(
      rules: settings.rules(asOf: request.asOf),
      period: request.period ?? Period.dayBefore(request.asOf, in: settings.timeZone), selection: request.selection,
      staleAfter: settings.staleAfter, refundWindow: settings.refundWindow)
    plan.threshold = request.threshold
    plan.readers = request.readers
    plan.parts = request.parts
    plan.isRehearsal = request.isRehearsal
    plan.isOfThePast = isOfThePast(request.asOf)
    return plan
  }

  func record(_ request: NightRequest, _ plan: AuditPlan, runId: String) -> RunRecord {
    var record = RunRecord(
      runId: runId, command: request.command, asOf: request.asOf, period: plan.period, timeZone: settings.timeZoneName,
      configuration: settings.digest, isNightly: isNightly(request, plan), host: ProcessInfo.processInfo.hostName)
    record.isAccepted = request.isAccepted
    return record
  }

  func isNightly(_ request: NightRequest, _ plan: AuditPlan) -> Bool {
    let isUsual = plan.period == Period.dayBefore(request.asOf, in: settings.timeZone)
    // The report of a day to come is empty, and `latest` would point to it until a night of a later day.
    let hasBegun = plan.period.until <= Period.dayText(of: request.asOf, in: settings.timeZone)
    return (request.isOneNight || isUsual) && hasBegun && !request.selection.isNarrowing && request.out == nil
  }

  func destination(_ request: NightRequest, _ plan: AuditPlan) -> ReportFolder.Destination {
    if let out = request.out { return .exact(out) }
    if isNightly(request, plan) { return .nightly(directory: settings.reportDirectory, date: plan.period.until) }
    return .adHoc(directory: settings.reportDirectory, period: plan.period.folderName)
  }

  /// Runs an audit on a thread of its own.
  func audit<Result: Sendable>(
    _ plan: AuditPlan, faults: [String: String], _ supplement: SupplementSource?, known: KnownRuns = KnownRuns(),
    _ body: @escaping @Sendable (Audit, BlockingScope) throws -> Result
  ) async throws -> Result {
    var audit = Audit(settings: settings, plan: plan, faults: faults, stop: stop, progress: progress)
    audit.supplement = supplement
    audit.known = known
    let complete = audit
    // Tables outgrow their memory several times in an audit, and without this most of it would stay with the process.
    _ = memory_return_blocks_from(1 << 18)
    return try await withBlockingThread { scope in try body(complete, scope) }
  }

  /// The audit of a night, or what Apple is to be asked first.
  ///
  /// - Parameter asked: what audits of this night have left to be asked before.
  func audit(
    _ plan: AuditPlan, _ request: NightRequest, _ recheck: RecheckSummary, _ supplement: SupplementSource?,
    saving record: RunRecord, known: KnownRuns, since began: ContinuousClock.Instant, asked: OpenQuestions
  ) async throws -> AuditResult {
    let destination = destination(request, plan)
    return try await audit(plan, faults: recheck.faults, supplement, known: known) { audit, scope in
      try audit.reportOrAsk(scope, asked: asked, destination: destination, saving: record) { status, folder in
        try RunDocument(record: record, recheck: recheck, duration: .now - began, exitStatus: status).write(to: folder)
      }
    }
  }

  /// The audit of a night, with what is known.
  func audit(
    _ plan: AuditPlan, _ request: NightRequest, _ recheck: RecheckSummary, _ supplement: SupplementSource?,
    saving record: RunRecord, known: KnownRuns, since began: ContinuousClock.Instant
  ) async throws -> AuditOutcome {
    let destination = destination(request, plan)
    return try await audit(plan, faults: recheck.faults, supplement, known: known) { audit, scope in
      try audit.report(scope, destination: destination, saving: record) { status, folder in
        try RunDocument(record: record, recheck: recheck, duration: .now - began, exitStatus: status).write(to: folder)
      }
    }
  }
}
