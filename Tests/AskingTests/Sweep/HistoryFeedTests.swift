import Foundation
import Logging
import Postgres
import Reconciliation
import Synchronization
import TestSupport
import Testing

@testable import AppStore
@testable import Asking
@testable import AuditStore
@testable import Run
@testable import SalesStore

/// Customer histories in a real database, read from a scripted Apple.
@Suite struct HistoryFeedTests {
  private let asOf = RecheckFixture.asOf
  private let feed: FeedFixture

  init() async throws { feed = try await FeedFixture() }

  /// Reads the histories of customers in the night of an as-of; nil: of the customers that the evidence selects.
  @discardableResult
  private func read(
    _ customers: [String]?, _ asOf: Instant, apps: [SweptApp]? = nil, within time: Duration = .seconds(60)
  ) async throws -> SweepSummary {
    try await feed.session.withConnection { connection in
      let histories = CustomerHistories(bundleId: FeedFixture.bundleId)
      if let customers {
        try histories.want(customers, asOf: asOf, staleAfter: .days(7), on: connection)
      } else {
        try histories.requestUpgradedAndSample(asOf: asOf, staleAfter: .days(7), on: connection)
      }
    }
    return try await feed.stage(asOf, apps: apps, limit: time).readHistories()
  }

  /// Stores transactions of the app.
  private func know(
    _ ids: [String], of original: String? = nil, columns: String = "", values: String = ""
  ) async throws {
    try await feed.session.execute(
      """
      INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
        tells_account_token, is_contradictory, channel, signed_at, checked_at, purchased_at\(columns))
      SELECT 'Production', id, $2, 'com.example.game', 'gems', true, false, 'notification', $3, $3, $3\(values)
      FROM unnest($1::text[]) AS t (id)
      """, [.textArray(ids), .text(original), .timestamp(Instant(seconds: 1_795_000_000).microseconds)])
  }

  /// The number of customers that make the night of an as-of incomplete.
  private func shortCount(_ asOf: Instant) async throws -> Int {
    try await feed.session.withConnection {
      try CustomerHistories(bundleId: FeedFixture.bundleId).shortCount(
        PublishedReport.Span(after: nil, until: asOf), since: asOf - .hours(48), $0)
    }
  }

  private func history(
    _ facts: [TransactionFact], revision: String?, _ end: HistoryAnswer.End = .complete
  ) throws -> HistoryAnswer {
    var answer = HistoryAnswer(revision: revision, end: end)
    answer.transactions = try facts.map { fact in
      var fact = fact
      fact.channel = .serverApi
      return try fact.signed
    }
    return answer
  }

  private static func sale(_ id: String, original: String? = nil) -> TransactionFact {
    .sale(id, signed: RecheckFixture.asOf + .hours(1), original: original)
  }

  private static let silence = HistoryAnswer.End.unanswered(Silence(reason: .appleError, detail: "HTTP 500"))

  // MARK: - Selected customers

  @Test func aHistoryIsReadToItsEndAndAgainWhenItIsStale() async throws {
    let (first, other) = (Self.sale("t1"), Self.sale("t3", original: "t1"))
    feed.apple.reply(try history([first], revision: "r1", .pageLimit), about: "t1", after: nil)
    feed.apple.reply(try history([other], revision: "r2"), about: "t1", after: "r1")
    let summary = try await read(["t1"], asOf)
    #expect(summary.histories == 1 && summary.facts == 2 && !summary.isShort)
    #expect(feed.apple.historyRequests == ["t1 -", "t1 r1"])
    #expect(try await feed.value("SELECT count(*) FROM night_audit.transactions") == "2")
    for night in [0, 1] as [Int64] { try await read(["t1"], asOf + .days(night)) }
    #expect(feed.apple.historyRequests.count == 2)
    // After that, changes only.
    try await read(["t1"], asOf + .days(7))
    #expect(feed.apple.historyRequests.dropFirst(2) == ["t1 r2"])
  }

