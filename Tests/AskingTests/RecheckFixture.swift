import Logging
import Postgres
import Reconciliation
import Settings
import ShopDatabases
import Synchronization
import TestSupport

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// A database with a shop, and a re-check with scripted answers of Apple's.
struct RecheckFixture {
  static let asOf = Instant(seconds: 1_795_143_600)

  let session: PostgresSession
  var settings = Settings()

  /// - Parameter apps: Bundle IDs; all of them use the App Store Server API.
  init(apps: [String] = ["com.example.game"]) async throws {
    settings.databaseURL = try await PrivatePostgres.shopDatabase()
    settings.apps = apps.map { Settings.App(name: $0, bundleId: $0) }
    settings.channel = .serverApi
    settings.concurrency = 4
    session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
  }

  /// Adds an order for each number, which states the number as its transaction ID, after a prefix.
  func orders(
    _ numbers: ClosedRange<Int>, stating prefix: String = "", of bundleId: String = "com.example.game",
    age: Reconciliation.Span = .days(2)
  ) async throws {
    try await session.execute(
      """
      INSERT INTO sales.orders SELECT 'o' || n, 'user of o' || n, $3, 'gems', 1, 9.90, 'USD', 'verified', $4 || n, NULL,
        $5, NULL, $5 FROM generate_series($1::int, $2::int) n
      """,
      [
        .int(Int64(numbers.lowerBound)), .int(Int64(numbers.upperBound)), .text(bundleId), .text(prefix),
        .timestamp((Self.asOf - age).microseconds),
      ])
  }

  func order(
    _ id: String, transaction: String?, bundleId: String? = "com.example.game", age: Reconciliation.Span = .days(2)
  ) async throws {
    try await session.execute(
      """
      INSERT INTO sales.orders VALUES ($1, 'user of ' || $1, $2, 'gems', 1, 9.90, 'USD', 'verified', $3, NULL, $4, NULL, $4)
      """,
      [.text(id), .text(bundleId), .text(transaction), .timestamp((Self.asOf - age).microseconds)])
  }

  func receipt(
    _ id: String, for order: String?, user: String? = "u", payload: String? = nil, status: String = "timeout",
    age: Reconciliation.Span = .days(1)
  ) async throws {
    try await session.execute(
      "INSERT INTO sales.receipts VALUES ($1, $2, $6, $3, NULL, $4, NULL, $5)",
      [
        .text(id), .text(order), .text(payload ?? "payload of \(id)"), .text(status),
        .timestamp((Self.asOf - age).microseconds), .text(user),
      ])
  }

  /// A queue with a worker of its own.
  func queue(
    asOf: Instant = asOf, isPastAudit: Bool = false, selection: Selection = Selection(),
    connect: (@Sendable () async throws -> PostgresSession)? = nil
  ) async throws -> CheckQueue {
    try await CheckQueue.open(
      settings: settings, asOf: asOf, isPastAudit: isPastAudit, selection: selection,
      connect: connect ?? self.connect, connectSales: self.connect)
  }

  /// Opens sessions. The session with this number loses the reply to the statement with `text`.
  func connection(losing text: String, at number: Int, _ opened: Counter) async throws
    -> @Sendable () async throws -> PostgresSession
  {
    let (server, direct) = (try await PrivatePostgres.shared().directory, settings.databaseURL)
    let relay = try DisconnectingRelay(before: server, swallowed: text)
    return {
      opened.add(1)
      let conninfo = opened.value == number ? direct.replacing(server, with: relay.directory) : direct
      return try await PostgresSession.connect(conninfo, applicationName: "night-audit tests")
    }
  }

  var connect: @Sendable () async throws -> PostgresSession {
    let conninfo = settings.databaseURL
    return { try await PostgresSession.connect(conninfo, applicationName: "night-audit tests") }
  }

  static let runId = "6f0e7a52-6f0d-4a3b-9c50-0e2a5b1c7d11"

  func writer(asOf: Instant = asOf, session: OpenSession? = nil) -> AnswerWriter {
    AnswerWriter(session: session ?? OpenSession(open: connect), asOf: asOf, runId: Self.runId, settings: settings)
  }

