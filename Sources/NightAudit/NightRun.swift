import AppStore
import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting

/// What a command asks of the program.
package struct NightRequest: Sendable {
  /// The word on the command line, for the run's record.
  package var command = "run"
  package var asOf: Instant
  /// nil: the business day before the as-of.
  package var period: Period?
  /// Whether the period is one night, by default or by `--date`, rather than a range of days.
  package var isOneNight = true
  package var selection = Selection()
  /// `--out`: the folder that the report becomes.
  package var out: String?
  package var isOffline = false
  /// Overrides `recheck.maxDuration`.
  package var maxDuration: Reconciliation.Span?

  package init(asOf: Instant) { self.asOf = asOf }
}

/// What a night has come to.
package struct NightOutcome: Sendable {
  package var asOf: Instant
  package var totals: Totals
  package var summary: SummaryFacts
  /// Where the report lies; nil when none was written.
  package var directory: String?
  package var recheck: RecheckSummary?
  package var exitStatus: ExitStatus
  /// Findings by severity, for those who only want to know whether to look.
  package var criticalFindings: Int {
    summary.findings.openByKind.reduce(0) { $0 + ($1.key.severity == .critical ? $1.value : 0) }
  }
}

/// The shell: connects, asks Apple, reads, decides, writes, publishes. Every decision is made elsewhere.
package struct NightRun: Sendable {
  let settings: Settings
  let logger: Logger
  let stop: StopSignal
  let progress: Progress

  package init(settings: Settings, logger: Logger, stop: StopSignal, progress: Progress) {
    self.settings = settings
    self.logger = logger
    self.stop = stop
    self.progress = progress
  }

  /// The signal that ended the work. Nothing was published.
  package struct Stopped: Error {
    package var reason: StopSignal.Reason
  }

  // MARK: - Commands

  /// Re-check, reconcile, report.
  package func run(_ request: NightRequest) async throws -> NightOutcome {
    let runId = UUID().uuidString.lowercased()
    let began = ContinuousClock.now
    let channels = try openChannels(asOf: request.asOf)
    defer { channels.close() }
    let session = try await connect()
    try await session.withConnection { try Migrator.requireCurrent($0) }
    try await RunLock.acquire(session)
    let plan = try plan(request)
    let record = record(request, plan, runId: runId)
    try await record.begin(session)
    do {
      let recheck = try await recheck(request, channels, runId: runId, session: session)
      if let reason = stop.stopped { throw Stopped(reason: reason) }
      var outcome = try await audit(
        plan, destination: destination(request, plan), faults: recheck.faults, saving: record
      ) {
        status, folder in
        try folder.write(
          RunDocument(record: record, recheck: recheck, duration: .now - began, exitStatus: status).encoded(),
          as: "run.json")
      }
      outcome.recheck = recheck
      await session.close()
      return outcome
    } catch {
      let status = (error as? Stopped)?.reason.rawValue ?? ExitStatus(for: error).rawValue
      try? await record.end(session, exitStatus: status)
      await session.close()
      throw error
    }
  }

  /// Only asks Apple. Several of these may share a database.
  package func recheck(_ request: NightRequest) async throws -> RecheckSummary {
    let channels = try openChannels(asOf: request.asOf)
    defer { channels.close() }
    let session = try await connect()
    try await session.withConnection { try Migrator.requireCurrent($0) }
    let summary = try await recheck(request, channels, runId: UUID().uuidString.lowercased(), session: session)
    await session.close()
    if let reason = stop.stopped { throw Stopped(reason: reason) }
    return summary
  }

  /// How much is due, asking nobody and changing nothing.
  package func dueOnly(_ request: NightRequest) async throws -> RecheckSummary {
    let session = try await connect()
    try await session.withConnection { try Migrator.requireCurrent($0) }
    let queue = try CheckQueue(
      session: session, settings: settings, asOf: request.asOf, runId: UUID().uuidString, selection: request.selection)
    var summary = RecheckSummary()
    summary.due = try await queue.dueCount() + queue.unknownCount()
    await session.close()
    return summary
  }

  /// Only decides, from what is stored. Writes nothing to the database, and files only where `--out` says.
  package func reconcile(_ request: NightRequest) async throws -> NightOutcome {
    let plan = try plan(request)
    let began = ContinuousClock.now
    let record = record(request, plan, runId: UUID().uuidString.lowercased())
    return try await audit(plan, destination: request.out.map { .exact($0) }, faults: [:], saving: nil) {
      status, folder in
      try folder.write(
        RunDocument(record: record, recheck: nil, duration: .now - began, exitStatus: status).encoded(), as: "run.json")
    }
  }

  // MARK: - Asking

  private func connect() async throws(PostgresError) -> PostgresSession {
    try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit")
  }

  /// The apps' channels, the connections that they share, and who judges receipts without them.
  private struct Channels: Sendable {
    var transport: HTTPTransport
    var judge: OfflineJudge
    var channels: [any AppleChannel]

    /// Those that Apple tells about unasked. They share the client, and with it the rate limit, of their channel.
    var swept: [SweptApp] {
      channels.compactMap { $0 as? ServerAPIChannel }.map { SweptApp($0.app, client: $0.client) }
    }

    func close() {
      let transport = transport
      Task { await transport.shutdown() }
    }
  }

  private func openChannels(asOf: Instant) throws -> Channels {
    // A key that is missing explains more than roots that are: it comes first.
    for app in settings.apps where settings.effectiveChannel(of: app) == .serverApi {
      _ = try AppleClients.credentials(of: app)
    }
    let transport = HTTPTransport(timeout: settings.timeout, concurrency: settings.concurrency)
    do {
      let roots = try trustedRoots()
      let channels = try settings.apps.map { app in
        try AppleClients.channel(
          of: app, settings: settings, transport: transport, roots: roots, asOf: asOf, now: { Instant.now })
      }
      return Channels(transport: transport, judge: OfflineJudge(roots: roots), channels: channels)
    } catch {
      Task { await transport.shutdown() }
      throw error
    }
  }

  /// nil without root certificates: signed data then stays unconfirmed, which only verifyReceipt's users can live with.
  private func trustedRoots() throws -> TrustedRoots? {
    do throws(TrustedRootsError) {
      return try TrustedRoots(directory: settings.rootCertificates, pinned: settings.pinRoots)
    } catch {
      if case .noRoots = error, settings.apps.allSatisfy({ settings.effectiveChannel(of: $0) == .verifyReceipt }) {
        return nil
      }
      throw ConfigurationError(key: "appstore.rootCertificates", problem: "\(error)")
    }
  }

  private func recheck(
    _ request: NightRequest, _ channels: Channels, runId: String, session: PostgresSession
  ) async throws -> RecheckSummary {
    let writing = try await connect()
    let queue = try CheckQueue(
      session: session, settings: settings, asOf: request.asOf, runId: runId, selection: request.selection)
    let stage = RecheckStage(
      queue: queue, writer: AnswerWriter(session: writing, asOf: request.asOf, runId: runId),
      judge: channels.judge, channels: channels.channels, settings: settings, logger: logger, stop: stop,
      progress: progress, isOffline: request.isOffline)
    let limit = request.maxDuration ?? settings.maxDuration
    let deadline = ContinuousClock.now + .microseconds(limit.microseconds)
    // First, so that what Apple tells unasked need not be asked for.
    let swept = try await sweep(request, channels.swept, runId: runId, session: writing, deadline: deadline)
    var summary = try await stage.run(deadline: deadline)
    summary.add(swept)
    await writing.close()
    for (app, remedy) in summary.faults.sorted(by: { $0.key < $1.key }) {
      logger.error("\(remedy)", metadata: ["app": "\(app)"])
    }
    if let reason = summary.endedEarly { logger.warning("asking Apple ended early: \(reason)") }
    logger.info(
      "asked Apple",
      metadata: [
        "due": "\(summary.due)", "verified": "\(summary.outcomes[.verified] ?? 0)",
        "rejected": "\(summary.outcomes[.rejected] ?? 0)", "unanswered": "\(summary.outcomes[.unanswered] ?? 0)",
        "review": "\(summary.outcomes[.review] ?? 0)", "not_found": "\(summary.outcomes[.notFound] ?? 0)",
      ])
    return summary
  }

  // MARK: - Deciding

  private func plan(_ request: NightRequest) throws -> AuditPlan {
    AuditPlan(
      rules: settings.rules(asOf: request.asOf),
      period: request.period ?? Period.dayBefore(request.asOf, in: settings.timeZone), selection: request.selection,
      staleAfter: settings.staleAfter, refundWindow: settings.refundWindow)
  }

  private func record(_ request: NightRequest, _ plan: AuditPlan, runId: String) -> RunRecord {
    RunRecord(
      runId: runId, command: request.command, asOf: request.asOf, period: plan.period, timeZone: settings.timeZoneName,
      configuration: settings.digest, isNightly: isNightly(request, plan), host: ProcessInfo.processInfo.hostName)
  }

  private func isNightly(_ request: NightRequest, _ plan: AuditPlan) -> Bool {
    let isUsual = plan.period == Period.dayBefore(request.asOf, in: settings.timeZone)
    return (request.isOneNight || isUsual) && !request.selection.isNarrowing && request.out == nil
  }

  private func destination(_ request: NightRequest, _ plan: AuditPlan) -> ReportFolder.Destination {
    if let out = request.out { return .exact(out) }
    if isNightly(request, plan) { return .nightly(directory: settings.reportDirectory, date: plan.period.until) }
    return .adHoc(directory: settings.reportDirectory, asOf: request.asOf.compactText)
  }

  /// Reads, decides, writes and publishes.
  ///
  /// - Parameters:
  ///   - destination: nil writes no files.
  ///   - record: the run to save; nil leaves the database as it is.
  ///   - finishing: adds files to the folder just before it is published.
  private func audit(
    _ plan: AuditPlan, destination: ReportFolder.Destination?, faults: [String: String], saving record: RunRecord?,
    finishing: @escaping @Sendable (ExitStatus, ReportFolder) throws -> Void
  ) async throws -> NightOutcome {
    let settings = settings
    let stop = stop
    let progress = progress
    return try await withBlockingThread { scope in
      let audit = Audit(settings: settings, plan: plan, faults: faults, stop: stop, progress: progress)
      return try audit.run(scope, destination: destination, saving: record, finishing: finishing)
    }
  }
}

extension Instant {
  /// The system's clock, to whole seconds: the as-of of a run that names none, and the time of Apple's answers.
  package static var now: Instant { Instant(seconds: Int64(Date().timeIntervalSince1970)) }

  /// `20261120T031500Z`, for names of folders.
  var compactText: String {
    let date = Date(timeIntervalSince1970: Double(seconds))
    return date.ISO8601Format(.iso8601(timeZone: .gmt, dateSeparator: .omitted, timeSeparator: .omitted)) + "Z"
  }
}
