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
  /// What people had put into the folder before.
  package var kept: [KeptFile] = []
  /// Why the night is held; empty when it is not.
  package var held: [HoldCause] = []
  /// Business days before it that no report is about, with the remedy.
  package var uncovered: String?
  /// Why it lists no order although one was asked for, with the remedy.
  package var unlisted: String?
  /// What to do about days that nothing is compared with any more; nil where there are none.
  package var uncompared: String?
  /// Proofs behind critical findings that are older than the audit and that Apple can be asked about.
  package var unasked: Set<CheckSubject> = []
  package var exitStatus: ExitStatus
}

extension SpillSorter.Failure: EndsRun {
  package var exitStatus: ExitStatus { .cannotWrite }
}

/// What an audit has come to.
package enum AuditResult: Sendable {
  case report(AuditOutcome)
  /// Nothing was written: Apple is to be asked before anybody is alarmed, or an answer is called missing.
  case needsAnswers(OpenQuestions)
}

/// What an audit has met that Apple can be asked about in the same night.
package struct OpenQuestions: Sendable {
  /// Proofs behind critical findings whose answers are older than the audit.
  package private(set) var critical: Set<CheckSubject> = []
  /// When the oldest receipt came, or the oldest order was made, that no run has taken in; nil: all are known.
  package private(set) var unknownFrom: Instant?
  /// Customers whose whole histories are to be read.
  package private(set) var customers: Set<CustomerHistories.Customer> = []

  package init() {}

  init(critical: Set<CheckSubject>, unknownFrom: Instant?, customers: Set<CustomerHistories.Customer> = []) {
    self.critical = critical
    self.unknownFrom = unknownFrom
    self.customers = customers
  }

  /// Whether there is a question about a receipt, an order or a transaction.
  package var asksAboutChecks: Bool { !critical.isEmpty || unknownFrom != nil }

  /// Takes in what was left to be asked later.
  package mutating func add(_ later: OpenQuestions) {
    critical.formUnion(later.critical)
    customers.formUnion(later.customers)
    unknownFrom = [unknownFrom, later.unknownFrom].compactMap(\.self).min()
  }

  /// Whether there is a question that is not among those of earlier audits. What came to light once and is still not taken in
  /// will not be.
  func addsAny(to asked: OpenQuestions) -> Bool {
    !critical.isSubset(of: asked.critical) || !customers.isSubset(of: asked.customers)
      || unknownFrom != nil && asked.unknownFrom == nil
  }
}

