import Postgres
import Reconciliation
import Testing

@testable import Asking
@testable import AuditStore
@testable import Run

/// Enqueueing reads the new rows, not all rows.
@Suite struct EnqueueCostTests {
  private static let known = 1_000
  private let shop: RecheckFixture

  init() async throws { shop = try await RecheckFixture() }

  /// The number of rows that the server has read since its counters were reset.
  private func rowsRead() async throws -> Int64 {
    try await shop.session.execute(
      """
      SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0)::bigint FROM pg_stat_user_tables
      WHERE schemaname IN ('sales', 'night_audit')
      """
    ).single().int64(0)
  }

  private func sessions() async throws -> Int64 {
    try await shop.session.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
      .single().int64(0)
  }

  /// The server counts the rows of a session some time after the session was closed.
  private func waitForTheClosed(leaving count: Int64) async throws {
    while try await sessions() > count { try await shop.session.execute("SELECT pg_sleep(0.01)") }
  }

  @Test func threeNewReceiptsAmongManyAreReadAlone() async throws {
    let old = "timestamptz 'epoch' + \((RecheckFixture.asOf - .days(20)).microseconds) * interval '1 microsecond'"
    try await shop.session.executeScript(
      """
      INSERT INTO sales.orders
      SELECT 'o' || n, 'u', 'com.example.game', 'gems', 1, 9.90, 'USD', 'verified', 't' || n, NULL, \(old), NULL, \(old)
      FROM generate_series(1, \(Self.known)) n;
      INSERT INTO sales.receipts
      SELECT 'r' || n, 'o' || n, 'u', 'x', NULL, 'verified', NULL, \(old) FROM generate_series(1, \(Self.known)) n;
      ANALYZE sales.orders, sales.receipts; SELECT pg_stat_reset();
      """)
    let others = try await sessions()
    let first = try await shop.queue()
    #expect(try await first.enqueue() == Self.known)
    await first.close()
    try await waitForTheClosed(leaving: others)
    #expect(try await rowsRead() >= Int64(Self.known))
    try await shop.session.executeScript("ANALYZE night_audit.receipt_checks; SELECT pg_stat_reset()")
    for number in 1...3 {
      try await shop.order("new \(number)", transaction: nil)
      try await shop.receipt("new \(number)", for: "new \(number)")
    }
    let second = try await shop.queue(asOf: RecheckFixture.asOf + .hours(1))
    #expect(try await second.enqueue() == 3)
    await second.close()
    try await waitForTheClosed(leaving: others)
    let read = try await rowsRead()
    #expect(read > 0 && read < 200, "\(read) rows for three new ones among \(Self.known)")
  }

  /// A first night has no statistics of these tables, and the server must not read all receipts for each batch.
  @Test(arguments: [3_000, 9_000])
  func whetherASignedReceiptSettlesItsOrderIsReadFromItsOwnRows(_ count: Int) async throws {
    try await shop.session.executeScript(
      """
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, payload_kind, outcome,
        signed_transaction_id, brought_count)
      SELECT 'receipt', 'r' || n, 'o' || n, now(), 'signed', 'verified', 't' || n, 1 FROM generate_series(1, \(count)) n;
      INSERT INTO night_audit.receipt_transactions
      SELECT 'receipt', 'r' || n, 'Production', 't' || n FROM generate_series(1, \(count)) n;
      SELECT pg_stat_reset();
      """)
    let others = try await sessions()
    let session = try await shop.connect()
    let needs = PendingLookups(
      table: CheckTable(policy: shop.settings.duenessPolicy), bundleIds: ["com.example.game"],
      asOf: RecheckFixture.asOf)
    for start in stride(from: 1, to: count, by: 1_000) {
      let batch = (start..<start + 1_000).map {
        PendingLookups.Candidate(
          orderId: Identifier("o\($0)"), bundleId: "com.example.game", transactionId: "t\($0)",
          dated: RecheckFixture.asOf, isUrgent: false)
      }
      let added = try await session.withConnection { try needs.decide(batch, on: $0) }
      #expect(added == 0)
    }
    await session.close()
    try await waitForTheClosed(leaving: others)
    // The check of each receipt, and its transaction.
    let read = try await rowsRead()
    #expect(read >= count && read < 3 * count, "\(read) rows of \(count) receipts")
  }
}