  @Test func doubtfulPaymentsRequestHistoriesUntilTheyAreRead() async throws {
    try await know(["t1", "t2"], of: "t1")
    try await know(["t9"])
    func wanted(_ asOf: Instant) async throws -> [String] {
      try await feed.session.withConnection {
        try CustomerHistories.wanted(
          of: ["t2", "t9", "unknown"], bundleIds: [FeedFixture.bundleId], asOf: asOf, staleAfter: .days(7), on: $0)
      }.map(\.transactionId).sorted()
    }
    #expect(try await wanted(asOf) == ["t1", "t9"])
    try await read(["t1"], asOf)
    #expect(try await wanted(asOf) == ["t9"])
    #expect(try await wanted(asOf + .days(7)) == ["t1", "t9"])
    // For a night of the past, later histories are known.
    #expect(try await wanted(asOf - .days(1)) == ["t9"])
  }

  @Test func upgradesWithoutASuccessorRequestAHistory() async throws {
    let period = ", expires_at, is_upgraded"
    try await know(["a1"], of: "a1", columns: period, values: ", $3 + interval '30 days', true")
    try await know(["b1"], of: "b1", columns: period, values: ", $3 + interval '30 days', true")
    try await know(["b2"], of: "b1", columns: period, values: ", $3 + interval '40 days', false")
    try await feed.session.execute(
      "UPDATE night_audit.transactions SET purchased_at = purchased_at + interval '1 day' WHERE transaction_id = 'b2'"
    )
    try await read(nil, asOf)
    #expect(feed.apple.historyRequests.contains("a1 -") && !feed.apple.historyRequests.contains("b1 -"))
  }

  @Test func onlyUnfilteredRunsSampleHistories() async throws {
    func sample(_ asOf: Instant, after earlier: [Instant] = []) async throws -> Set<String> {
      let shop = try await HistoryFeedTests()
      try await shop.know((0..<2_000).map { "t\($0)" })
      for earlier in earlier { try await shop.read(nil, earlier) }
      let before = shop.feed.apple.historyRequests.count
      try await shop.read(nil, asOf)
      return Set(shop.feed.apple.historyRequests.dropFirst(before))
    }
    let first = try await sample(asOf)
    #expect(first.count > 1 && first.count < 30)
    #expect(try await sample(asOf) == first)
    #expect(try await sample(asOf + .days(1)) != first)
    // A history from an earlier night is sampled again only when it is stale. Nothing else changes the sample.
    #expect(try await sample(asOf, after: [asOf - .days(20)]) == first)
  }

  @Test func severalCustomersAreReadAtATime() async throws {
    let meeting = Barrier(of: 4)
    var app = feed.apple.app()
    let page = app.history
    app.history = { id, revision throws(CancellationError) in
      await meeting.come()
      return try await page(id, revision)
    }
    let summary = try await read((0..<4).map { "t\($0)" }, asOf, apps: [app])
    #expect(summary.histories == 4 && meeting.hasMet)
  }

  // MARK: - Missing answers

  @Test func anUnansweredHistoryDoesNotDelayOthers() async throws {
    feed.apple.reply(try history([], revision: nil, Self.silence), about: "t1", after: nil)
    #expect(try await read(["t1", "t2"], asOf, within: .seconds(6)).isShort)
    #expect(Set(feed.apple.historyRequests) == ["t1 -", "t2 -"])
    #expect(try await feed.value("SELECT string_agg(reason, ',') FROM night_audit.histories") == "apple_error")
    // A second request in the same night is answered.
    feed.apple.reply(try history([], revision: "r1"), about: "t1", after: nil)
    #expect(!(try await read([], asOf).isShort))
    #expect(try await feed.value("SELECT count(*) FROM night_audit.histories WHERE reason IS NULL") == "2")
  }