  func recheck(
    _ channels: [ScriptedChannel], asOf: Instant = asOf, judge: OfflineJudge = .none, isOffline: Bool = false,
    limit: Duration = .seconds(60), selection: Selection = Selection(), gate: AskingGate? = nil,
    log: @escaping @Sendable (String) -> Void = { _ in }
  ) async throws -> RecheckSummary {
    let logger = LogFormat.text.logger(.info, write: log)
    let queue = try await queue(asOf: asOf, selection: selection)
    let summary = try await RecheckStage(
      queue: queue, writer: writer(asOf: asOf), judge: judge, channels: channels, settings: settings,
      logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true),
      gate: gate ?? AskingGate(apps: channels.map(\.app.name)), isOffline: isOffline
    ).run(deadline: .now + limit)
    await queue.close()
    return summary
  }

  func recheck(
    _ script: AnswerScript, asOf: Instant = asOf, judge: OfflineJudge = .none, isOffline: Bool = false,
    limit: Duration = .seconds(60), selection: Selection = Selection(), gate: AskingGate? = nil
  ) async throws -> RecheckSummary {
    try await recheck(
      [ScriptedChannel(script, asOf: asOf)], asOf: asOf, judge: judge, isOffline: isOffline, limit: limit,
      selection: selection, gate: gate)
  }

  /// The rows of a query as texts. `columns` are texts, `rest` is the query after them.
  func rows(_ columns: String, from rest: String) async throws -> [String] {
    try await session.execute("SELECT concat_ws(' ', \(columns)) FROM night_audit.\(rest)").map { try $0.text(0) }
  }

  /// Adds orders with a damaged receipt each, and orders with a genuine one.
  func fill(damaged: Int, genuine: Int) async throws {
    try await orders(0...(damaged + genuine - 1))
    try await session.execute(
      """
      INSERT INTO sales.receipts SELECT 'r' || n, 'o' || n, 'u',
        CASE WHEN n < $1::int THEN 'payload of r' ELSE 'genuine r' END || n, NULL, 'timeout', NULL, $3
      FROM generate_series(0, $2::int - 1) n
      """,
      [
        .int(Int64(damaged)), .int(Int64(damaged + genuine)), .timestamp((Self.asOf - .days(1)).microseconds),
      ])
    try await session.execute("UPDATE sales.orders SET transaction_id = NULL")
  }

  /// Stores facts that no proof contains.
  func addEvidence(_ facts: [TransactionFact]) async throws {
    try await session.withConnection { connection in
      try EvidenceTable.append(facts.map { (nil, $0) }, runId: Self.runId, asOf: Self.asOf, on: connection)
    }
  }

  /// The outcomes and reasons of all checks, with their numbers.
  func states() async throws -> [String] {
    try await rows(
      "outcome, reason, count(*)", from: "receipt_checks GROUP BY outcome, reason ORDER BY outcome, reason")
  }

  func count(_ table: String) async throws -> Int64 {
    try await session.execute("SELECT count(*) FROM night_audit.\(table)").single().int64(0)
  }

  /// Ends all sessions except the one that ends them.
  func endSessions() async throws {
    try await session.execute(
      """
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
      """)
  }
}

final class Counter: Sendable {
  private let count = Mutex(0)

  var value: Int { count.withLock { $0 } }

  func add(_ more: Int) { count.withLock { $0 += more } }
}

extension OfflineJudge {
  static let none = OfflineJudge(hasRoots: false) { _ in (.app, .noRoots(nil)) }

  /// Judges payloads with the prefix `genuine` as genuine, and all others as malformed.
  static let damaged = OfflineJudge(hasRoots: true) { payload in
    payload.hasPrefix("genuine")
      ? (.app, .proof(of: ["g\(payload)"])) : (.malformed, .refused(.malformed))
  }

  /// Judges every payload as a genuine app receipt with these purchases.
  static func genuine(_ ids: [String]) -> OfflineJudge {
    OfflineJudge(hasRoots: true) { _ in (.app, .proof(of: ids)) }
  }

  /// Judges every payload as a receipt whose signature cannot be verified.
  static func claim(
    _ ids: [String], kind: ReceiptKind = .app, of bundleId: String = "com.example.game"
  ) -> OfflineJudge {
    let content = WrittenContent(environment: .production, bundleId: bundleId)
    let claim = UnprovenClaim(why: "unknown", transactionIds: ids, content: content)
    return OfflineJudge(hasRoots: true) { _ in (kind, .claim(claim)) }
  }
}

/// Apple's answers about transactions, and the questions that were asked. A retry for the missing part of an answer has
/// the ID "the rest of" the transaction.
final class AnswerScript: Sendable {
  private let state = Mutex<(answers: [String: [ChannelAnswer]], asked: [String])>(([:], []))

  /// Answers by ID, in order; the last one is repeated. Apple does not know an ID without answers.
  init(_ answers: [String: [ChannelAnswer]]) { state.withLock { $0.answers = answers } }

  /// Apple knows the transactions of these numbers.
  static func found(_ numbers: ClosedRange<Int>, prefix: String = "") -> AnswerScript {
    AnswerScript(
      Dictionary(uniqueKeysWithValues: numbers.map { ("\(prefix)\($0)", [.found("\(prefix)\($0)")]) }))
  }