/// One audit on a thread of its own: a snapshot, the pass over it, the findings' history, the files.
package struct Audit {
  package let settings: Settings
  package let plan: AuditPlan
  /// Apps whose re-check our own configuration ended, with the remedy.
  package let faults: [String: String]
  package let stop: StopSignal
  package let progress: WorkProgress
  /// What else the report tells; nil: nothing.
  package var supplement: SupplementSource?
  /// The runs whose report folders its report may replace.
  package var known = KnownRuns()
  /// Where ids are cut; nil: as the planner's statistics say.
  var partition: AuditPartition?
  /// How far a snapshot of the shop's store reaches; nil: as its relations say.
  var reach: SnapshotReach?

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

  /// Reads, decides, writes and publishes, whatever the answers' age.
  ///
  /// - Parameters:
  ///   - destination: nil writes no files.
  ///   - record: the run to save; nil leaves the database as it is.
  ///   - finishing: adds files to the folder just before it is published.
  package func report(
    _ scope: BlockingScope, destination: ReportFolder.Destination?, saving record: RunRecord?,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditOutcome {
    try SalesStore.startingOverOnce(settings, scope) { onlyReads in
      let reading = try read(scope, destination, saving: record)
      onlyReads = false
      // Nothing is left of it once it is published.
      defer { reading.folder?.discard() }
      return try write(reading, scope, saving: record, finishing: finishing)
    }
  }

  /// The same, unless critical findings rest on answers that Apple can be asked for again, or receipts or orders have come to
  /// light of which nobody knew when Apple was asked.
  ///
  /// - Parameter asked: what was left to be asked before: nothing is left twice.
  package func reportOrAsk(
    _ scope: BlockingScope, asked: OpenQuestions, destination: ReportFolder.Destination?, saving record: RunRecord?,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditResult {
    try SalesStore.startingOverOnce(settings, scope) { onlyReads in
      let reading = try read(scope, destination, saving: record)
      onlyReads = false
      defer { reading.folder?.discard() }
      let open = OpenQuestions(
        critical: reading.unasked, unknownFrom: reading.collector.unknownFrom, customers: reading.customers)
      if open.addsAny(to: asked) { return .needsAnswers(open) }
      return .report(try write(reading, scope, saving: record, finishing: finishing))
    }
  }

  /// Reads and decides, writes nothing, and hands on the orders.
  ///
  /// Throws `ReportError.unbalanced` where rows are missing, what reading throws, and what `body` throws.
  package func judge<Result>(_ scope: BlockingScope, _ body: (AuditedOrders) throws -> Result) throws -> Result {
    try SalesStore.startingOverOnce(settings, scope) { onlyReads in
      let reading = try read(scope, into: nil, isKept: true)
      onlyReads = false
      try requireWhole(reading.collector)
      return try body(AuditedOrders(reading.collector))
    }
  }

  /// What the pass has left.
  private struct Reading {
    var collector: AuditCollector
    var folder: ReportFolder?
    /// Proofs behind critical findings whose answers are older than the audit.
    var aged: [CriticalEvidence.Proof]
    /// Customers whose whole histories are to be read.
    var customers: Set<CustomerHistories.Customer>
    /// Those of the aged proofs that Apple can be asked about.
    var unasked: Set<CheckSubject> { Set(aged.filter(\.isAskable).map(\.subject)) }
    /// What tonight is compared with.
    var base: BaseNight?
    /// How the shop's rows were read.
    var sales: SalesRows
    /// What parts that were audited elsewhere have counted.
    var counts: AuditPieces.Counts?
    /// The first reader's rows, whose snapshots are open.
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
    completed.rules = try plan.rules.completed(sales, shop: stores.rows.sales)
    let narrowed =
      partition == nil
      ? try NarrowedReading(completed, sales, shop: stores.rows.sales, own: stores.rows.own) : nil
    // A few rows are sorted, however they are ordered.
    if narrowed == nil { sales = try sales.ordered(on: stores.rows.sales) }
    let temporary = folder?.staging ?? NSTemporaryDirectory()
    let base = try BaseNight.before(plan.asOf, period: plan.period, on: stores.rows.own)
    let collector = AuditCollector(
      report: try folder.map { try ReportWriter(options($0, stores.rows.sales, sales)) },
      temporaryDirectory: temporary, testUsers: plan.rules.testUsers,
      days: ReportedDays.days(plan, in: settings.timeZone), keepsClaims: isKept && !plan.selection.isNarrowing,
      comparesNights: base != nil || isKept)
    collector.openCriticals = try CriticalEvidence.open(before: plan.asOf, on: stores.rows.own)
    progress.begin("auditing orders", total: 0)
    var counts: AuditPieces.Counts?
    if let parts = plan.parts {
      counts = try AuditPieces(directory: parts).join(into: collector, of: completed)
    } else if let narrowed {
      try read(narrowed, stores, scope, completed, sales, into: collector, temporary)
    } else {
      try readStores(stores, scope, completed, sales, into: collector, temporary)
    }
    progress.end()
    let aged = try CriticalEvidence.aged(among: collector.agedCriticals, asOf: plan.asOf, on: stores.rows.own)
    // A narrowed run asks about what it lists and leaves whole customers to the night.
    let customers = try CustomerHistories.wanted(
      of: plan.selection.isNarrowing ? [] : collector.doubtfulPayments, bundleIds: settings.sweptApps.map(\.bundleId),
      asOf: plan.asOf, staleAfter: plan.staleAfter, on: stores.rows.own)
    return Reading(
      collector: collector, folder: folder, aged: aged, customers: customers, base: base, sales: sales, counts: counts,
      rows: stores.rows)
  }

  private func readStores(
    _ stores: AuditStores, _ scope: BlockingScope, _ completed: AuditPlan, _ sales: SalesRows,
    into collector: AuditCollector, _ temporary: String
  ) throws {
    var partition =
      try partition
      ?? AuditPartition(sales, readers: plan.readers, shop: stores.rows.sales, own: stores.rows.own)
    var further = try stores.further(partition.readers - 1)
    // As many as the servers take; what is too few to be used is given back to whoever else needs it.
    if further.count < partition.readers - 1 { (partition, further) = (AuditPartition(), []) }
    let sharedSales = try TransactionTable.sharedSales(on: stores.rows.own)
    let readers = try ([stores.rows] + further).enumerated().map { part, rows in
      rows.query = { [completed, partition] in try $0.query(completed, sales, partition, part: part) }
      rows.contestedDeliveries = { [partition] in
        try StoredIds.contested.deliveries(sales, partition, part: part)
      }
      return AuditPass(
        plan: completed, sales: sales, rows: rows,
        collector: part == 0 ? collector : try AuditCollector(behind: collector), temporaryDirectory: temporary,
        stop: stop, progress: progress, sharedSales: sharedSales)
    }
    var stages = AuditStages(
      readers: readers, partition: partition, contestBatchSize: settings.contestBatchSize,
      temporaryDirectory: temporary)
    stages.secondLook = secondLook(stores, scope, sales, completed)
    try stages.run(
      counted: { try SalesTotals(sales, on: stores.rows.sales) },
      repeated: { try RepeatedDeliveries(sales, shop: stores.rows.sales, directory: temporary) })
  }

  /// Reads the rows that a report on one order or one user is made of.
  private func read(
    _ narrowed: NarrowedReading, _ stores: AuditStores, _ scope: BlockingScope, _ completed: AuditPlan,
    _ sales: SalesRows, into collector: AuditCollector, _ temporary: String
  ) throws {
    try stores.rows.narrow(to: narrowed)
    stores.rows.query = { [completed] in try narrowed.query($0, completed, sales) }
    let reader = AuditPass(
      plan: completed, sales: sales, rows: stores.rows, collector: collector, temporaryDirectory: temporary,
      stop: stop, progress: progress, sharedSales: narrowed.sharedSales)
    var stages = AuditStages(
      readers: [reader], partition: AuditPartition(), contestBatchSize: settings.contestBatchSize,
      temporaryDirectory: temporary)
    stages.secondLook = secondLook(stores, scope, sales, completed)
    stages.counted = "orders looked at in the database"
    try stages.run(
      counted: { try narrowed.totals(sales, on: stores.rows.sales) }, repeated: { narrowed.repeated })
  }

  /// nil where one snapshot spans the shop's store.
  func secondLook(
    _ stores: AuditStores, _ scope: BlockingScope, _ sales: SalesRows, _ completed: AuditPlan
  ) -> SecondLook? {
    switch reach ?? stores.reach {
    case .everyConnection, .oneConnection: nil
    case .oneStatement: SecondLook(settings, scope, sales, rules: completed.rules, own: stores.rows)
    }
  }

  private func write(
    _ reading: Reading, _ scope: BlockingScope, saving record: RunRecord?,
    finishing: (ExitStatus, ReportFolder) throws -> Void
  ) throws -> AuditOutcome {
    let (collector, rows) = (reading.collector, reading.rows)
    // What is made of the orders is stored from here on, so all of them have to be here.
    try requireWhole(collector)
    let supplement = supplement?.supplement(scope, collector)
    for finding in try supplement?.reported(asOf: plan.asOf, on: rows.own) ?? [] {
      try collector.add(finding, subjects: [], plan: plan)
    }
    // Reconciling by day, at a later as-of, owes nobody a question that only a run puts.
    let isOfRun = try RunRecord.isThere(asOf: plan.asOf, on: rows.own)
    let owedBehindCriticals = reading.aged.count { (isOfRun || !$0.isAskable) && $0.isOwed(beside: plan) }
    try collector.writeRemainder()

    // What is kept of a run is written on a connection of its own and committed just before the report appears.
    let recording = try record.map { _ in try AuditStores.connect(settings, scope) }
    try beginSaving(recording)
    let base = reading.base
    let changes = NightChanges(base: base, plan: plan, temporaryDirectory: collector.temporaryDirectory)
    var figures = NightFigures()
    let (findings, first) = try reportFindings(collector, changes, &figures, rows.own, recording)
    try collector.nights.compare(
      with: base, isKept: record != nil, isOfFew: plan.selection.isOfOrderOrUser, asOf: plan.asOf,
      createdBefore: plan.period.start, on: rows.own, each: changes.meet
    ) { try changes.add($0) }
    try changes.explainClosed(on: rows.own)
    let history = try RunRecord.history(before: plan.asOf, day: plan.period.until, on: rows.own)
    let decisions = try DecisionCounts(since: base?.asOf, until: plan.asOf, on: rows.own)
    let nightsBefore = try RunRecord.precedent(before: plan.asOf, day: plan.period.until, on: rows.own)
    let unswept = try SweepCoverage(settings: settings, plan: plan).shortfalls(rows.own)
    let told = try adjustments(collector, rows.own)
    let claims = try collector.claims.map {
      try ClaimsTable.differences($0, directory: collector.temporaryDirectory, on: rows.own)
    }
    let causes = try holdCauses(&figures, record, read: reading.counts, reading.sales, rows)
    var uncovered: [String] = []
    if !plan.selection.isNarrowing {
      uncovered = try UncoveredDays.before(plan.period, asOf: plan.asOf, in: settings.timeZone, on: rows.own)
    }
    let unlisted = try NothingListed(plan, reading.sales, in: settings.timeZone, on: rows.sales)?.words
    var mark = try ReportMark(on: rows.own)
    rows.own.rollback()

    var totals = collector.totals
    totals.ofSales = collector.control
    var summary = summary(
      collector, owedBehindCriticals: owedBehindCriticals, findings: findings, history: history, unswept: unswept)
    summary.adjustments = told.adjustments
    summary.dayLines = told.days
    summary.changes = try changes.write(to: collector)
    summary.tieOut = supplement?.facts
    (summary.first, summary.decisions) = (first, decisions)
    if !plan.selection.isNarrowing { summary.unusual = UnusualShare.all(collector.totals, since: nightsBefore) }
    let remedy = UncoveredDays.remedy(uncovered)
    if let remedy { summary.settings.append(SettingWords("Days without a report", remedy)) }
    if let words = told.uncompared { summary.settings.append(SettingWords("Days of another time zone", words)) }
    let status = exitStatus(summary, isHeld: !causes.isEmpty)
    var outcome = AuditOutcome(
      totals: totals, summary: summary, uncovered: remedy, unlisted: unlisted, uncompared: told.uncompared,
      unasked: reading.unasked, exitStatus: status)
    guard let folder = reading.folder else {
      let unbalanced = (totals.control + findings.control).filter { !$0.isBalanced }
      if !unbalanced.isEmpty { throw ReportError.unbalanced(unbalanced) }
      if plan.isRehearsal { outcome.held = causes }
      return outcome
    }
    if var report = collector.takeReport() {
      try supplement?.write(&report)
      let files = try report.finish(totals: totals, summary: summary)
      mark.summary = files.first { $0.name == SummaryDocument.fileName }?.sha256
    }
    if let reason = stop.stopped { throw StopSignal.Stopped(reason: reason) }
    guard causes.isEmpty else {
      outcome.held = causes
      outcome.directory = try hold(folder, because: causes, mark, status, record, on: recording, finishing)
      return outcome
    }
    try finishing(status, folder)
    if let record {
      try save(collector, claims, record, summary, mark, status, figures, folder: folder, on: recording)
    }
    let published = try folder.publish()
    if let record { try settle(record, as: published.path, on: recording) }
    outcome.directory = published.path
    outcome.kept = published.kept
    return outcome
  }

  /// Whether everything was read that there is.
  private func requireWhole(_ collector: AuditCollector) throws {
    let unread = collector.control.filter { !$0.isBalanced }
    if !unread.isEmpty { throw ReportError.unbalanced(unread) }
  }

  // MARK: - Findings

  private func reportFindings(
    _ collector: AuditCollector, _ changes: NightChanges, _ figures: inout NightFigures,
    _ coordinator: borrowing BlockingConnection, _ recording: borrowing BlockingConnection?
  ) throws -> (FindingsSummary, first: [ReportedFinding]) {
    // The file is in the order of ids, the sheet is worst first.
    let worst = SpillSorter(directory: collector.temporaryDirectory)
    let comparison = FindingsHistory(
      plan: plan, owners: settings.owners, changes: changes,
      today: Period.dayText(of: plan.asOf, in: settings.timeZone))
    let hasSheets = collector.hasSheets
    var record = RecordBytes()
    func keep(_ reported: ReportedFinding) throws {
      try collector.write(finding: reported)
      if hasSheets {
        record.clear()
        reported.write(to: &record)
        try worst.add(key: reported.urgency(asOf: plan.asOf), content: record.content)
      }
    }
    let summary: FindingsSummary
    switch recording {
    case .some(let connection):
      var compared: FindingsSummary?
      let table = try PostgresIdentifier("tonight")
      try connection.copyIn(into: table, columns: FindingsHistory.tonightColumns) { writer in
        compared = try comparison.compare(collector.findings, on: coordinator, figures: &figures) { reported in
          try keep(reported)
          try FindingsHistory.write(reported, to: &writer)
        }
      }
      guard let compared else { throw RecordReader.Mismatch() }
      summary = compared
    case .none:
      summary = try comparison.compare(collector.findings, on: coordinator, figures: &figures, each: keep)
    }
    var first: [ReportedFinding] = []
    while let next = try worst.next() {
      var reader = RecordReader(next.content)
      let reported = try ReportedFinding(from: &reader)
      if first.count < 5 { first.append(reported) }
      try collector.writeToSheet(finding: reported)
    }
    return (summary, first)
  }

  // MARK: - Saving

  private func beginSaving(_ recording: borrowing BlockingConnection?) throws {
    switch recording {
    case .none: return
    case .some(let connection):
      try connection.begin(.readWrite)
      try connection.executeScript(FindingsHistory.tonightTable)
    }
  }

  private func save(
    _ collector: AuditCollector, _ claims: SpillFile?, _ record: RunRecord, _ summary: SummaryFacts,
    _ mark: ReportMark, _ status: ExitStatus, _ figures: NightFigures, folder: ReportFolder,
    on recording: borrowing BlockingConnection?
  ) throws {
    switch recording {
    case .none: return
    case .some(let connection):
      try save(collector, claims, record, summary, mark, status, figures, folder: folder, in: connection)
    }
  }

  private func save(
    _ collector: AuditCollector, _ claims: SpillFile?, _ record: RunRecord, _ summary: SummaryFacts,
    _ mark: ReportMark, _ status: ExitStatus, _ figures: NightFigures, folder: ReportFolder,
    in recording: borrowing BlockingConnection
  ) throws {
    // Before a finding is touched: people who are writing are waited for, and then wait.
    try Trail.holdPeople(on: recording)
    if try isNews(record, on: recording) {
      try FindingsHistory.apply(asOf: plan.asOf, runId: record.runId, on: recording)
      if let claims { try ClaimsTable.apply(claims, on: recording) }
    }
    // A report by hand of a later instant says what is open now; the next night is compared with this one all the same.
    if try isNewestNight(record, on: recording) {
      try FindingsHistory.saveNight(record, on: recording)
      try collector.nights.save(record, lookbackStart: plan.rules.lookbackStart, on: recording)
    } else if record.isNightly {
      try FindingsHistory.keepOwn(record, on: recording)
    }
    if record.isNightly {
      try record.save(summary.findings, on: recording)
      try record.save(collector.totals, on: recording)
      try ReportedDays.save(collector.days, adjustments: summary.adjustments, record: record, on: recording)
    }
    if record.isNightly, !settings.deliver.isEmpty {
      let folder = ReportFolder.absolute(folder.finalPath)
      let targets = settings.deliver.filter { !$0.isMessage || settings.tells(of: summary) }
      try DispatchTable.owe(targets.map(\.name), directory: folder, runId: record.runId, on: recording)
    }
    try record.complete(
      totals: collector.totals, summary: summary, directory: ReportFolder.absolute(folder.finalPath),
      content: folder.digest ?? "", mark: mark, exitStatus: status.rawValue,
      lookback: plan.selection.isNarrowing ? nil : (figures.orders, figures.deliveries), on: recording)
    try record.lock?.requireStillHeld(on: recording)
    try recording.commit()
    // Whatever the commit had to wait for.
    try record.lock?.requireStillHeld(on: recording)
  }
}

extension Settings {
  /// Whether people are to hear of a night. A first one has nothing to compare with, and all of it is news.
  fileprivate func tells(of summary: SummaryFacts) -> Bool {
    switch notifyOn {
    case .always: true
    case .change: !summary.isComplete || summary.changes.since == nil || summary.changes.criticals > 0
    }
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

extension Reasoning {
  /// What was considered and with what result, in the words of `explain`.
  var sentences: [String] {
    steps.map { "\($0.rule.question) \($0.verdict == nil ? "No" : "Yes"): \($0.because)" } + [disposition]
  }
}
