import Foundation
import TestSupport
import Testing

/// A night runs as many statements for many orders as for few, and no statement has IDs in its text.
@Suite struct StatementsTests {
  /// Orders state the transaction ID of a subscription's first period, as old clients do. The server logs every
  /// statement.
  private func shop(orders: Int) async throws -> (shop: SignedShop, log: ServerLog) {
    let day: Int64 = 86_400_000
    let transactions = (0..<orders).flatMap { number in
      (0..<3).map { period in
        let first = SignedShop.milliseconds("2026-11-05T12:00:00Z")
        var transaction = SignedShop.gems("\(2_000_000_770_000_000 + number * 10 + period)")
        transaction["originalTransactionId"] = "\(2_000_000_770_000_000 + number * 10)"
        transaction["type"] = "Auto-Renewable Subscription"
        transaction["purchaseDate"] = first + Int64(period) * 7 * day
        transaction["originalPurchaseDate"] = first
        transaction["expiresDate"] = first + Int64(period + 1) * 7 * day
        if period > 0 { transaction["transactionReason"] = "RENEWAL" }
        return transaction
      }
    }
    let shop = try await SignedShop(transactions: transactions)
    let rows = (0..<orders).flatMap { number in
      ["05", "12", "19"].enumerated().map { period, day in
        SignedShop.orderStatements(
          "\(9_100_770_000_000 + number * 10 + period)", transaction: "\(2_000_000_770_000_000 + number * 10)",
          created: "2026-11-\(day)T12:00:05Z")
      }
    }
    try await shop.execute(rows.joined())
    let database = try await shop.value("current_database()")
    try await shop.execute(
      """
      ALTER DATABASE \(database) SET log_statement = 'all';
      ALTER DATABASE \(database) SET log_parameter_max_length = 0;
      """)
    return (shop, try ServerLog(of: try await PrivatePostgres.shared()))
  }

  @Test func statementsDoNotGrowWithOrders() async throws {
    let few = try await statements(orders: 2)
    let many = try await statements(orders: 40)
    #expect(few.count > 20 && many.count == few.count, "\(few.count) and \(many.count)")
    #expect(few.map(\.count).sorted() == many.map(\.count).sorted())
  }

  private func statements(orders: Int) async throws -> [Substring] {
    var (shop, log) = try await shop(orders: orders)
    try await shop.nightAudit("run", "--as-of", SignedShop.asOf, exits: [0])
    let sent = try log.news()
    #expect(sent.contains { $0.contains("receipt_checks") })
    let naming = sent.filter { $0.contains("200000077") || $0.contains("910077") }
    #expect(naming.isEmpty, "\(naming.prefix(3))")
    try await shop.nightAudit("reconcile", "--as-of", SignedShop.asOf, "--readers", "1", exits: [0])
    return try log.news()
  }
}

/// The statements in the log of a server. It logs only the databases that enable logging.
private struct ServerLog {
  private let file: URL
  private var read: Int

  init(of server: PrivatePostgres) throws {
    file = URL(fileURLWithPath: server.directory + "/log")
    read = try Data(contentsOf: file).count
  }

  /// The statements since the last call, without prefixes, whose length varies with the process ID.
  mutating func news() throws -> [Substring] {
    let all = try Data(contentsOf: file)
    defer { read = all.count }
    let text = String(decoding: all[read...], as: UTF8.self).replacingOccurrences(of: "\n\t", with: " ")
    return text.components(separatedBy: "\n").compactMap { line in
      let begins = ["LOG:  statement: ", "LOG:  execute "].compactMap { line.range(of: $0)?.lowerBound }
      return begins.min().map { line[$0...] }
    }
  }
}
