import AppStore
import Logging
import Postgres
import Reconciliation
import Settings
import Synchronization
import TestSupport

@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// A database with a shop, and a re-check with scripted answers of Apple's.
struct RecheckFixture {
  static let asOf = Instant(seconds: 1_795_143_600)

  let session: PostgresSession
  var settings: Settings
  let writing: PostgresSession

  /// - Parameter apps: Bundle IDs; all of them use the App Store Server API.
  static func run(
    apps: [String] = ["com.example.game"], _ body: (RecheckFixture) async throws -> Void
  ) async throws {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shared().createDatabase()
    settings.apps = apps.map { Settings.App(name: $0, bundleId: $0) }
    settings.channel = .serverApi
    settings.concurrency = 4
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    let writing = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      try SalesSchema.create("sales", connection)
      _ = try Migrator.migrate(connection)
    }
    try await body(RecheckFixture(session: session, settings: settings, writing: writing))
    await session.close()
    await writing.close()
  }

  func order(
    _ id: String, transaction: String?, bundleId: String? = "com.example.game", age: Reconciliation.Span = .days(2)
  ) async throws {
    try await session.execute(
      """
      INSERT INTO sales.orders VALUES ($1, 'user of ' || $1, $2, 'gems', 1, 9.90, 'USD', 'verified', $3, NULL, $4, NULL, $4)
      """,
      [
        .text(id), .text(bundleId), .text(transaction), .timestamp((RecheckFixture.asOf - age).microseconds),
      ])
  }

  func receipt(
    _ id: String, for order: String?, user: String? = "u", status: String = "timeout"
  ) async throws {
    try await session.execute(
      "INSERT INTO sales.receipts VALUES ($1, $2, $6, $3, NULL, $4, NULL, $5)",
      [
        .text(id), .text(order), .text("payload of \(id)"), .text(status),
        .timestamp((RecheckFixture.asOf - .days(1)).microseconds), .text(user),
      ])
  }

  /// A queue with a worker of its own.
  func queue(
    asOf: Instant = asOf, isPastAudit: Bool = false, selection: Selection = Selection(),
    logger: Logger? = nil
  ) async throws -> CheckQueue {
    let connect = connect
    return try await CheckQueue.open(
      settings: settings, asOf: asOf, isPastAudit: isPastAudit, selection: selection, logger: logger, connect: connect,
      connectSales: connect)
  }

  var connect: @Sendable () async throws -> PostgresSession {
    let conninfo = settings.databaseURL
    return { try await PostgresSession.connect(conninfo, applicationName: "night-audit tests") }
  }

  static let runId = "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11"

  func writer(asOf: Instant = asOf) -> AnswerWriter {
    AnswerWriter(
      session: OpenSession(open: connect), asOf: asOf, runId: RecheckFixture.runId, settings: settings)
  }

  func recheck(
    _ channels: [ScriptedChannel], asOf: Instant = asOf, judge: OfflineJudge = .none, isOffline: Bool = false,
    limit: Duration = .seconds(60), selection: Selection = Selection(), critical: Set<CheckSubject> = [],
    gate: AskingGate? = nil, log: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> RecheckSummary {
    let logger = LogFormat.text.logger(.info, write: log)
    let queue = try await queue(asOf: asOf, selection: selection)
    let summary = try await RecheckStage(
      queue: queue, writer: writer(asOf: asOf), judge: judge, channels: channels, settings: settings,
      logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true),
      gate: gate ?? AskingGate(apps: channels.map(\.app.name)), isOffline: isOffline
    ).run(deadline: .now + limit, critical: critical)
    await queue.close()
    return summary
  }

  /// The rows of a query as texts.
  func rows(_ sql: String) async throws -> [String] {
    try await session.execute("SELECT concat_ws(' ', VARIADIC ARRAY[\(sql)").map { try $0.text(0) }
  }
}

extension OfflineJudge {
  static let none = OfflineJudge(hasRoots: false) { _ in (.app, .noRoots(nil)) }
}

/// The App Store Server API of one app, with scripted answers.
struct ScriptedChannel: AppleChannel {
  let app: Settings.App
  let policy: ServerAPIChannel.Policy
  let script: Script
  /// The rate gate of production.
  var turns = RateGate(rate: nil)
  /// The rate gate of the sandbox.
  var sandboxTurns = RateGate(rate: nil)
  /// Runs before a question takes its turn.
  var beforeTurn: (@Sendable () async -> Void)?
  /// Runs before an answer is returned, with the number of the question from 1.
  var beforeAnswer: (@Sendable (Int) async -> Void)?

  final class Script: Sendable {
    private let state = Mutex<(answers: [String: [ChannelAnswer]], asked: [String])>(([:], []))

    /// Answers by ID, in order; the last one is repeated. Apple does not know an ID without answers.
    init(_ answers: [String: [ChannelAnswer]]) { state.withLock { $0.answers = answers } }

    var asked: [String] { state.withLock { $0.asked } }

    func answer(_ id: String) -> ChannelAnswer {
      state.withLock { state in
        state.asked.append(id)
        guard let answers = state.answers[id], var answer = answers.first else {
          var unknown = ChannelAnswer(.unknown)
          unknown.asked = [.production, .sandbox]
          return unknown
        }
        if answers.count > 1 { state.answers[id]?.removeFirst() }
        answer.asked = [.production]
        return answer
      }
    }
  }

  init(_ script: Script, of bundleId: String = "com.example.game", asOf: Instant = RecheckFixture.asOf) {
    app = Settings.App(name: bundleId, bundleId: bundleId)
    policy = ServerAPIChannel.Policy(asOf: asOf, refundWindow: .days(120), notFoundGrace: .hours(24))
    self.script = script
  }

  func questions(about check: JudgedCheck) -> [Question] {
    ServerAPIChannel.questions(about: check, bundleId: app.bundleId, policy: policy)
  }

  func ask(
    _ question: Question, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer {
    guard case .transaction(let id) = question.matter else { return ChannelAnswer(.review) }
    if let beforeTurn { await beforeTurn() }
    try await turns.admit(while: isWanted)
    let answer = script.answer(id)
    if let beforeAnswer { await beforeAnswer(script.asked.count) }
    return answer
  }

  func isRateLimited(on side: AppleHost) -> Bool {
    switch side {
    case .production: turns.isRateLimited
    case .sandbox: sandboxTurns.isRateLimited
    }
  }

  func renewCredential() async {}

  func result(of check: JudgedCheck, answers: [ChannelAnswer]) -> CheckResult {
    ServerAPIChannel.result(of: check, answers: answers, policy: policy)
  }
}

extension ChannelAnswer {
  /// An answer with Apple's record of a transaction.
  static func found(_ id: String, bundleId: String = "com.example.game") -> ChannelAnswer {
    ChannelAnswer(
      .genuine(environment: .production, bundleId: bundleId, facts: [.test(id, .serverApi, bundleId: bundleId)]))
  }

  static let silent = ChannelAnswer(.silent(Silence(reason: .unreachable, detail: "timeout")))
}

extension TransactionFact {
  static func test(
    _ id: String, _ channel: EvidenceChannel, bundleId: String = "com.example.game",
    signed: Instant = RecheckFixture.asOf - .hours(1)
  ) -> TransactionFact {
    var fact = TransactionFact(
      environment: .production, transactionId: id, productId: "gems", channel: channel, signedDate: signed)
    fact.bundleId = bundleId
    fact.purchaseDate = RecheckFixture.asOf - .days(2)
    fact.revocation = .stated(nil)
    return fact
  }
}
