import AuditStore
import Foundation
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings
import Streams

/// One audit on its own thread: reads a snapshot of each store, decides, compares and writes.
package struct Audit {
  package let settings: Settings
  package let plan: AuditPlan
  /// Apps whose re-check ended with a configuration error, with the remedy.
  package let faults: [String: String]
  package let stop: StopSignal
  package let progress: WorkProgress
  package var supplement: SupplementSource?
  /// Runs whose report folders this report may replace.
  package var known = KnownRuns()
  /// Cuts of the ID ranges; nil: taken from the planner's statistics.
  var partition: AuditPartition?

  package init(
    settings: Settings, plan: AuditPlan, faults: [String: String], stop: StopSignal, progress: WorkProgress
  ) {
    self.settings = settings
    self.plan = plan
    self.faults = faults
    self.stop = stop
    self.progress = progress
  }

  /// Reads, decides, writes and publishes, however old the answers are.
  ///
  /// - Parameters:
  ///   - record: the run to save; nil leaves the database as it is.
  ///   - finishing: adds files to the folder just before it is published.
  package func report(
    _ scope: BlockingScope, destination: ReportFolder.Destination?, saving record: RunRecord?,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditOutcome {
    try SalesStore.restartingOnce(settings, scope) { onlyReads in
      let reading = try read(scope, destination, saving: record)
      onlyReads = false
      defer { reading.folder?.discard() }
      return try write(reading, scope, saving: record, finishing: finishing)
    }
  }

  /// Like `report`, but returns open questions that are not in `asked` if Apple has to be asked first.
  ///
  /// That is the case if critical findings rest on old answers, or receipts or orders arrived after the queue was
  /// filled.
  package func reportOrAsk(
    _ scope: BlockingScope, asked: OpenQuestions, destination: ReportFolder.Destination?, saving record: RunRecord?,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditResult {
    try SalesStore.restartingOnce(settings, scope) { onlyReads in
      let reading = try read(scope, destination, saving: record)
      onlyReads = false
      defer { reading.folder?.discard() }
      let open = OpenQuestions(
        critical: reading.unasked, unknownFrom: reading.collector.unknownFrom, customers: reading.customers)
      if open.addsAny(to: asked) { return .needsAnswers(open) }
      return .report(try write(reading, scope, saving: record, finishing: finishing))
    }
  }

  /// Reads and decides without writing, and passes the orders to `body`. Throws `ReportError.unbalanced` if rows are
  /// missing.
  package func judge<Result>(_ scope: BlockingScope, _ body: (AuditedOrders) throws -> Result) throws -> Result {
    try SalesStore.restartingOnce(settings, scope) { onlyReads in
      let reading = try read(scope, into: nil, isKept: true)
      onlyReads = false
      try requireWhole(reading.collector)
      return try body(AuditedOrders(reading.collector))
    }
  }

  private struct Reading {
    /// The plan with the people and products of the shop.
    var plan: AuditPlan
    var collector: AuditCollector
    var folder: ReportFolder?
    var aged: [CriticalEvidence.Proof]
    var customers: Set<CustomerHistories.Customer>
    var unasked: Set<CheckSubject> { Set(aged.filter(\.isAskable).map(\.subject)) }
    var base: BaseNight?
    var sales: SalesRows
    var counts: AuditPieces.Counts?
    /// Rows of the first reader, whose snapshots are still open.
    var rows: StoreRows
  }

  private func read(
    _ scope: BlockingScope, _ destination: ReportFolder.Destination?, saving record: RunRecord?
  ) throws -> Reading {
    let token = record?.runId ?? UUID().uuidString.lowercased()
    let folder = try destination.map { try ReportFolder($0, token: token, asOf: plan.asOf, known: known) }
    do { return try read(scope, into: folder, isKept: record != nil) } catch {
      folder?.discard()
      throw error
    }
  }

  private func read(_ scope: BlockingScope, into folder: ReportFolder?, isKept: Bool) throws -> Reading {
    let stores = try AuditStores(settings, scope)
    var sales = try SalesRows(settings, horizon: Horizon(of: plan, on: stores.rows.sales))
    var completed = plan
    completed.rules = try plan.rules.completed(
      sales, settings: settings, shop: stores.rows.sales, own: stores.rows.own)
    let narrowed =
      partition == nil
      ? try NarrowedReading(completed, OrderReader(stores: stores.rows, sales: sales, rules: completed.rules)) : nil
    // A narrowed report sorts its few rows, so that the shop's ordering need not be detected.
    if narrowed == nil { sales = try sales.ordered(on: stores.rows.sales) }
    let temporary = folder?.staging ?? NSTemporaryDirectory()
    let base = try BaseNight.before(plan.asOf, period: plan.period, on: stores.rows.own)
    let collector = AuditCollector(
      report: try folder.map { try ReportWriter(options($0, stores.rows.sales, sales)) },
      temporaryDirectory: temporary, testUsers: plan.rules.testUsers,
      days: ReportedDays.days(plan, in: settings.timeZone), storesClaims: isKept && !plan.selection.isNarrowing,
      comparesNights: base != nil || isKept)
    collector.openCriticals = try CriticalEvidence.open(before: plan.asOf, on: stores.rows.own)
    progress.begin("auditing orders", total: 0)
    var counts: AuditPieces.Counts?
    if let parts = plan.parts {
      counts = try AuditPieces(directory: parts).join(into: collector, of: completed)
    } else if let narrowed {
      try read(narrowed, stores, completed, sales, into: collector, temporary)
    } else {
      try readStores(stores, completed, sales, into: collector, temporary)
    }
    progress.end()
    let aged = try CriticalEvidence.aged(among: collector.agedCriticals, asOf: plan.asOf, on: stores.rows.own)
    // A narrowed run leaves customer histories to the night.
    let customers = try CustomerHistories.wanted(
      of: plan.selection.isNarrowing ? [] : collector.doubtfulPayments, bundleIds: settings.sweptApps.map(\.bundleId),
      asOf: plan.asOf, staleAfter: plan.staleAfter, on: stores.rows.own)
    return Reading(
      plan: completed, collector: collector, folder: folder, aged: aged, customers: customers, base: base,
      sales: sales, counts: counts, rows: stores.rows)
  }

  private func readStores(
    _ stores: AuditStores, _ completed: AuditPlan, _ sales: SalesRows, into collector: AuditCollector,
    _ temporary: String
  ) throws {
    var partition =
      try partition
      ?? AuditPartition(
        sales, readers: affordableReaders(stores), shop: stores.rows.sales, own: stores.rows.own)
    var further = try stores.further(partition.readers - 1)
    // Too few connections are released at once, because other programs may need them.
    if further.count < partition.readers - 1 { (partition, further) = (AuditPartition(), []) }
    let sharedPurchases = try TransactionTable.sharedPurchases(on: stores.rows.own)
    let readers = try ([stores.rows] + further).enumerated().map { part, rows in
      rows.query = { [completed, partition] in try $0.query(completed, sales, partition, part: part) }
      rows.contestedDeliveries = { [partition] in
        try StoredIds.contested.deliveries(sales, partition, part: part)
      }
      return AuditPass(
        plan: completed, sales: sales, rows: rows,
        collector: part == 0 ? collector : try AuditCollector(behind: collector), temporaryDirectory: temporary,
        stop: stop, progress: progress, sharedPurchases: sharedPurchases)
    }
    let stages = AuditStages(
      readers: readers, partition: partition, contestBatchSize: settings.contestBatchSize,
      temporaryDirectory: temporary)
    try stages.run(
      counted: { try SalesTotals(sales, on: stores.rows.sales) },
      repeated: { try RepeatedDeliveries(sales, shop: stores.rows.sales, directory: temporary) })
  }

  /// The readers of the command line, at most as many as the server has connections for.
  private func affordableReaders(_ stores: AuditStores) throws -> Int? {
    guard let readers = plan.readers, readers > 1 else { return plan.readers }
    let affordable = try stores.affordableReaders()
    if readers <= affordable { return readers }
    progress.warn(
      """
      --readers \(readers) needs \(readers * AuditStores.connectionsOfReader) connections, and the server has too few left: \
      \(affordable == 1 ? "one reader reads" : "\(affordable) readers read"); raise max_connections, or the limit of the \
      role or database
      """)
    return affordable
  }

  private func read(
    _ narrowed: NarrowedReading, _ stores: AuditStores, _ completed: AuditPlan, _ sales: SalesRows,
    into collector: AuditCollector, _ temporary: String
  ) throws {
    try stores.rows.narrow(to: narrowed)
    stores.rows.query = narrowed.query
    let reader = AuditPass(
      plan: completed, sales: sales, rows: stores.rows, collector: collector, temporaryDirectory: temporary,
      stop: stop, progress: progress, sharedPurchases: narrowed.sharedPurchases)
    var stages = AuditStages(
      readers: [reader], partition: AuditPartition(), contestBatchSize: settings.contestBatchSize,
      temporaryDirectory: temporary)
    stages.counted = "orders looked at in the database"
    try stages.run(
      counted: { try narrowed.totals(on: stores.rows.sales) }, repeated: { narrowed.repeated })
  }

  private func write(
    _ reading: Reading, _ scope: BlockingScope, saving record: RunRecord?,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditOutcome {
    let (collector, rows) = (reading.collector, reading.rows)
    // Results derived from the orders are stored from here on, so all orders must have been read.
    try requireWhole(collector)
    try collector.addServedRenewals(asOf: plan.asOf)
    let supplement = supplement?.supplement(scope, collector)
    for finding in try supplement?.reported(asOf: plan.asOf, on: rows.own) ?? [] {
      try collector.add(finding, subjects: [], plan: plan)
    }
    // An audit at a later as-of than any run does not wait for answers that only a run requests.
    let isOfRun = try RunRecord.isThere(asOf: plan.asOf, on: rows.own)
    let owedBehindCriticals = reading.aged.count { (isOfRun || !$0.isAskable) && $0.isOwed(beside: plan) }
    let reported = try ReportedRefunds(
      plan.period, asOf: plan.asOf, isNight: record?.isNightly ?? false, on: rows.own)
    try collector.refunds.takeStored(reported, plan: plan, on: rows.own)
    try collector.writeRemainder(reported, on: rows.own)

    // Saved results have a connection of their own and are committed just before the report appears.
    let recording = try record.map { _ in try AuditStores.connect(settings, scope) }
    try recording.passed { connection in
      try connection.begin(.readWrite)
      try connection.executeScript(FindingsHistory.tonightTable)
    }
    let base = reading.base
    let changes = NightChanges(base: base, plan: plan, temporaryDirectory: collector.temporaryDirectory)
    var figures = NightFigures(pseudonyms: settings.pseudonyms)
    let (findings, first) = try reportFindings(reading.plan, collector, changes, &figures, rows.own, recording)
    try collector.nights.compare(
      with: base, isKept: record != nil, plan.selection, asOf: plan.asOf,
      createdBefore: plan.period.start, lookbackStart: plan.rules.lookbackStart, in: dimensions, on: rows.own,
      figures: &figures, each: changes.meet
    ) { try changes.add($0) }
    let refunds = RefundNights(
      collector.refunds.rows, plan.period, temporaryDirectory: collector.temporaryDirectory)
    try refunds.compare(with: base, plan.selection, asOf: plan.asOf, in: dimensions, on: rows.own) {
      try changes.add($0)
    }
    try changes.explainClosed(on: rows.own)
    let journal = try journal(collector, record, supplement, rows.own)
    let history = try RunRecord.history(
      upTo: plan.asOf, day: plan.period.until, isNight: plan.isOfNight, on: rows.own)
    let decisions = try DecisionCounts(since: base?.asOf, until: plan.asOf, on: rows.own)
    let nightsBefore = try RunRecord.precedent(before: plan.asOf, day: plan.period.until, on: rows.own)
    let unswept = try SweepCoverage(settings: settings, plan: plan).shortfalls(rows.own)
    let coverage =
      plan.selection.isNarrowing ? [:] : try FeedCoverage.measured(settings, asOf: plan.asOf, on: rows.own)
    let adjusted = try adjustments(collector, rows.own)
    let claims = try collector.claims.map {
      try ClaimsTable.differences($0, directory: collector.temporaryDirectory, on: rows.own)
    }
    figures.paymentTimes = collector.paymentTimes
    (figures.receiptsBefore, figures.movedReceipts) = (collector.receiptsBefore, collector.movedReceipts)
    let causes = try holdCauses(&figures, record, read: reading.counts, reading.sales, rows)
    var uncovered: [String] = []
    if !plan.selection.isNarrowing {
      uncovered = try UncoveredDays.before(plan.period, asOf: plan.asOf, in: settings.timeZone, on: rows.own)
    }
    let unlisted = try EmptySelectionExplanation(plan, reading.sales, in: settings.timeZone, on: rows.sales)?.words
    var mark = try ReportMark(on: rows.own)
    rows.own.rollback()

    var totals = collector.totals
    totals.salesControls = collector.control
    var summary = summary(
      collector, owedBehindCriticals: owedBehindCriticals, findings: findings, history: history, unswept: unswept,
      coverage: coverage)
    summary.hasOneSnapshot = plan.hasOneSnapshot && reading.counts?.hasOneSnapshot ?? true
    summary.adjustments = adjusted.adjustments
    summary.dayLines = adjusted.days
    summary.changes = try changes.forEach(collector.write(change:))
    summary.tieOut = supplement?.facts
    (summary.first, summary.decisions) = (first, decisions)
    if !plan.selection.isNarrowing { summary.unusual = UnusualShare.all(collector.totals, since: nightsBefore) }
    let remedy = UncoveredDays.remedy(uncovered)
    if let remedy { summary.settings.append(SettingText("Days without a report", remedy)) }
    if let words = adjusted.uncompared { summary.settings.append(SettingText("Days of another time zone", words)) }
    let status = exitStatus(summary, isHeld: !causes.isEmpty)
    var outcome = AuditOutcome(
      totals: totals, summary: summary, uncovered: remedy, unlisted: unlisted, uncompared: adjusted.uncompared,
      unasked: reading.unasked, exitStatus: status)
    guard let folder = reading.folder else {
      let unbalanced = (totals.control + findings.control).filter { !$0.isBalanced }
      if !unbalanced.isEmpty { throw ReportError.unbalanced(unbalanced) }
      if plan.isRehearsal { outcome.held = causes }
      return outcome
    }
    if var report = collector.takeReport() {
      try supplement?.write(&report)
      try journal?.write(to: &report, isComplete: summary.isComplete && causes.isEmpty)
      let files = try report.finish(totals: totals, summary: summary)
      mark.summary = files.first { $0.name == SummaryDocument.fileName }?.sha256
    }
    try stop.check()
    guard causes.isEmpty else {
      outcome.held = causes
      outcome.directory = try hold(folder, because: causes, mark, status, record, on: recording, finishing)
      return outcome
    }
    try finishing(status, folder)
    if let record {
      try recording.passed { connection in
        try save(
          collector, refunds, claims, journal, record, summary, mark, status, figures, folder: folder, in: connection)
      }
    }
    let published = try folder.publish()
    try recording.passed { try record?.published(as: ReportFolder.absolute(published.path), on: $0) }
    outcome.directory = published.path
    outcome.kept = published.kept
    return outcome
  }

  private func requireWhole(_ collector: AuditCollector) throws {
    let unread = collector.control.filter { !$0.isBalanced }
    if !unread.isEmpty { throw ReportError.unbalanced(unread) }
  }

  var dimensions: ReportDimensions {
    ReportDimensions(apps: settings.appNames, timeZone: settings.timeZone)
  }

  /// The journal; nil where none is configured, and of a run that lists only some orders.
  private func journal(
    _ collector: AuditCollector, _ record: RunRecord?, _ supplement: ReportSupplement?,
    _ own: borrowing BlockingConnection
  ) throws -> NightJournal? {
    guard settings.hasJournal, !plan.selection.isNarrowing else { return nil }
    var isPosting = false
    if let record, try isNewestNight(record, on: own) {
      isPosting = try JournalTable.isNewest(plan.period.until, until: plan.asOf, on: own)
    }
    let journal = NightJournal(plan, settings, isPosting: isPosting, directory: collector.temporaryDirectory)
    try journal.prepare(collector.nights, supplement?.postings ?? [], on: own)
    return journal
  }

  // MARK: - Findings

  private func reportFindings(
    _ plan: AuditPlan, _ collector: AuditCollector, _ changes: NightChanges, _ figures: inout NightFigures,
    _ coordinator: borrowing BlockingConnection, _ recording: borrowing BlockingConnection?
  ) throws -> (FindingsSummary, first: [ReportedFinding]) {
    let worst = SpillSorter(directory: collector.temporaryDirectory)
    let comparison = FindingsHistory(
      plan: plan, owners: settings.owners, changes: changes,
      today: Period.dayText(of: plan.asOf, in: settings.timeZone))
    let hasSheets = collector.hasSheets
    var record = RecordBytes()
    func keep(_ reported: ReportedFinding) throws {
      try collector.write(finding: reported)
      // Also without sheets, because the first findings are in summary.json and in mails.
      record.clear()
      reported.write(to: &record)
      try worst.add(key: reported.urgency(asOf: plan.asOf), content: record.content)
    }
    let summary: FindingsSummary
    switch recording {
    case .some(let connection):
      var compared: FindingsSummary?
      var zone = dimensions
      let table = try PostgresIdentifier("tonight")
      try connection.copyIn(into: table, columns: FindingsHistory.tonightColumns) { writer in
        compared = try comparison.compare(
          collector.findings, unlisted: collector.unlisted, on: coordinator, figures: &figures
        ) { reported in
          try keep(reported)
          try FindingsHistory.write(reported, in: &zone, to: &writer)
        }
      }
      guard let compared else { throw RecordReader.Mismatch() }
      summary = compared
    case .none:
      summary = try comparison.compare(
        collector.findings, unlisted: collector.unlisted, on: coordinator, figures: &figures, each: keep)
    }
    var first = FirstFindings()
    while let next = try worst.next() {
      var reader = RecordReader(next.content)
      let reported = try ReportedFinding(from: &reader)
      first.add(reported)
      if hasSheets { try collector.writeToSheet(finding: reported) }
    }
    return (summary, first.ranked(averageOrder: collector.totals.averageOrder))
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
    record.put(explanation) { $1.put($0) }
  }

  fileprivate init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    let findingId = try record.text()
    let finding = try Finding(from: &record)
    let firstSeen = try record.optionalInstant() ?? Instant(microseconds: 0)
    self.init(
      finding, findingId: findingId, firstSeen: firstSeen, status: try record.text(), owner: try record.optionalText(),
      remark: try record.optionalText(), due: try record.optionalText())
    explanation = try record.list { (reader) throws(RecordReader.Mismatch) in try reader.text() }
  }
}
