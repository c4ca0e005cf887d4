import Postgres
import Reconciliation
import Settings
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// The orders that wait for a look-up, in a real database.
@Suite struct LookupQueueTests {
  private static let asOf = RecheckFixture.asOf
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  /// The orders that wait, with their questions.
  private func waiting() async throws -> [String] {
    try await shop.rows("order_id, subject_id", from: "lookups ORDER BY order_id")
  }

  private func due(_ asOf: Instant = asOf) async throws -> [String] {
    try await shop.queue(asOf: asOf).claim().map(\.subject.id.text).sorted()
  }

  @Test func onlyOrdersWithAnIDAndWithoutAReceiptAreLookedUp() async throws {
    let orders: [(id: String, transaction: String?, bundleId: String?)] = [
      ("a", "1", "com.example.game"), ("b", "1", "com.example.game"), ("has a receipt", "2", "com.example.game"),
      ("has a receipt that breaks the contract", "3", "com.example.game"), ("names nothing", nil, "com.example.game"),
      ("names emptiness", "", "com.example.game"), ("of the only app", "4", nil),
      ("of another app", "5", "com.example.other"), ("with a slash", "7/8", "com.example.game"),
      ("with a long id", String(repeating: "\u{E9}", count: 300), "com.example.game"),
      ("with an endless id", String(repeating: "\u{E9}", count: 5_000), "com.example.game"),
    ]
    for order in orders { try await shop.order(order.id, transaction: order.transaction, bundleId: order.bundleId) }
    try await shop.order("of long ago", transaction: "6", age: .days(121))
    try await shop.receipt("r", for: "has a receipt")
    try await shop.receipt("bad", for: "has a receipt that breaks the contract", status: "nonsense")
    let queue = try await shop.queue()
    #expect(try await queue.unknownCount() == 4)
    #expect(try await queue.enqueue() == 4)
    #expect(try await queue.enqueue() == 0)
    #expect(
      try await waiting() == [
        "a com.example.game/1", "b com.example.game/1",
        "has a receipt that breaks the contract com.example.game/3", "of the only app com.example.game/4",
      ])
    let lookups = try await queue.claim().filter { $0.subject.kind == .lookup }.map(\.subject.lookedUp)
    #expect(lookups.map(\.transactionId).sorted() == ["1", "3", "4"])
    #expect(lookups.allSatisfy { $0.bundleId == "com.example.game" })
    #expect(try await queue.claim().isEmpty)
  }

  /// Apple's IDs have no white space at their ends, and no request can contain it.
  @Test func whiteSpaceAroundIDsIsIgnored() async throws {
    for (order, id) in [("a", "1 "), ("b", "\t2\r\n"), ("c", "2"), ("d", " \r ")] {
      try await shop.order(order, transaction: id)
    }
    try await shop.queue().enqueue()
    #expect(try await due() == ["com.example.game/1", "com.example.game/2"])
  }

  @Test func aLaterReceiptEndsTheLookup() async throws {
    for (order, id) in [("a", "1"), ("b", "2")] { try await shop.order(order, transaction: id) }
    try await shop.queue().enqueue()
    try await shop.receipt("r", for: "a")
    try await shop.queue().enqueue()
    #expect(try await due() == ["com.example.game/2", "r"])
  }

  @Test func lookupsEndWhenNoOrderStatesTheID() async throws {
    for (order, id) in [("emptied", "1"), ("moved", "2"), ("renamed", "3"), ("steady", "4"), ("other", "1")] {
      try await shop.order(order, transaction: id)
    }
    try await shop.queue().enqueue()
    let now = Self.asOf + .hours(1)
    for change in [
      "transaction_id = NULL WHERE order_id = 'emptied'", "bundle_id = 'com.example.other' WHERE order_id = 'moved'",
      "transaction_id = '5' WHERE order_id = 'renamed'", "transaction_id = '' WHERE order_id = 'other'",
    ] {
      try await shop.session.execute(
        "UPDATE sales.orders SET updated_at = $1, \(change)", [.timestamp(now.microseconds)])
    }
    #expect(try await shop.queue(asOf: now).enqueue() == 1)
    #expect(try await waiting() == ["renamed com.example.game/5", "steady com.example.game/4"])
    #expect(try await due(now) == ["com.example.game/4", "com.example.game/5"])
  }

  /// A view that returns an order twice, with two transaction IDs, causes no new question each night.
  @Test func duplicateOrdersKeepTheirLookup() async throws {
    try await shop.session.execute("ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey")
    for id in ["1", "2"] { try await shop.order("twice", transaction: id) }
    #expect(try await shop.queue().enqueue() == 1)
    for hours in 1...2 { #expect(try await shop.queue(asOf: Self.asOf + .hours(Int64(hours))).enqueue() == 0) }
  }

  /// Earlier answers remain evidence while the order states the ID.
  @Test func anAppWithoutAChannelKeepsItsAnswers() async throws {
    var shop = try await RecheckFixture(apps: ["com.example.game", "com.example.other"])
    try await shop.order("kept", transaction: "1", bundleId: "com.example.other")
    try await shop.order("renamed", transaction: "2", bundleId: "com.example.other")
    try await shop.queue().enqueue()
    let now = Self.asOf + .hours(1)
    try await shop.session.execute(
      "UPDATE sales.orders SET updated_at = $1, transaction_id = '3' WHERE order_id = 'renamed'",
      [.timestamp(now.microseconds)])
    shop.settings.channel = .auto
    shop.settings.apps[0].privateKeyFile = "/nonexistent"
    let queue = try await shop.queue(asOf: now)
    try await queue.enqueue()
    #expect(try await shop.rows("order_id, subject_id", from: "lookups") == ["kept com.example.other/1"])
    #expect(try await queue.claim().isEmpty)
  }

  @Test func filtersNarrowTheQuestions() async throws {
    try await shop.orders(1...2)
    try await shop.queue().enqueue()
    var selection = Selection()
    selection.orderId = "o2"
    let queue = try await shop.queue(selection: selection)
    #expect(try await queue.dueCount() == 1)
    #expect(try await queue.claim().map(\.subject.id.text) == ["com.example.game/2"])
  }

  @Test func anAppWithoutAKeyHasNoLookups() async throws {
    var shop = shop
    try await shop.order("a", transaction: "1")
    try await shop.queue().enqueue()
    shop.settings.channel = .verifyReceipt
    try await shop.queue().enqueue()
    #expect(try await due().isEmpty)
    // With the key, the question returns.
    shop.settings.channel = .serverApi
    try await shop.queue().enqueue()
    #expect(try await due() == ["com.example.game/1"])
  }

  /// A newer order may state an ID that Apple did not know for an older one.
  @Test func anotherOrderReopensAFinalAnswer() async throws {
    try await shop.order("a", transaction: "1")
    for night in 0...1 as ClosedRange<Int64> {
      let script: AnswerScript = [:]
      let summary = try await shop.recheck(script, asOf: Self.asOf + .days(night))
      #expect(summary.outcomes == [.notFound: 1] && script.asked == ["1"])
    }
    // An answer that accuses is asked for again on the next night.
    let later = Self.asOf + .days(1) + .hours(1)
    #expect(try await shop.queue(asOf: later).dueCount() == 0)
    try await shop.order("b", transaction: "1", age: .days(-1))
    try await shop.queue(asOf: later).enqueue()
    #expect(try await shop.queue(asOf: later).dueCount() == 1)
  }

  /// The number of due questions in the command `status`.
  @Test func offlineAndExpiredChecksAreNoQuestions() async throws {
    try await shop.orders(1...3)
    try await shop.queue().enqueue()
    #expect(try await CheckQueue.questionCount(at: Self.asOf, atMost: 9, shop.session) == 3)
    #expect(try await CheckQueue.questionCount(at: Self.asOf, atMost: 2, shop.session) == 2)
    #expect(try await CheckQueue.questionCount(at: Self.asOf - .days(3), atMost: 9, shop.session) == 0)
    try await shop.session.executeScript(
      """
      UPDATE night_audit.receipt_checks SET due_rank = 5 WHERE subject_id LIKE '%/1';
      UPDATE night_audit.receipt_checks SET due_until = due_from + interval '1 hour' WHERE subject_id LIKE '%/2'
      """)
    #expect(try await CheckQueue.questionCount(at: Self.asOf, atMost: 9, shop.session) == 1)
  }

  @Test func recentNotificationsReplaceLookups() async throws {
    try await shop.orders(1...4)
    let facts: [TransactionFact] = [
      .test("1", .notification, signed: Self.asOf - .days(2)),
      // Too old, from another channel, and about another app.
      .test("2", .notification, signed: Self.asOf - .days(8)), .test("3", .offline),
      .test("4", .notification, bundleId: "com.example.other"),
    ]
    try await shop.addEvidence(facts)
    let script = AnswerScript.found(2...4)
    #expect(try await shop.recheck(script).outcomes == [.verified: 4])
    #expect(script.asked.sorted() == ["2", "3", "4"])
    // The age counts from Apple's signed date.
    #expect(try await due(Self.asOf + .days(5)) == ["com.example.game/1"])
  }
}
