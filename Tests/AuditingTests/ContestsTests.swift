import Foundation
import Logging
import Postgres
import Reconciliation
import Reporting
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import NightAudit
@testable import Run
@testable import SalesStore

/// Contests are settled batch by batch, and what they come to does not depend on the batches.
@Suite struct ContestsTests {
  private static let rounds = 0..<7

  /// Of each round three orders: one that owns a purchase, one that names it too, and one whose receipt brought it.
  private func load() async throws -> String {
    let database = try await PrivatePostgres.shared().createDatabase()
    let session = try await PostgresSession.connect(database, applicationName: "night-audit tests")
    try await session.withConnection { connection in
      try SalesSchema.create("sales", connection)
      _ = try Migrator.migrate(connection)
    }
    for round in Self.rounds {
      for (place, names) in [("owner", true), ("second", true), ("silent", false), ("alone", false)] {
        try await session.execute(
          """
          INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id,
            created_at, updated_at)
          VALUES ($1, 'user', 'gems.100', 1, 9.99, 'USD', 'verified', $2, $3, $3)
          """,
          [
            .text("\(place)-\(round)"), .text(names ? "T\(round)" : nil),
            .timestamp(Int64(round) * 60_000_000 + (place == "owner" ? 0 : 1_000_000)),
          ])
      }
      for (id, order) in [("T\(round)", "owner-\(round)"), ("U\(round)", "alone-\(round)")] {
        try await session.execute(
          """
          INSERT INTO night_audit.transactions (environment, transaction_id, order_id, bundle_id, product_id, quantity,
            purchased_at, tells_revocation, tells_account_token, is_contradictory, channel, signed_at, checked_at)
          VALUES ('Production', $1, $2, 'com.example.game', 'gems.100', 1, $3, true, false, false, 'serverApi', $3, $3)
          """, [.text(id), .text(order), .timestamp(Int64(round) * 60_000_000)])
      }
      try await session.execute(
        """
        INSERT INTO night_audit.receipt_transactions
        VALUES ('receipt', $1, 'Production', $2, $3, true)
        """, [.text("silent-\(round)"), .text("T\(round)"), .text("silent-\(round)")])
      // The second order's receipt is unanswered: nothing is final about who owns the purchase.
      for (place, outcome) in [("silent", "verified"), ("second", round.isMultiple(of: 2) ? "unanswered" : "verified")]
      {
        let id = PostgresValue.text("\(place)-\(round)")
        try await session.execute(
          """
          INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
          VALUES ($1, $1, 'user', 'x', 'verified', $2)
          """, [id, .timestamp(0)])
        try await session.execute(
          """
          INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, payload_kind, outcome,
            reason, brought_count)
          VALUES ('receipt', $1, $1, $2, 'app', $3, $4, 1)
          """, [id, .timestamp(0), .text(outcome), .text(outcome == "verified" ? nil : "unreachable")])
      }
    }
    await session.close()
    return database
  }

  private struct Settled: Equatable, Sendable {
    var batches: [Set<Identifier>]
    var claims: [Identifier: OrderClaims] = [:]
    var claimed: Set<TransactionKey> = []
  }

  private func settle(_ database: String, batchSize: Int) async throws -> Settled {
    try await withBlockingThread { scope in
      let connection = try scope.connect(database, applicationName: "night-audit tests")
      let sales = try SalesRows(schema: "sales")
      let rules = Rules(
        asOf: Instant(seconds: 1_000_000), bundleIds: ["com.example.game"], lookbackStart: Instant(seconds: 0))
      let contests = try Contests(connection, sales, batchSize: batchSize)
      var settled = Settled(batches: contests.batches.map(\.orderIds))
      for (place, batch) in contests.batches.enumerated() {
        for orderId in batch.orderIds { #expect(contests.batch(of: orderId) == place) }
        let found = try Contests.settle(batch, receipts: [:], connection, sales, rules: rules)
        for contestant in found.contestants { settled.claims[contestant.orderId] = contestant.claims }
        settled.claimed.formUnion(found.claimed)
      }
      #expect(contests.batch(of: "alone-0") == nil)
      return settled
    }
  }

  @Test func batchesAreWholeContestsAndSettleAsAllOfThemWould() async throws {
    let database = try await load()
    let together = try await settle(database, batchSize: 1_000)
    let apart = try await settle(database, batchSize: 1)
    let some = try await settle(database, batchSize: 7)
    #expect(together.batches.map(\.count) == [3 * Self.rounds.count])
    let contests = Self.rounds.map { round in Set(["owner", "second", "silent"].map { Identifier("\($0)-\(round)") }) }
    #expect(Set(apart.batches) == Set(contests) && apart.batches.count == contests.count)
    #expect(some.batches.map(\.count) == [9, 9, 3])
    #expect(apart.claims == together.claims && some.claims == together.claims)
    #expect(apart.claimed == together.claimed && some.claimed == together.claimed)
    for round in Self.rounds {
      let (owner, second, silent) = (
        Identifier("owner-\(round)"), Identifier("second-\(round)"), Identifier("silent-\(round)")
      )
      #expect(together.claims[owner]?.owned.map(\.transactionId) == [Identifier("T\(round)")])
      #expect(together.claims[second]?.lost.map(\.ownerOrderId) == [owner])
      #expect(together.claims[silent]?.owned.isEmpty == true)
    }
  }

  @Test func theReportIsTheSameWhateverTheBatches() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("contests-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    var settings = Settings()
    settings.databaseURL = try await load()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    settings.channel = .verifyReceipt
    settings.formats = [.csv]
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    var reports: [[String: Data]] = []
    for batchSize in [1_000, 1, 7] {
      settings.contestBatchSize = batchSize
      var request = NightRequest(asOf: Instant(seconds: 1_000_000))
      request.period = try Period(since: "1970-01-01", until: "1970-01-10", in: settings.timeZone)
      request.out = directory.appendingPathComponent("\(batchSize)").path
      let night = NightRun(
        settings: settings, logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true))
      _ = try await night.reconcile(request)
      let files = ["orders.csv", "findings.csv", "receipts.csv", "summary.json"]
      reports.append(
        try Dictionary(
          uniqueKeysWithValues: files.map { name in
            (name, try Data(contentsOf: directory.appendingPathComponent("\(batchSize)/\(name)")))
          }))
    }
    #expect(reports[1] == reports[0] && reports[2] == reports[0])
    let orders = String(decoding: reports[0]["orders.csv"] ?? Data(), as: UTF8.self).split(separator: "\r\n")
    #expect(orders.count == 1 + 4 * Self.rounds.count)
    let second = orders.filter { $0.hasPrefix("second-") }
    #expect(second.filter { $0.contains(",duplicate,") }.count == 3, "settled: \(second)")
    #expect(second.filter { $0.contains(",unconfirmed,") }.count == 4, "open: \(second)")
  }
}
