import AuditStore
import Foundation
import Logging
import Postgres
import Reconciliation
import SalesStore
import Settings
import TestSupport
import Testing

@testable import NightAudit
@testable import Run

/// No command scans a relation once for each row of another, however little memory the server has.
@Suite(.timeLimit(.minutes(10))) struct CommandPlanTests {
  /// The IDs of this many rows exceed every hash table of `work_mem`.
  private static let rows = 3_000
  /// The accepted number of visits to one row by one step of a plan, such as a hash join in batches or a query of the
  /// server's catalogue.
  private static let most = 40

  private static let settings = """
    shared_preload_libraries = 'auto_explain'
    auto_explain.log_min_duration = 0
    auto_explain.log_analyze = on
    auto_explain.log_timing = off
    auto_explain.log_format = json
    work_mem = '64kB'
    hash_mem_multiplier = 1
    """

  private static let shop = """
    INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id, created_at,
        updated_at)
      SELECT 'o' || n, 'u' || n % 900, 'gems.' || n % 3, 1, 4.99, 'USD', 'verified', 't' || n, at, at
      FROM generate_series(1, \(rows)) n, LATERAL (SELECT now() - n * interval '1 minute' AS at) i;
    INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      SELECT 'd' || order_id, order_id, user_id, product_id, 1, created_at FROM sales.orders;
    INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      SELECT 'r' || order_id, order_id, user_id, 'x', 'verified', created_at FROM sales.orders;
    INSERT INTO night_audit.evidence (run_id, as_of, subject_kind, subject_id, channel, signed_at, environment, transaction_id,
        bundle_id, product_id, quantity, purchased_at, tells_revocation, tells_account_token)
      SELECT gen_random_uuid(), now(), 'receipt', 'r' || order_id, 'verifyReceipt', created_at, 'Production', transaction_id,
        'com.example.game', product_id, 1, created_at, true, false FROM sales.orders;
    INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, payload_kind, outcome, received_at)
      SELECT 'receipt', receipt_id, 'app', 'verified', received_at FROM sales.receipts;
    INSERT INTO night_audit.answers (run_id, as_of, subject_kind, subject_id, channel, outcome, facts,
        evidence_through)
      SELECT e.run_id, now(), 'receipt', e.subject_id, 'verifyReceipt', 'verified', 1, e.evidence_id
      FROM night_audit.evidence e;
    INSERT INTO night_audit.asking_state (key, value) VALUES ('times', '604800000000 10368000000000 10368000000000');
    INSERT INTO night_audit.receipt_transactions (subject_kind, subject_id, environment, transaction_id)
      SELECT 'receipt', 'r' || order_id, 'Production', transaction_id || CASE WHEN md5(order_id) < '8' THEN '' ELSE 'x' END
      FROM sales.orders;
    INSERT INTO night_audit.findings (finding_id, kind, severity, subject_kind, subject, order_id, user_id, reason, first_seen,
        opened_at, last_seen)
      SELECT md5(order_id) || md5(user_id), 'status_mismatch', 'minor', 'order', order_id, order_id, user_id, 'x', created_at,
        created_at, created_at FROM sales.orders;
    """

  @Test("commands look at each row a bounded number of times with little work_mem", arguments: ["", "VACUUM ANALYZE"])
  func plans(_ statistics: String) async throws {
    let server = try await PrivatePostgres.start(settings: Self.settings)
    var settings = Settings()
    settings.databaseURL = try await server.createDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: "com.example.game")]
    settings.channel = .verifyReceipt
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "tests")
    try await session.withConnection { connection in
      try SalesSchema.create("sales", connection)
      _ = try Migrator.migrate(connection)
      // Statistics as VACUUM writes them for a shop without any order.
      if statistics.isEmpty { try connection.executeScript("VACUUM") }
      try connection.executeScript(Self.shop)
      if !statistics.isEmpty { try connection.executeScript(statistics) }
    }
    var (seen, repeated) = (try log(server).endIndex, [String]())
    func none(_ steps: [String]) -> Bool {
      repeated = steps
      return steps.isEmpty
    }

    /// The plan steps since the last call that visited too many rows, summed over all executions of a statement.
    func steps() throws -> [String] {
      let text = try log(server)
      defer { seen = text.endIndex }
      return Self.repeating(in: try Self.plans(in: text[seen...]))
    }

    // A deliberately bad statement: an IN inside an expression is scanned for each row.
    try await session.execute(
      """
      SELECT count(*) FILTER (WHERE o.order_id IN (SELECT q.id FROM (SELECT d.order_id AS id FROM sales.deliveries d OFFSET 0) q))
      FROM sales.orders o
      """)
    // Without statistics Postgres assumes that the relation is small enough for a hash table.
    #expect(try !steps().isEmpty || statistics.isEmpty)

    let doctor = await Doctor(settings: settings).databases()
    #expect(doctor.compactMap(\.problem).allSatisfy { $0.hasPrefix("most payloads are no receipts") }, "\(doctor)")
    #expect(try none(steps()), "doctor: \(repeated)")
    #expect(try await !RebuildRun.rebuild(settings, isRepairing: false).agrees)
    #expect(try none(steps()), "rebuild: \(repeated)")
    #expect(try await RebuildRun.rebuild(settings, isRepairing: true).isMended)
    #expect(try none(steps()), "rebuild --write: \(repeated)")
    try await FindingsEditor(settings: settings, now: .now).list(FindingsFilter()) { FindingsJSON(asOf: .now) { _ in } }
    #expect(try none(steps()), "findings list: \(repeated)")
    for (name, change) in Self.selections {
      try await reconcile(settings, change)
      #expect(try none(steps()), "reconcile \(name): \(repeated)")
    }
    await session.close()
  }

  private static let selections: [(String, @Sendable (inout Selection) -> Void)] = [
    ("--order", { $0.orderId = "o17" }), ("--user", { $0.userId = "u17" }), ("--product", { $0.productId = "gems.1" }),
    ("--app", { $0.bundleId = "com.example.game" }),
  ]

  private func reconcile(_ settings: Settings, _ change: (inout Selection) -> Void) async throws {
    var request = NightRequest(asOf: .now)
    request.readers = 1
    change(&request.selection)
    request.selection.isOnlyApp = request.selection.bundleId != nil
    _ = try await run(settings).reconcile(request)
  }

  private func run(_ settings: Settings) -> NightRun {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    return NightRun(
      settings: settings, logger: logger, stop: StopSignal(), progress: WorkProgress(logger: logger, isQuiet: true))
  }

  private func log(_ server: PrivatePostgres) throws -> String {
    try String(contentsOfFile: "\(server.directory)/log", encoding: .utf8)
  }

  /// Parses auto_explain's JSON, whose lines begin with a tabulator.
  private static func plans(in log: Substring) throws -> [[String: Any]] {
    try log.components(separatedBy: "plan:\n").dropFirst().map { part in
      let lines = part.split(separator: "\n", omittingEmptySubsequences: false).prefix { $0.hasPrefix("\t") }
      let parsed = try JSONSerialization.jsonObject(with: Data(lines.joined(separator: "\n").utf8))
      return try #require(parsed as? [String: Any])
    }
  }

  /// The steps that visit rows too often, summed over all plans of a statement, each with its statement.
  private static func repeating(in plans: [[String: Any]]) -> [String] {
    var looked: [String: Double] = [:]
    func walk(_ node: [String: Any], _ statement: String, _ place: String) {
      func number(_ key: String) -> Double { (node[key] as? NSNumber)?.doubleValue ?? 0 }
      let each = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Join Filter"].map(number).reduce(0, +)
      let step = "\(place) \(node["Node Type"] ?? "")"
      looked["\(step): \(statement)", default: 0] += each * number("Actual Loops")
      for (number, child) in (node["Plans"] as? [[String: Any]] ?? []).enumerated() {
        walk(child, statement, "\(place).\(number)")
      }
    }
    for plan in plans {
      if let root = plan["Plan"] as? [String: Any] { walk(root, plan["Query Text"] as? String ?? "", "0") }
    }
    return looked.filter { $0.value > Double(rows * most) }.map { "\(Int($0.value)) rows by \($0.key)" }.sorted()
  }
}