  @Test func anOutageUntilTheDeadlineMakesTheNightIncomplete() async throws {
    let ids = (0..<100).map { "t\($0)" }
    for id in ids { feed.apple.reply(try history([], revision: nil, Self.silence), about: id, after: nil) }
    #expect(try await read(ids, asOf, within: .seconds(1)).isShort)
    // A round of requests ends after a few customers without an answer.
    #expect(Set(feed.apple.historyRequests).count < 100)
    #expect(try await shortCount(asOf) == 100)
  }

  /// A night may come to the histories only some time after its deadline.
  @Test func aReadingAfterItsDeadlineRequestsNothingAndMakesTheNightIncomplete() async throws {
    #expect(try await read(["t1"], asOf, within: .seconds(-60)).isShort)
    #expect(feed.apple.historyRequests.isEmpty)
  }

  @Test func historiesAreReadInTheSameNightAfterAnOutage() async throws {
    let requests = Counter()
    var app = feed.apple.app()
    let page = app.history
    app.history = { id, revision throws(CancellationError) in
      requests.add(1)
      if requests.value <= 60 { return HistoryAnswer(revision: nil, end: Self.silence) }
      return try await page(id, revision)
    }
    let summary = try await read((0..<20).map { "t\($0)" }, asOf, apps: [app])
    #expect(!summary.isShort && summary.histories == 20)
    #expect(try await shortCount(asOf) == 0)
  }

  /// The finding remains listed. If every night were incomplete, a night without Apple would look like any other.
  @Test func anUnansweredHistoryMakesNightsIncompleteUntilItIsStuck() async throws {
    feed.apple.reply(try history([], revision: nil, Self.silence), about: "t1", after: nil)
    for (night, count) in [(1, 1), (2, 1), (3, 0), (4, 0)] as [(Int64, Int)] {
      try await read(["t1"], asOf + .days(night), within: .seconds(2))
      #expect(try await shortCount(asOf + .days(night)) == count, "\(night)")
    }
    feed.apple.reply(try history([], revision: "r1"), about: "t1", after: nil)
    try await read(["t1"], asOf + .days(5))
    #expect(try await shortCount(asOf + .days(5)) == 0)
    // A new missing answer makes the night incomplete again.
    feed.apple.reply(try history([], revision: "r1", Self.silence), about: "t1", after: "r1")
    try await read(["t1"], asOf + .days(13), within: .seconds(2))
    #expect(try await shortCount(asOf + .days(13)) == 1)
  }

  // MARK: - Unverifiable entries

  /// The night is incomplete. Later entries and other customers are read nevertheless.
  @Test func anUnverifiableHistoryEntryIsSkipped() async throws {
    var first = try history([Self.sale("t1")], revision: "r1", .pageLimit)
    first.refused = 1
    feed.apple.reply(first, about: "t1", after: nil)
    feed.apple.reply(try history([Self.sale("t3")], revision: "r2"), about: "t1", after: "r1")
    feed.apple.reply(try history([], revision: "s1"), about: "t2", after: nil)
    #expect(try await read(["t1", "t2"], asOf).isShort)
    #expect(feed.apple.historyRequests.sorted() == ["t1 -", "t1 r1", "t2 -"])
    let reason =
      "SELECT coalesce(reason, 'read') || ' ' || revision FROM night_audit.histories WHERE transaction_id = 't1'"
    #expect(try await feed.value(reason) == "not_believed r2")
    feed.apple.reply(try history([], revision: "r2"), about: "t1", after: "r2")
    #expect(!(try await read(["t1", "t2"], asOf + .days(1)).isShort))
    #expect(try await feed.value(reason) == "read r2")
  }

  @Test func anUnverifiablePageIsRetriedFinitely() async throws {
    var forged = try history([], revision: nil, .pageLimit)
    forged.refused = 1
    feed.apple.reply(forged, about: "t1", after: nil)
    #expect(try await read(["t1"], asOf).isShort)
    #expect(feed.apple.historyRequests == ["t1 -"])
    #expect(try await feed.value("SELECT reason FROM night_audit.histories") == "not_believed")
  }
}
