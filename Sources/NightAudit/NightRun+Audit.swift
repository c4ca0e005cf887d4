import Asking
import AuditStore
import Auditing
import CSystemCalls
import Foundation
import Postgres
import Publishing
import Reconciliation
import Run
import SalesStore
import Settings

extension NightRun {
  /// True if the as-of was past when the run began, so that later rows are not read. Without one snapshot it always is,
  /// because rows arrive while others are read.
  ///
  /// Re-check and audit use the same answer, however long Apple is asked.
  func isPastAudit(_ request: NightRequest) -> Bool {
    !request.hasOneSnapshot || request.asOf < startedAt - settings.clockSkew
  }

  /// Returns the request with the as-of of the shop's store, which is earlier if no snapshot spans the store, and with
  /// whether its IDs can be there.
  ///
  /// Ends the run early if the shop's relations break the contract: `SalesContractError`, `PostgresError`,
  /// `LateAsOfError`.
  func requireSales(_ request: NightRequest) async throws -> NightRequest {
    let (settings, startedAt) = (settings, startedAt)
    return try await withBlockingThread { scope in
      let sales = try SalesStore.connect(settings, scope, applicationName: "night-audit")
      var request = request
      let selection = request.selection
      request.selection.matchesNoRow = try !SalesStore.canHave(
        selection.orderId, selection.userId, selection.productId, on: sales)
      switch try SnapshotScope(of: settings.salesSchema, on: sales) {
      case .everyConnection, .oneConnection:
        return try request.hasOneSnapshot ? request : request.withoutOneSnapshot(startedAt: startedAt)
      case .noConnection: return try request.withoutOneSnapshot(startedAt: startedAt)
      }
    }
  }

  func plan(_ request: NightRequest) throws -> AuditPlan {
    var plan = AuditPlan(
      rules: settings.rules(asOf: request.asOf),
      period: request.period ?? Period.dayBefore(request.asOf, in: settings.timeZone), selection: request.selection,
      staleAfter: settings.staleAfter, refundWindow: settings.refundWindow)
    plan.threshold = request.threshold
    plan.readers = request.readers
    plan.parts = request.parts
    plan.isRehearsal = request.isRehearsal
    (plan.isPastAudit, plan.hasOneSnapshot) = (isPastAudit(request), request.hasOneSnapshot)
    return plan
  }

  /// A sentence if the shop has no order for the filters `--order` and `--user`; nil if it has one, in any period.
  func missingOrder(_ request: NightRequest) async throws -> String? {
    guard request.selection.isOfOrderOrUser else { return nil }
    let (settings, narrowed) = (settings, try plan(request))
    return try await withBlockingThread { scope in
      let sales = try SalesStore.open(settings, scope, applicationName: "night-audit")
      return try EmptySelectionExplanation(narrowed, SalesRows(settings), in: settings.timeZone, on: sales)?.missing
    }
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
    // A report of a future day is empty, and `latest` would point to it until a night of a later day.
    let hasBegun = plan.period.until <= Period.dayText(of: request.asOf, in: settings.timeZone)
    return (request.isOneNight || isUsual) && hasBegun && !request.selection.isNarrowing && request.out == nil
  }

  func destination(_ request: NightRequest, _ plan: AuditPlan) -> ReportFolder.Destination {
    if let out = request.out { return .exact(out) }
    if isNightly(request, plan) { return .nightly(directory: settings.reportDirectory, date: plan.period.until) }
    return .adHoc(directory: settings.reportDirectory, period: plan.period.folderName)
  }

  func audit<Result: Sendable>(
    _ plan: AuditPlan, faults: [String: String], _ supplement: SupplementSource?, known: KnownRuns = KnownRuns(),
    _ body: @escaping @Sendable (Audit, BlockingScope) throws -> Result
  ) async throws -> Result {
    var audit = Audit(settings: settings, plan: plan, faults: faults, stop: stop, progress: progress)
    audit.supplement = supplement
    audit.known = known
    // Tables outgrow their memory several times in an audit; without this call the process keeps most of that memory.
    _ = memory_return_blocks_from(1 << 18)
    return try await withBlockingThread { [audit] scope in try body(audit, scope) }
  }

  /// The problems that doctor finds in the shop's rows. Only for a first night, because later ones are compared with it.
  func mappingProblems(_ plan: AuditPlan, isAccepted: Bool) async throws -> [String] {
    guard !isAccepted, !plan.selection.isNarrowing, settings.holdShare != .whole else { return [] }
    let settings = settings
    return try await withBlockingThread { scope in
      let own = try scope.connect(settings.databaseURL, applicationName: "night-audit")
      guard try Plausibility.EarlierNights(before: plan.asOf, on: own) == nil else { return [] }
      let sales = try SalesStore.open(settings, scope, applicationName: "night-audit")
      return try SalesHealth(settings: settings).examine(sales, scope).compactMap { diagnosis in
        // The audit meets all other problems itself, with their own exit status.
        diagnosis.holdsNight ? diagnosis.problem.map { "\(diagnosis.subject) \($0)" } : nil
      }
    }
  }

  /// Audits a night. With `asked`, the earlier questions, it may return those that Apple must answer first.
  func audit(
    _ plan: AuditPlan, _ request: NightRequest, _ recheck: RecheckSummary, _ supplement: SupplementSource?,
    saving record: RunRecord, known: KnownRuns, since began: ContinuousClock.Instant, asked: OpenQuestions?
  ) async throws -> AuditResult {
    let destination = destination(request, plan)
    return try await audit(plan, faults: recheck.faults, supplement, known: known) { audit, scope in
      func write(_ status: ExitStatus, _ folder: ReportFolder) throws {
        try RunDocument(record: record, recheck: recheck, duration: .now - began, exitStatus: status).write(to: folder)
      }
      guard let asked else {
        return .report(try audit.report(scope, destination: destination, saving: record, finishing: write))
      }
      return try audit.reportOrAsk(scope, asked: asked, destination: destination, saving: record, finishing: write)
    }
  }
}
