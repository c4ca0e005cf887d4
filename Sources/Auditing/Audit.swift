import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore
import Streams

/// What an audit has come to.
package struct AuditOutcome: Sendable {
  package var totals: Totals
  package var summary: SummaryFacts
  /// Where the report lies; nil when none was written.
  package var directory: String?
  package var exitStatus: ExitStatus
}

extension SpillSorter.Failure: EndsRun {
  package var exitStatus: ExitStatus { .cannotWrite }
}

/// One audit on a thread of its own: a snapshot, the pass over it, the findings' history, the files.
package struct Audit {
  package let settings: Settings
  package let plan: AuditPlan
  /// Apps whose re-check our own configuration ended, with the remedy.
  package let faults: [String: String]
  package let stop: StopSignal
  package let progress: WorkProgress

  /// - Parameter faults: apps whose re-check our own configuration ended, with the remedy.
  package init(
    settings: Settings, plan: AuditPlan, faults: [String: String], stop: StopSignal, progress: WorkProgress
  ) {
    self.settings = settings
    self.plan = plan
    self.faults = faults
    self.stop = stop
    self.progress = progress
  }

  /// Critical findings rest on answers older than the audit: nothing was written, and Apple is to be asked about these.
  package struct AsksFirst: Error {
    package var critical: Set<CheckSubject>
  }

  /// - Parameter mayAsk: whether Apple can still be asked.
  /// - Throws: `AsksFirst`, when Apple can be asked and has to be.
  package func run(
    _ scope: BlockingScope, destination: ReportFolder.Destination?, saving record: RunRecord?, mayAsk: Bool,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditOutcome {
    let sales = try SalesRows(schema: settings.salesSchema)
    let folder = try destination.map { try ReportFolder($0, token: UUID().uuidString.lowercased()) }
    var isPublished = false
    defer { if !isPublished { folder?.discard() } }

    let coordinator = try connect(scope)
    try Migrator.requireCurrent(coordinator)
    try coordinator.begin(.snapshot)
    let snapshot = try coordinator.execute("SELECT pg_export_snapshot()").single().text(0)
    let temporary = folder?.staging ?? NSTemporaryDirectory()
    let collector = AuditCollector(
      report: try folder.map { try ReportWriter(options($0, coordinator, sales)) }, temporaryDirectory: temporary,
      testUsers: plan.rules.testUsers, days: ReportedDays.days(plan, in: settings.timeZone),
      keepsFilings: record != nil)
    progress.begin("auditing orders", total: 0)
    try AuditPass(
      plan: plan, sales: sales, collector: collector, temporaryDirectory: temporary,
      contestBatchSize: settings.contestBatchSize, stop: stop, progress: progress
    )
    .run(coordinator) {
      let connection = try connect(scope)
      try connection.begin(.importedSnapshot(snapshot))
      return connection
    }
    progress.end()
    let aged = try CriticalEvidence.due(
      behind: collector.agedCriticals, settings: settings, asOf: plan.asOf, on: coordinator)
    let askable = Set(aged.filter(\.isAskable).map(\.subject))
    if mayAsk, !askable.isEmpty { throw AsksFirst(critical: askable) }
    // Reconciling by day, at a later as-of, owes nobody a question that only a run puts.
    let isOfRun = try RunRecord.isThere(asOf: plan.asOf, on: coordinator)
    collector.countOutstanding(
      behindCriticals: aged.count { (isOfRun || !$0.isAskable) && $0.isOwed(beside: plan) })
    try collector.writeRemainder()

    // What is kept of a run is written on a connection of its own and committed just before the report appears.
    let ledger = try record.map { _ in try connect(scope) }
    try beginSaving(ledger)
    let findings = try reportFindings(collector, coordinator, ledger)
    let history = try RunRecord.history(before: plan.asOf, day: plan.period.until, on: coordinator)
    let unswept = try SweepCoverage(settings: settings, plan: plan).shortfalls(coordinator)
    let adjustments = try adjustments(collector, coordinator)
    coordinator.rollback()

    let totals = collector.totals
    var summary = summary(collector, findings: findings, history: history, unswept: unswept)
    summary.adjustments = adjustments
    let status = exitStatus(summary)
    var outcome = AuditOutcome(totals: totals, summary: summary, exitStatus: status)
    guard let folder else {
      let unbalanced = (totals.control + findings.control).filter { !$0.isBalanced }
      if !unbalanced.isEmpty { throw ReportError.unbalanced(unbalanced) }
      return outcome
    }
    if let report = collector.takeReport() { _ = try report.finish(totals: totals, summary: summary) }
    if let reason = stop.stopped { throw StopSignal.Stopped(reason: reason) }
    try finishing(status, folder)
    if let record { try save(collector, record, summary, status, folder: folder, on: ledger) }
    outcome.directory = try folder.publish()
    isPublished = true
    return outcome
  }

  private func connect(_ scope: BlockingScope) throws -> BlockingConnection {
    let connection = try scope.connect(settings.databaseURL, applicationName: "night-audit")
    // Whole tables are read in the order of ids, which is not the order on disk: one sort costs less than a million visits
    // to scattered pages, unless those lie in a processor's cache, as the planner is told here. Sorts and hash tables of
    // that size are the fastest ones, too. A server that limits temporary files is left to its indexes. No expression is
    // worth compiling, and other processors are the shop's.
    try connection.executeScript(
      """
      SET work_mem = '16MB'; SET jit = off; SET max_parallel_workers_per_gather = 0;
      SELECT set_config('effective_cache_size', '16MB', false) WHERE current_setting('temp_file_limit') = '-1'
      """)
    return connection
  }

  // MARK: - The report

  private func options(
    _ folder: ReportFolder, _ connection: borrowing BlockingConnection, _ sales: SalesRows
  ) throws -> ReportOptions {
    var (orders, receipts): (Int64, Int64) = (0, 0)
    // Only the workbook has to know beforehand how long its sheets will be.
    if settings.formats.contains(.xlsx) {
      orders = try connection.execute(
        "SELECT count(*) FROM \(sales.schema).orders WHERE created_at >= $1 AND created_at < $2",
        [.timestamp(plan.period.start.microseconds), .timestamp(plan.period.end.microseconds)]
      ).single().int64(0)
      receipts = try connection.execute(
        "SELECT count(*) FROM \(sales.schema).receipts WHERE received_at >= $1",
        [.timestamp(plan.judgedFrom.microseconds)]
      ).single().int64(0)
    }
    var options = ReportOptions(
      directory: folder.staging, date: plan.period.until, formats: settings.formats, timeZone: settings.timeZone,
      asOf: plan.asOf, apps: settings.apps.map { "\($0.name) (\($0.bundleId))" }, ordersInPeriod: Int(orders),
      receiptsInScope: Int(receipts), workbookOrders: settings.workbookOrders)
    options.excelLocale = settings.excelLocale
    options.pseudonyms = settings.pseudonyms
    return options
  }

  private func summary(
    _ collector: AuditCollector, findings: FindingsSummary, history: [Night], unswept: [String]
  ) -> SummaryFacts {
    var reasons = faults.sorted { $0.key < $1.key }.map { "The re-check of \($0.key) was ended: \($0.value)" }
    reasons += unswept
    for (reason, count) in collector.outstanding.sorted(by: { $0.key < $1.key }) {
      reasons.append("\(count) receipts were due and Apple has not answered for them (\(reason)).")
    }
    let tonight = Night(date: plan.period.until, totals: collector.totals, atStake: findings.atStake)
    var summary = SummaryFacts(
      isComplete: reasons.isEmpty, incompleteReasons: reasons, since: plan.period.since, until: plan.period.until,
      timeZone: settings.timeZoneName, configuration: settings.digest, findings: findings, history: history + [tonight])
    summary.notChecked = settings.notChecked
    summary.settings = settings.settingWords
    return summary
  }

  /// How tonight's picture of earlier days differs from what the nights before said about them.
  private func adjustments(
    _ collector: AuditCollector, _ coordinator: borrowing BlockingConnection
  ) throws(PostgresError) -> [Adjustment] {
    if collector.days.days.isEmpty { return [] }
    let statements = try ReportedDays.statements(
      before: plan.period.until, asOf: plan.asOf, timeZone: settings.timeZoneName, on: coordinator)
    let days = collector.days
    let now = statements.keys.reduce(into: [:]) { $0[$1] = days.sums(of: $1) }
    return Adjustment.between(statements, now)
  }

  private func exitStatus(_ summary: SummaryFacts) -> ExitStatus {
    if !faults.isEmpty { return .configuration }
    return summary.isComplete ? .complete : .incomplete
  }

  // MARK: - Findings

  private func reportFindings(
    _ collector: AuditCollector, _ coordinator: borrowing BlockingConnection, _ ledger: borrowing BlockingConnection?
  ) throws -> FindingsSummary {
    // The file is in the order of ids, the sheet is worst first.
    let worst = SpillSorter(directory: collector.temporaryDirectory)
    let comparison = FindingsLedger(plan: plan, owners: settings.owners)
    let hasSheets = collector.hasSheets
    var record = RecordBytes()
    func keep(_ reported: ReportedFinding) throws {
      try collector.write(finding: reported)
      if hasSheets {
        record.clear()
        reported.write(to: &record)
        try worst.add(key: reported.urgency(asOf: plan.asOf), content: record.bytes)
      }
    }
    let summary: FindingsSummary
    switch ledger {
    case .some(let connection):
      var compared: FindingsSummary?
      try connection.copyIn(into: try PostgresIdentifier("tonight"), columns: FindingsLedger.tonightColumns) { writer in
        compared = try comparison.compare(collector.findings, on: coordinator) { reported in
          try keep(reported)
          try FindingsLedger.write(reported, to: &writer)
        }
      }
      guard let compared else { throw RecordReader.Mismatch() }
      summary = compared
    case .none:
      summary = try comparison.compare(collector.findings, on: coordinator, each: keep)
    }
    while let next = try worst.next() {
      var reader = RecordReader(next.content)
      try collector.writeToSheet(finding: try ReportedFinding(from: &reader))
    }
    return summary
  }

  // MARK: - Saving

  private func beginSaving(_ ledger: borrowing BlockingConnection?) throws {
    switch ledger {
    case .none: return
    case .some(let connection):
      try connection.begin(.readWrite)
      try connection.executeScript(FindingsLedger.tonightTable)
    }
  }

  private func save(
    _ collector: AuditCollector, _ record: RunRecord, _ summary: SummaryFacts, _ status: ExitStatus,
    folder: ReportFolder, on ledger: borrowing BlockingConnection?
  ) throws {
    switch ledger {
    case .none: return
    case .some(let connection): try save(collector, record, summary, status, folder: folder, in: connection)
    }
  }

  private func save(
    _ collector: AuditCollector, _ record: RunRecord, _ summary: SummaryFacts, _ status: ExitStatus,
    folder: ReportFolder, in ledger: borrowing BlockingConnection
  ) throws {
    // A narrowed view, or one of an earlier time than is already known, is no news about what is open.
    let newest = try ledger.execute(
      "SELECT max(as_of) FROM night_audit.runs WHERE complete IS NOT NULL AND run_id <> $1::uuid", [.text(record.runId)]
    ).single().optionalTimestamp(0)
    if !plan.selection.isNarrowing, newest.map({ $0 <= plan.asOf.microseconds }) ?? true {
      try FindingsLedger.apply(asOf: plan.asOf, runId: record.runId, on: ledger)
    }
    if let filings = collector.filings { try Filing.writeBack(filings, on: ledger) }
    if record.isNightly {
      try ReportedDays.save(collector.days, adjustments: summary.adjustments, record: record, on: ledger)
    }
    try record.complete(
      totals: collector.totals, summary: summary, directory: folder.finalPath, exitStatus: status.rawValue, on: ledger)
    if record.isNightly, !settings.deliver.isEmpty {
      let folder = ReportFolder.absolute(folder.finalPath)
      try DispatchTable.owe(settings.deliver.map(\.name), directory: folder, runId: record.runId, on: ledger)
    }
    try ledger.commit()
  }
}

extension ReportedFinding {
  fileprivate func write(to record: inout RecordBytes) {
    record.put(findingId)
    finding.write(to: &record)
    record.put(Optional(firstSeen))
    record.put(status)
    record.put(owner)
    record.put(remark)
    record.put(due)
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let findingId = try record.text()
    let finding = try Finding(from: &record)
    let firstSeen = try record.optionalInstant() ?? Instant(microseconds: 0)
    self.init(
      finding, findingId: findingId, firstSeen: firstSeen, status: try record.text(), owner: try record.optionalText(),
      remark: try record.optionalText(), due: try record.optionalText())
  }
}
