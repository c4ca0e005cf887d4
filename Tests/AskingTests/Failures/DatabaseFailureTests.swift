import AppStore
import Logging
import Postgres
import Reconciliation
import Synchronization
import TestSupport
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Lost sessions, unstorable values, and the request rates in the database.
@Suite struct DatabaseFailureTests {
  private static let asOf = RecheckFixture.asOf
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  @Test func sessionLossWhileStoringLosesNoAnswers() async throws {
    try await shop.orders(1...200)
    let script = AnswerScript.found(1...200)
    var channel = ScriptedChannel(script)
    channel.beforeAnswer = { [shop] number in if number % 60 == 0 { try? await shop.endSessions() } }
    let summary = try await shop.recheck([channel])
    #expect(summary.outcomes == [.verified: 200] && summary.endedEarly == nil)
    #expect(script.asked.count == 200, "\(script.asked.count)")
    #expect(try await shop.states() == ["verified 200"])
    for table in ["answers", "evidence"] { #expect(try await shop.count(table) == 200) }
  }

  /// A task that notices the loss late does not close the session that another task has opened meanwhile.
  @Test func aSessionThatIsLostForTwoTasksIsOpenedOnceMore() async throws {
    let opened = Counter()
    let session = OpenSession { [shop] in
      opened.add(1)
      return try await shop.connect()
    }
    let (begun, begin) = AsyncStream.makeStream(of: Void.self)
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    async let late: Int64 = session.run { connection, isRetry in
      if !isRetry {
        begin.finish()
        for await _ in ended {}
      }
      return try await connection.execute("SELECT 1::bigint").single().int64(0)
    }
    for await _ in begun {}
    try await shop.endSessions()
    try await session.execute("SELECT 1")
    end.finish()
    let value = try await late
    #expect(value == 1 && opened.value == 2)
  }

  @Test func waitingForTheDatabaseIsLoggedOnce() async throws {
    let attempts = Counter()
    let logged = Mutex<[String]>([])
    let logger = LogFormat.text.logger(.info) { line in logged.withLock { $0.append(line) } }
    let session = OpenSession(logger: logger) {
      attempts.add(1)
      if attempts.value < 3 { throw PostgresError(.connectionFailed, "too many connections for role") }
      throw PostgresError(.usage, "that is enough")
    }
    await #expect(throws: PostgresError.self) { try await session.execute("SELECT 1") }
    let lines = logged.withLock { $0 }
    #expect(attempts.value == 3 && lines.count == 1 && lines.allSatisfy { $0.contains("too many connections") })
  }

  @Test func anUnstorableValueLosesOnlyItsOwnAnswer() async throws {
    try await shop.orders(1...40)
    var answers = Dictionary(uniqueKeysWithValues: (1...40).map { ("\($0)", [ChannelAnswer.found("\($0)")]) })
    var endless = TransactionFact.test("7", .serverApi)
    // Random, so that no compression makes it fit the index.
    var random = SeededGenerator(seed: 7)
    endless.transactionId = (0..<9_000).map { _ in "\(UInt64.random(in: 0 ... .max, using: &random))" }.joined()
    answers["7"] = [ChannelAnswer(.genuine(environment: .production, bundleId: "com.example.game", facts: [endless]))]
    answers["8"]?[0].appleStatus = 99_999_999_999
    let summary = try await shop.recheck(AnswerScript(answers))
    #expect(summary.endedEarly == nil)
    #expect(try await shop.states() == ["review apple_error 1", "verified 39"])
    let parked = "receipt_checks WHERE outcome = 'review' AND due_from > last_attempt"
    #expect(try await shop.rows("subject_id", from: parked) == ["com.example.game/7"])
  }

  /// Asking ends at once, although the remaining questions wait for a rate limit.
  @Test(.timeLimit(.minutes(5))) func answersThatCannotBeStoredEndTheAsking() async throws {
    try await shop.orders(1...8)
    var channel = ScriptedChannel(.found(1...8))
    let turns = channel.turns
    channel.beforeAnswer = { [shop] _ in
      turns.shut(for: .seconds(600))
      try? await shop.session.executeScript("ALTER TABLE night_audit.answers RENAME TO gone")
    }
    let channels = [channel]
    await #expect(throws: PostgresError.self) { try await shop.recheck(channels) }
  }

  @Test func twoRowsOfOneReceiptAreAskedAboutOnce() async throws {
    try await shop.fill(damaged: 0, genuine: 3)
    // A view that returns each row twice.
    try await shop.session.executeScript(
      """
      ALTER TABLE sales.receipts RENAME TO receipts_once;
      CREATE VIEW sales.receipts AS SELECT r.* FROM sales.receipts_once r CROSS JOIN generate_series(1, 2) n
      """)
    let summary = try await shop.recheck(.found(0...2, prefix: "ggenuine r"), judge: .damaged)
    #expect(summary.outcomes == [.verified: 3])
  }

  // MARK: - Limits that all workers share

  private func turns(of rates: SharedRates) throws -> RateGate.SharedTurns {
    try #require(rates.turns(app: "com.example.game", side: .production, interface: "transactionInfo", rate: 20))
  }

  /// Turns that one worker has taken delay the others. The test does not wait for them.
  @Test func workersTakeTurnsFromOneRate() async throws {
    let (mine, theirs) = (SharedRates(connect: shop.connect), SharedRates(connect: shop.connect))
    let (first, second) = (try turns(of: mine), try turns(of: theirs))
    // At twenty a second, two thousand turns take a hundred seconds.
    #expect(try await first.take(2_000) <= .zero)
    for turns in [second, first] {
      let wait = try await turns.take(1)
      #expect((.seconds(50)...(.seconds(101))).contains(wait), "\(wait)")
    }
    for rates in [mine, theirs] { await rates.close() }
  }

  /// Apple limits a side as a whole, including interfaces without any request so far.
  @Test func aSharedPauseAppliesToUnusedInterfaces() async throws {
    let rates = SharedRates(connect: shop.connect)
    let turns = try turns(of: rates)
    turns.shut(.seconds(60))
    var rows: [String] = []
    while rows.isEmpty {
      rows = try await shop.rows(
        "interface, (next_turn > clock_timestamp() + interval '50 seconds')::text", from: "rates")
    }
    #expect(rows == ["transactionInfo true"])
    #expect(try await turns.take(1) > .seconds(50))
    await rates.close()
  }

  /// A night with the server's clock a year ahead leaves turns that no later night could wait for.
  @Test(.timeLimit(.minutes(2))) func turnsOfAClockAheadAreDiscarded() async throws {
    let rates = SharedRates(connect: shop.connect)
    let turns = try turns(of: rates)
    _ = try await turns.take(1)
    func store(_ ahead: String) async throws {
      try await shop.session.execute(
        "UPDATE night_audit.rates SET next_turn = clock_timestamp() + $1::text::interval", [.text(ahead)])
    }
    for (ahead, isBelieved) in [("300 days", false), ("2 hours", false), ("1 hour", true)] {
      try await store(ahead)
      let wait = try await turns.take(1)
      #expect((wait > .seconds(60)) == isBelieved, "\(ahead): \(wait)")
    }
    // `shut` returns before its statement is done.
    try await store("300 days")
    turns.shut(.seconds(60))
    let isBelieved = "rates WHERE next_turn < clock_timestamp() + interval '1 hour'"
    while try await shop.rows("interface", from: isBelieved) != ["transactionInfo"] { await Task.yield() }
    await rates.close()
  }
}
