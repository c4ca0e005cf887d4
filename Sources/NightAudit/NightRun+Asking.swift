import AppStore
import Asking
import AuditStore
import Auditing
import Logging
import Postgres
import Reconciliation
import Run
import Settings

extension NightRun {
  /// Opens a session for short transactions, whose locks end like a lease. The sessions of an audit are others.
  @Sendable func connect() async throws -> PostgresSession {
    var profile = SessionProfile.store
    profile.idleInTransactionTimeout = .microseconds(settings.timeout.microseconds * 2)
    return try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit", profile: profile)
  }

  @Sendable private func connectSales() async throws -> PostgresSession {
    try await PostgresSession.connect(
      settings.salesURL ?? settings.databaseURL, applicationName: "night-audit", profile: .salesReader)
  }

  struct Channels: Sendable {
    var transport: HTTPTransport
    var judge: OfflineJudge
    var channels: [any AppleChannel]
    var gate: AskingGate
    var rates: SharedRates
    var swept: [SweptApp] { channels.compactMap { ($0 as? ServerAPIChannel)?.swept } }

    func close() {
      let (transport, rates) = (transport, rates)
      Task {
        await transport.shutdown()
        await rates.close()
      }
    }
  }

  func openChannels(asOf: Instant, until deadline: ContinuousClock.Instant) throws -> Channels {
    // Checked first, because a missing key explains more than missing root certificates.
    for app in settings.apps where settings.effectiveChannel(of: app) == .serverApi {
      _ = try AppleClients.credentials(of: app)
    }
    let transport = HTTPTransport(timeout: settings.timeout, concurrency: settings.concurrency, statistics: statistics)
    do {
      let roots = try AppleClients.roots(settings)
      let rates = SharedRates(connect: connect)
      let night = NightTime()
      night.ends(in: deadline - .now)
      let channels = try settings.apps.map { app in
        try AppleClients.channel(
          of: app, settings: settings, transport: transport, roots: roots, asOf: asOf,
          pace: Pace(night: night, rates: rates), now: { Instant.now })
      }
      return Channels(
        transport: transport, judge: OfflineJudge(roots: roots), channels: channels,
        gate: AskingGate(apps: channels.map(\.app.name)), rates: rates)
    } catch {
      Task { await transport.shutdown() }
      throw error
    }
  }

  func deadline(_ request: NightRequest) -> ContinuousClock.Instant {
    .now + .microseconds((request.maxDuration ?? settings.maxDuration).microseconds)
  }

  /// - Parameter open: questions of an audit; nil for the first re-check of a night.
  func recheck(
    _ request: NightRequest, _ channels: Channels, runId: String, deadline: ContinuousClock.Instant,
    open: OpenQuestions? = nil
  ) async throws -> RecheckSummary {
    let writing = OpenSession(logger: logger, open: connect)
    let feed = FeedReading(
      run: self, request: request, apps: channels.swept, gate: channels.gate, runId: runId, session: writing)
    var summary = RecheckSummary()
    func halfway() -> ContinuousClock.Instant { ContinuousClock.now + (deadline - .now) / 2 }
    if let open {
      summary.add(try await feed.histories(of: open.customers, deadline: open.asksAboutChecks ? halfway() : deadline))
      if open.asksAboutChecks {
        summary.add(try await ask(request, channels, runId: runId, writing, deadline: deadline, open))
      }
    } else {
      // The sweep comes first because its facts save look-ups. It gets half the time, as a first sweep covers months.
      let swept = try await feed.sweep(deadline: halfway())
      summary = try await ask(request, channels, runId: runId, writing, deadline: deadline, OpenQuestions())
      summary.add(swept)
      if swept?.isUnfinished ?? false, summary.endedEarly == nil, stop.stopped == nil, .now < deadline {
        // An interrupted sweep is tried again at the end.
        summary.add(try await feed.sweep(deadline: deadline))
      }
      // Histories come last because the answers decide whose histories are read. They get half the time, because the
      // audit may find questions.
      summary.add(try await feed.histories(deadline: halfway()))
    }
    // Only a whole re-check replaces the stored faults: further rounds and narrowed runs ask few questions, offline
    // runs none.
    if !request.isOffline {
      let (faults, isWhole) = (summary.faults, open == nil && !request.selection.isNarrowing)
      try await writing.withConnection {
        try AskingFaults.save(faults, isWhole: isWhole, asOf: request.asOf, runId: runId, on: $0)
      }
    }
    try await writing.run { session, _ in
      try await session.withConnection { try Trail.appendAnswers(run: runId, on: $0) }
    }
    await writing.close()
    for (app, remedy) in summary.faults.sorted(by: { $0.key < $1.key }) {
      logger.error("\(remedy)", metadata: ["app": "\(app)"])
    }
    if let reason = summary.incompleteReason { logger.warning("asking Apple ended early: \(reason)") }
    logger.info(
      request.isOffline ? "judged receipts without asking Apple" : "asked Apple",
      metadata: [
        "due": "\(summary.due)", "verified": "\(summary.outcomes[.verified] ?? 0)",
        "rejected": "\(summary.outcomes[.rejected] ?? 0)", "unanswered": "\(summary.outcomes[.unanswered] ?? 0)",
        "review": "\(summary.outcomes[.review] ?? 0)", "not_found": "\(summary.outcomes[.notFound] ?? 0)",
      ])
    return summary
  }

  private func ask(
    _ request: NightRequest, _ channels: Channels, runId: String, _ writing: OpenSession,
    deadline: ContinuousClock.Instant, _ open: OpenQuestions
  ) async throws -> RecheckSummary {
    let queue = try await openQueue(request)
    let stage = RecheckStage(
      queue: queue, writer: AnswerWriter(session: writing, asOf: request.asOf, runId: runId, settings: settings),
      judge: channels.judge, channels: channels.channels, settings: settings, logger: logger, stop: stop,
      progress: progress, gate: channels.gate, isOffline: request.isOffline)
    // An accepted night takes over all receipts as they are now, or the next one would be held for the same moves.
    let accepted = request.isAccepted ? request.asOf - settings.lookback : nil
    let summary = try await stage.run(
      deadline: deadline, critical: open.critical, unknownFrom: [accepted, open.unknownFrom].compactMap(\.self).min())
    await queue.close()
    return summary
  }

  func openQueue(_ request: NightRequest, isTaking: Bool = true) async throws -> CheckQueue {
    var settings = settings
    if request.isAccepted { settings.holdShare = .whole }
    return try await CheckQueue.open(
      settings: settings, asOf: request.asOf, isPastAudit: isPastAudit(request), selection: request.selection,
      isTaking: isTaking, logger: logger, connect: connect, connectSales: connectSales)
  }
}

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

  private func stage(until deadline: ContinuousClock.Instant) -> FeedStage {
    FeedStage(
      apps: apps, asOf: request.asOf, settings: run.settings, gate: gate, session: session, runId: runId,
      logger: run.logger, stop: run.stop, progress: run.progress, deadline: deadline)
  }

  /// Sweeps the notification history of every app that has a key; nil if it did not run.
  func sweep(deadline: ContinuousClock.Instant) async throws -> SweepSummary? {
    if !isWanted { return nil }
    let stage = stage(until: deadline)
    let summary = try await run.progress.during("sweeping Apple's notification history", total: 0, stage.sweep)
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
    let summary = try await stage(until: deadline).readHistories()
    if summary.pages > 0 {
      run.logger.info(
        "read the purchase histories of customers",
        metadata: ["histories": "\(summary.histories)", "pages": "\(summary.pages)", "new_facts": "\(summary.facts)"])
    }
    return summary
  }
}