  /// Apple gives the same answer about each of these numbers.
  static func all(_ numbers: ClosedRange<Int>, _ answer: ChannelAnswer) -> AnswerScript {
    AnswerScript(Dictionary(uniqueKeysWithValues: numbers.map { ("\($0)", [answer]) }))
  }

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

extension AnswerScript: ExpressibleByDictionaryLiteral {
  convenience init(dictionaryLiteral elements: (String, [ChannelAnswer])...) {
    self.init(Dictionary(uniqueKeysWithValues: elements))
  }
}

/// The App Store Server API of one app, with scripted answers.
struct ScriptedChannel: AppleChannel {
  let app: Settings.App
  let policy: ServerAPIChannel.Policy
  let script: AnswerScript
  /// The rate gate of production.
  var turns = RateGate(rate: nil)
  /// The rate gate of the sandbox.
  var sandboxTurns = RateGate(rate: nil)
  /// Runs before a question takes its turn.
  var beforeTurn: (@Sendable () async -> Void)?
  /// Runs before an answer is returned, with the number of the question from 1.
  var beforeAnswer: (@Sendable (Int) async -> Void)?

  init(_ script: AnswerScript, of bundleId: String = "com.example.game", asOf: Instant = RecheckFixture.asOf) {
    app = Settings.App(name: bundleId, bundleId: bundleId)
    policy = ServerAPIChannel.Policy(
      asOf: asOf, refundWindow: .days(120), matchWindow: .hours(72), notFoundGrace: .hours(24))
    self.script = script
  }

  func questions(about check: CheckInProgress) -> [Question] {
    ServerAPIChannel.questions(about: check, bundleId: app.bundleId, policy: policy)
  }

  func ask(
    _ question: Question, after failed: ChannelAnswer?, while isWanted: @escaping @Sendable () -> Bool
  ) async throws(CancellationError) -> ChannelAnswer {
    guard case .transaction(let id) = question.matter else { return ChannelAnswer(.review) }
    if let beforeTurn { await beforeTurn() }
    try await turns.admit(while: isWanted)
    let answer = script.answer(failed?.received == nil ? id : "the rest of \(id)")
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

  func result(of check: CheckInProgress, answers: [ChannelAnswer]) -> CheckResult {
    ServerAPIChannel.result(of: check, answers: answers, policy: policy)
  }
}

extension OfflineJudgement {
  /// A proof of these purchases, as of the day before.
  static func proof(of ids: [String]) -> OfflineJudgement {
    .genuine(
      GenuineProof(
        environment: .production, bundleId: "com.example.game",
        facts: ids.map { .test($0, .offline, signed: RecheckFixture.asOf - .days(1)) }))
  }
}

extension ChannelAnswer {
  /// An answer with Apple's record of a transaction.
  static func found(_ id: String, bundleId: String = "com.example.game") -> ChannelAnswer {
    ChannelAnswer(
      .genuine(environment: .production, bundleId: bundleId, facts: [.test(id, .serverApi, bundleId: bundleId)]))
  }

  static let silent = ChannelAnswer(.silent(Silence(reason: .unreachable, detail: "timeout")))
  static let outOfOrder = ChannelAnswer(.silent(Silence(reason: .appleError, detail: "HTTP 503")))
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

extension AskingGate {
  /// A gate after some answered questions of the first app, followed by some failures. Each reading of the clock adds
  /// `step` to it.
  static func gate(
    answers: Int = 0, failures: Int, apps: [String] = ["com.example.game"], step: Duration = .zero
  ) -> AskingGate {
    let uptime = Mutex(Duration.zero)
    return gate(answers: answers, failures: failures, apps: apps) {
      uptime.withLock { uptime in
        uptime += step
        return uptime
      }
    }
  }

  static func gate(
    answers: Int = 0, failures: Int, apps: [String], uptime: @escaping @Sendable () -> Duration
  ) -> AskingGate {
    let gate = AskingGate(apps: apps, clock: RateGate.Clock(uptime: uptime, sleep: { _ throws(CancellationError) in }))
    var (found, failed) = (ChannelAnswer.found("0"), ChannelAnswer.outOfOrder)
    (found.asked, failed.asked) = ([.production], [.production])
    for answer in Array(repeating: found, count: answers) + Array(repeating: failed, count: failures) {
      guard case .granted(let permit) = gate.admit(AskingGate.Lane(app: apps[0], side: .production)) else { continue }
      _ = gate.note(answer, permit)
    }
    return gate
  }
}
