import AppStore
import Asking
import AuditStore
import Auditing
import Foundation
import Logging
import Postgres
import Publishing
import Reconciliation
import Reporting
import Run
import Settings

struct StageClock {
  private var began = ContinuousClock.now
  private(set) var seconds: [(String, Double)] = []

  mutating func end(_ stage: String) {
    let now = ContinuousClock.now
    seconds.append((stage, (now - began).inSeconds))
    began = now
  }
}

extension Duration {
  /// Rounded to milliseconds.
  var inSeconds: Double {
    (Double(components.seconds) * 1_000 + (Double(components.attoseconds) / 1e15).rounded()) / 1_000
  }
}

/// The imperative shell of a night: connects, asks Apple, audits, writes, publishes.
package struct NightRun: Sendable {
  package let settings: Settings
  package let logger: Logger
  package let stop: StopSignal
  package let progress: WorkProgress
  private let runId: String
  let startedAt = Instant.now
  let statistics = RequestStatistics()

  package init(
    settings: Settings, logger: Logger, stop: StopSignal, progress: WorkProgress,
    runId: String = UUID().uuidString.lowercased()
  ) {
    (self.runId, self.settings, self.logger) = (runId, settings, logger)
    (self.stop, self.progress) = (stop, progress)
  }

  // MARK: - Commands

  package func run(_ request: NightRequest) async throws -> NightOutcome {
    var watch = try watch(request)
    do {
      return try await run(request, &watch)
    } catch {
      let status = NightRun.status(error)
      if !((error as? any RunEndingError)?.isUsageMistake ?? false) {
        await watch.failed(error, status: status, requests: statistics.counts)
      }
      throw error
    }
  }

  private func watch(_ request: NightRequest) throws -> NightMonitor {
    NightMonitor(
      settings: settings, logger: logger, record: record(request, try plan(request), runId: runId), stop: stop)
  }

  private static func status(_ error: any Error) -> Int32 {
    (error as? StopSignal.Stopped)?.reason.rawValue ?? ExitStatus(for: error).rawValue
  }

  private func run(_ requested: NightRequest, _ watch: inout NightMonitor) async throws -> NightOutcome {
    let began = ContinuousClock.now
    var stages = StageClock()
    if let out = requested.out { try ReportFolder.requireUnreserved(out, reports: settings.reportDirectory) }
    let sender = try ReportSender(settings.deliver, link: settings.reportLink, stop: stop)
    let deadline = deadline(requested)
    let channels = try openChannels(asOf: requested.asOf, until: deadline)
    defer { channels.close() }
    let session = try await connect()
    try await session.withConnection { try Migrator.requireCurrent($0) }
    let late = try await clocks(session).requireNotFuture(requested.asOf, skew: settings.clockSkew)
    let request = try await requireSales(requested)
    watch = try self.watch(request)
    var plan = try plan(request)
    let lock = try await RunLock.acquire(session)
    try await maintainPartitions(session, asOf: request.asOf)
    let waiting = try await PublicationRecovery(logger: logger).finish(session)
    let destination = destination(request, plan)
    ReportFolder.clearLeftovers(beside: destination, except: waiting)
    reportDirectory(KnownRuns()).clearLeftovers(except: waiting)
    let known = try await knownRuns(session, adoptingFrom: request.isAdopting ? destination : nil)
    // Checked before Apple is asked, because a night without a place for its report need not begin.
    do { try ReportFolder.check(destination, asOf: request.asOf, known: known) } catch { throw late ?? error }
    var record = watch.record
    record.lock = lock
    record.trail = try await record.begin(session)
    await watch.began()
    do {
      var recheck = try await answers(request, channels, deadline: deadline, late)
      try stop.check()
      let supplement = await tieOutOfNight(request)
      try stop.check()
      stages.end("recheck")
      // By a clock that is behind, the newest orders would be in the future.
      if late == nil { plan.mappingProblems = try await mappingProblems(plan, isAccepted: record.isAccepted) }
      let audited = try await audited(
        plan, request, channels, &recheck, supplement, saving: record, known: known, since: began, deadline: deadline,
        isLate: late != nil)
      var outcome = NightOutcome(audit: audited, asOf: plan.asOf)
      if outcome.held.isEmpty { watch.published = outcome.directory.map { ReportFolder.absolute($0) } }
      outcome.recheck = recheck
      for remark in [outcome.uncovered, outcome.unlisted, outcome.uncompared].compactMap(\.self) {
        logger.warning("\(remark)")
      }
      stages.end("audit")
      if record.isNightly, outcome.held.isEmpty {
        try await deliver(&outcome, sender, record: record)
      }
      if request.parts != nil { try await keepUnaskedChecksDue(audited.unasked, request) }
      if request.out == nil {
        do {
          try await removeExpiredReports(outcome, asOf: request.asOf, session: session)
        } catch let error as PostgresError where error.isConnectionLost {
          // Not in a new session, because folders are removed under the run lock, which has ended with this one.
          logger.warning("expired report folders are kept until the next night: \(error)")
        }
      }
      stages.end("deliver")
      await watch.ended(outcome, stages: stages.seconds, requests: statistics.counts, session: session)
      await session.close()
      return outcome
    } catch {
      try? await record.end(session, exitStatus: NightRun.status(error))
      // Publishes or withdraws a report whose run was committed before the failure.
      _ = try? await PublicationRecovery(logger: logger).finish(session)
      await session.close()
      throw error
    }
  }

  /// Limit of audits in one night. An answer rarely raises a new question, and each audit is expensive.
  private static let followUpRoundLimit = 5

  /// Asks Apple and repeats the audit for as long as it finds open questions and there is time.
  ///
  /// Without time the questions become due, so that the last audit sees that their answers are missing.
  private func audited(
    _ plan: AuditPlan, _ request: NightRequest, _ channels: Channels, _ recheck: inout RecheckSummary,
    _ supplement: SupplementSource?, saving record: RunRecord, known: KnownRuns,
    since began: ContinuousClock.Instant, deadline: ContinuousClock.Instant, isLate: Bool
  ) async throws -> AuditOutcome {
    var (asked, rounds, isOver) = (OpenQuestions(), 0, false)
    while true {
      let isLast = isOver
      isOver = rounds == Self.followUpRoundLimit || recheck.endedEarly != nil || .now >= deadline
      switch try await audit(
        plan, request, recheck, supplement, saving: record, known: known, since: began,
        asked: isLast || isLate || !request.mayAsk ? nil : asked)
      {
      case .report(let audited): return audited
      case .needsAnswers(let open):
        rounds += 1
        if isOver {
          try await keepDue(open.critical, request)
        } else {
          // Findings that these answers end never reach a report.
          recheck.add(try await self.recheck(request, channels, runId: runId, deadline: deadline, open: open))
        }
        try stop.check()
        asked.add(open)
      }
    }
  }

  /// Makes open questions due for the next re-check, because Apple is not asked while parts are joined.
  private func keepUnaskedChecksDue(_ unasked: Set<CheckSubject>, _ request: NightRequest) async throws {
    if unasked.isEmpty { return }
    try await keepDue(unasked, request)
    logger.warning(
      """
      critical findings rest on answers older than this night: run night-audit recheck --as-of \(request.asOf.text), audit \
      the parts again, and join them
      """)
  }

  /// Makes the checks due until Apple has answered.
  private func keepDue(_ unasked: Set<CheckSubject>, _ request: NightRequest) async throws {
    if unasked.isEmpty { return }
    let queue = try await openQueue(request)
    try await queue.ask(about: unasked)
    await queue.close()
  }

  /// Asks Apple, unless parts were audited before, or the host's clock is behind.
  ///
  /// Apple refuses tokens of a wrong time.
  private func answers(
    _ request: NightRequest, _ channels: Channels, deadline: ContinuousClock.Instant, _ late: HostClockBehind?
  ) async throws -> RecheckSummary {
    if let late {
      logger.error("\(late)")
      var summary = RecheckSummary()
      summary.faults = late.faults(of: settings)
      return summary
    }
    guard request.parts != nil else {
      return try await recheck(request, channels, runId: runId, deadline: deadline)
    }
    var summary = RecheckSummary()
    summary.faults = try await storedFaults(request)
    return summary
  }

  /// Plans an audit in parts, and keeps its snapshots open until `body` returns.
  package func planParts(
    _ requested: NightRequest, parts: Int, _ body: @escaping @Sendable (Data) throws -> Void
  ) async throws {
    let request = try await requireSales(requested)
    try await audit(try plan(request), faults: [:], nil) { audit, scope in try audit.plan(scope, parts: parts, body) }
  }

  /// Creates monthly partitions of evidence and answers, and drops those older than `evidence.retention`.
  ///
  /// A missing right or a busy lock makes later runs slower and fails no night.
  private func maintainPartitions(_ session: PostgresSession, asOf: Instant) async throws {
    // The earlier of as-of and clock, so that a host whose clock is ahead drops nothing too early.
    let oldest = settings.evidenceRetention.map { min(asOf, .now) - $0 }
    do {
      try await session.withConnection { connection in
        try Partitions.ensure(on: connection)
        if let oldest { try Partitions.release(before: oldest, on: connection) }
      }
    } catch let error as Partitions.AlteredPartitionError {
      logger.error("\(error); run: night-audit verify")
    } catch let error as PostgresError where error.sqlState == SQLState.restrictViolation {
      logger.error("expired evidence was not deleted: \(error); run: night-audit verify")
    } catch let error as PostgresError
      where [SQLState.insufficientPrivilege, SQLState.lockNotAvailable].contains(error.sqlState)
    {
      logger.warning("monthly partitions of evidence were not updated: \(error)")
    }
  }

  /// Asks Apple and audits nothing. Several re-checks may share a database.
  package func recheck(_ requested: NightRequest) async throws -> RecheckSummary {
    let deadline = deadline(requested)
    let channels = try openChannels(asOf: requested.asOf, until: deadline)
    defer { channels.close() }
    try await settings.withStore("night-audit") { _ in }
    if let late = try await requireNotFuture(requested.asOf) { throw late }
    let request = try await requireSales(requested)
    let summary = try await recheck(request, channels, runId: runId, deadline: deadline)
    try stop.check()
    try await warnOfMissingOrder(request, summary)
    return summary
  }

  private func warnOfMissingOrder(_ request: NightRequest, _ summary: RecheckSummary) async throws {
    if summary.due == 0, let missing = try await missingOrder(request) { logger.warning("\(missing)") }
  }

  /// Counts the checks that are due. Asks nothing and changes nothing.
  package func dueOnly(_ requested: NightRequest) async throws -> RecheckSummary {
    try await settings.withStore("night-audit") { _ in }
    let request = try await requireSales(requested)
    let queue = try await openQueue(request, isTaking: false)
    var summary = RecheckSummary()
    summary.due = try await queue.dueCount() + queue.unknownCount()
    await queue.close()
    try await warnOfMissingOrder(request, summary)
    return summary
  }

  /// Audits from what is stored. Writes nothing to the database, and files only to `--out`.
  package func reconcile(_ requested: NightRequest) async throws -> NightOutcome {
    let request = try await requireSales(requested)
    var plan = try plan(request)
    let late = try await requireNotFuture(request.asOf)
    if request.isRehearsal, late == nil {
      plan.mappingProblems = try await mappingProblems(plan, isAccepted: request.isAccepted)
    }
    if let late { logger.error("\(late)") }
    var known = KnownRuns()
    if let out = request.out {
      try ReportFolder.requireUnreserved(out, reports: settings.reportDirectory)
      known = try await settings.withStore("night-audit") { try await knownRuns($0) }
      try ReportFolder.check(.exact(out), asOf: request.asOf, known: known)
    }
    let began = ContinuousClock.now
    let record = record(request, plan, runId: UUID().uuidString.lowercased())
    let supplement = await storedTieOut(request).map(SupplementSource.made)
    var faults = try await storedFaults(request)
    if let late { faults.merge(late.faults(of: settings)) { $1 } }
    let outcome = try await audit(plan, faults: faults, supplement, known: known) { audit, scope in
      try audit.report(scope, destination: request.out.map { .exact($0) }, saving: nil) { status, folder in
        try RunDocument(record: record, recheck: nil, duration: .now - began, exitStatus: status).write(to: folder)
      }
    }
    if let unlisted = outcome.unlisted { logger.warning("\(unlisted)") }
    return NightOutcome(audit: outcome, asOf: plan.asOf, isRehearsal: request.isRehearsal)
  }

  private func storedFaults(_ request: NightRequest) async throws -> [String: String] {
    try await settings.withStore("night-audit", .snapshot) { try AskingFaults.read(asOf: request.asOf, on: $0) }
  }

  private func clocks(_ session: PostgresSession) async throws -> Clocks {
    let server = try await session.execute("SELECT clock_timestamp()").single().timestamp(0)
    return Clocks(host: .now, server: Instant(microseconds: server))
  }

  /// Refuses a future as-of, and returns the host's clock if that is behind.
  func requireNotFuture(_ asOf: Instant) async throws -> HostClockBehind? {
    try await connect().closing { try await clocks($0).requireNotFuture(asOf, skew: settings.clockSkew) }
  }

  // MARK: - Report folders

  private func reportDirectory(_ known: KnownRuns) -> ReportDirectory {
    ReportDirectory(directory: ReportFolder.absolute(settings.reportDirectory), known: known, logger: logger)
  }

  /// Reads the runs whose report folders may be replaced; first takes over the folders at `adopted`.
  private func knownRuns(
    _ session: PostgresSession, adoptingFrom adopted: ReportFolder.Destination? = nil
  ) async throws -> KnownRuns {
    let (directory, logger) = (reportDirectory(KnownRuns()), logger)
    return try await session.withConnection { connection in
      var known = try KnownRuns.read(on: connection)
      guard let adopted else { return known }
      let strangers = ReportFolder.makers(at: adopted, in: directory).filter { !known.contains($0) }
      if strangers.isEmpty { return known }
      try known.adopt(strangers, on: connection)
      logger.warning("took over the report folders of \(counted(strangers.count, "run")), unknown to this database")
      return known
    }
  }

  // MARK: - After the report has appeared

  /// Sends the reports that are owed. A failed delivery does not undo publication.
  private func deliver(_ outcome: inout NightOutcome, _ sender: ReportSender, record: RunRecord) async throws {
    let store = OpenSession(logger: logger, open: connect)
    let dispatcher = Dispatcher(targets: settings.deliver, sender: sender, store: store, logger: logger, stop: stop)
    outcome.dispatches = try await dispatcher.deliverAll(runId: record.runId)
    let hasFailed = outcome.dispatches.contains { $0.problem != nil }
    // The status of an incomplete night takes precedence over a failed delivery; that of open findings does not.
    guard hasFailed, outcome.exitStatus == .complete || outcome.exitStatus == .criticalFindings else { return }
    outcome.exitStatus = .cannotWrite
    let status = outcome.exitStatus.rawValue
    try await store.run { session, _ in try await record.end(session, exitStatus: status) }
    if let directory = outcome.directory {
      try ReportFolder.rewriteRun(RunDocument.content(of: directory, endingWith: outcome.exitStatus), in: directory)
    }
  }

  /// Removes expired report folders. The trail records it first: other missing folders count as tampering.
  private func removeExpiredReports(_ outcome: NightOutcome, asOf: Instant, session: PostgresSession) async throws {
    let folders = reportDirectory(try await knownRuns(session))
    var expired = folders.heldFoldersOfPublishedNights()
    if let retention = settings.retention {
      var kept = try await DispatchTable.owedDirectories(session)
      if let written = outcome.directory { kept.insert(ReportFolder.absolute(written)) }
      let prefix = folders.directory + "/"
      var paths = Set(kept.filter { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) })
      if let latest = folders.latest { paths.insert(latest) }
      // The earlier of as-of and clock, because an as-of in the future must not expire every folder.
      expired += ReportRetention.expired(
        folders.folders(), before: min(asOf, .now) - retention, except: paths.union(expired.map(\.path)))
    }
    expired = expired.filter(folders.mayRemove)
    let recorded = try await Trail.appendRemoved(expired.map(\.path), session)
    if recorded.count < expired.count {
      logger.warning(
        """
        \(expired.count - recorded.count) expired report folders are kept, because the owner of the schema recorded a \
        longer report.retention or none; run as the owner: night-audit init
        """)
    }
    for folder in expired where recorded.contains(folder.path) {
      do throws(PublishingFailure) { try folders.remove(folder) } catch { logger.warning("\(error)") }
    }
  }
}
