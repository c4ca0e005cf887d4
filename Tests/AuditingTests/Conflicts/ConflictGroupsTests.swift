import Foundation
import Logging
import NightAudit
import Postgres
import Reconciliation
import Reporting
import Run
import SalesStore
import Settings
import ShopDatabases
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing

@Suite struct ConflictGroupsTests {
  private static let rounds = 0..<7

  private static func sale(_ id: String) -> TransactionRecord {
    TransactionRecord(environment: .production, transactionId: Identifier(id), productId: "gems")
  }

  private static func contested(_ id: String, _ claimants: [Identifier]) -> ContestedTransaction {
    ContestedTransaction(record: sale(id), claimants: claimants)
  }

  @Test func batchesContainWholeConflicts() throws {
    let contests = try ConflictGroups(directory: NSTemporaryDirectory())
    for round in Self.rounds {
      // Two transactions connect three orders: a - b and b - c.
      try contests.add(Self.contested("T\(round)", [Identifier("a\(round)"), Identifier("b\(round)")]))
      try contests.add(Self.contested("U\(round)", [Identifier("b\(round)"), Identifier("c\(round)")]))
    }
    for (size, count) in [(1_000, 1), (1, 7), (7, 3)] {
      let batches = contests.batches(ofAtLeast: size)
      #expect(batches.count == count)
      for round in Self.rounds {
        let places = ["a", "b", "c"].map { batches.batch(of: Identifier("\($0)\(round)")) }
        #expect(places[0] != nil && Set(places).count == 1)
      }
      #expect(batches.batch(of: "alone") == nil)
    }
    var seen: Set<Identifier> = []
    try contests.forEach { seen.insert($0.record.transactionId) }
    #expect(seen.count == 14)
  }

  @Test func ordersOnOneTransactionFormOneConflict() throws {
    let contests = try ConflictGroups(directory: NSTemporaryDirectory())
    try contests.add(Self.contested("T", (0..<100_000).map { Identifier("o\($0)") }))
    let batches = contests.batches(ofAtLeast: 1_000)
    #expect(batches.count == 1 && batches.batch(of: "o99999") == 0)
  }

  @Test("Orders that claim different transactions of one purchase are in conflict; one order alone is not")
  func transactionsOfOnePurchase() throws {
    func restore(_ id: String, of original: Identifier) -> TransactionRecord {
      var record = Self.sale(id)
      record.originalTransactionId = original
      return record
    }
    let shared = [
      ContestedTransaction(record: Self.sale("T"), claimants: ["a"], sharesPurchase: true),
      ContestedTransaction(record: restore("R", of: "T"), claimants: ["b", "c"], sharesPurchase: true),
      ContestedTransaction(record: restore("Q", of: "T"), claimants: [], sharesPurchase: true),
      ContestedTransaction(record: Self.sale("U"), claimants: ["d"], sharesPurchase: true),
    ]
    let nobodys = ContestedTransaction(record: restore("V", of: "W"), claimants: [], sharesPurchase: true)
    for order in [shared + [nobodys], [nobodys] + Array(shared.reversed())] {
      let (contests, other) = (
        try ConflictGroups(directory: NSTemporaryDirectory()), try ConflictGroups(directory: NSTemporaryDirectory())
      )
      #expect(contests.isEmpty)
      for (place, contested) in order.enumerated() { try (place < 2 ? contests : other).add(contested) }
      try contests.join(other)
      var uncontested: [Identifier: Identifier?] = [:]
      try contests.settle(hiding: { _ in false }) { uncontested[$0.record.transactionId] = .some($1) }
      #expect(uncontested == ["U": "d", "V": nil])
      #expect(!contests.isEmpty)
      let batches = contests.batches(ofAtLeast: 1)
      #expect(batches.count == 1)
      let together = shared.prefix(3).map { batches.batch(of: $0) }
      #expect(together[0] != nil && Set(together).count == 1)
      #expect((["a", "b", "c"] as [Identifier]).allSatisfy { batches.batch(of: $0) == together[0] })
      #expect(batches.batch(of: "d") == nil)
      var seen: [Identifier: Bool] = [:]
      try contests.forEach { seen[$0.record.transactionId] = $0.sharesPurchase }
      #expect(seen == ["T": true, "R": true, "Q": true])
    }
  }

  /// Each round has four orders: the owner, two others that claim its purchase, and an unrelated one.
  private func load() async throws -> String {
    let database = try await PrivatePostgres.shopDatabase()
    let session = try await PostgresSession.connect(database, applicationName: "night-audit tests")
    for round in Self.rounds {
      for (place, names) in [("owner", true), ("second", true), ("silent", false), ("alone", false)] {
        try await session.execute(
          """
          INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id,
            created_at, updated_at)
          VALUES ($1, 'user of \(round)', 'gems.100', 1, 9.99, 'USD', 'verified', $2, $3, $3)
          """,
          [
            .text("\(place)-\(round)"), .text(names ? "T\(round)" : nil),
            .timestamp(Int64(round) * 60_000_000 + (place == "owner" ? 0 : 1_000_000)),
          ])
      }
      for id in ["T\(round)", "U\(round)"] {
        try await session.execute(
          """
          INSERT INTO night_audit.transactions (environment, transaction_id, bundle_id, product_id, quantity,
            purchased_at, revocation_told_at, tells_account_token, is_contradictory, channel, signed_at, checked_at)
          VALUES ('Production', $1, 'com.example.game', 'gems.100', 1, $2, $2, false, false, 'serverApi', $2, $2)
          """, [.text(id), .timestamp(Int64(round) * 60_000_000)])
      }
      // The second order's receipt is unanswered, so the owner is provisional.
      let receipts: [(place: String, outcome: String, contained: String?)] = [
        ("owner", "verified", "T\(round)"), ("silent", "verified", "T\(round)"), ("alone", "verified", "U\(round)"),
        ("second", round.isMultiple(of: 2) ? "unanswered" : "verified", nil),
      ]
      for (place, outcome, contained) in receipts {
        let id = PostgresValue.text("\(place)-\(round)")
        try await session.execute(
          """
          INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
          VALUES ($1, $1, 'user of \(round)', 'x', 'verified', $2)
          """, [id, .timestamp(0)])
        try await session.execute(
          """
          INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, payload_kind, outcome,
            reason, brought_count)
          VALUES ('receipt', $1, $1, $2, 'app', $3, $4, 1)
          """, [id, .timestamp(0), .text(outcome), .text(outcome == "verified" ? nil : "unreachable")])
        guard let contained else { continue }
        try await session.execute(
          "INSERT INTO night_audit.receipt_transactions VALUES ('receipt', $1, 'Production', $2)",
          [id, .text(contained)])
      }
    }
    await session.close()
    return database
  }

  @Test func batchSizesDoNotChangeTheReport() async throws {
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
    #expect(orders.filter { $0.hasPrefix("alone-") && $0.contains(",paid,") }.count == 7)
  }
}
