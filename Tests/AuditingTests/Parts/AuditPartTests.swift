import Foundation
import Logging
import Postgres
import Publishing
import Reconciliation
import Reporting
import SalesStore
import Settings
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SampleWorlds

/// A night audited in parts, with frames between the stages, has the same bytes as one process. No cluster is needed.
@Suite struct AuditPartTests {
  @Test(arguments: 1...UInt64(Effort.factor))
  func framesCarryANight(_ seed: UInt64) async throws {
    let folder = try TemporaryDirectory()
    let settings = try await Self.shop(CrowdedShop(seed: seed))
    let whole = try await PartsTests.report(settings, folder.file("whole"), readers: 1)
    #expect(
      String(decoding: whole["findings.csv"] ?? Data(), as: UTF8.self).contains("duplicate_claim,major,order-7r2"))
    for parts in [1, 4] {
      let pieces = folder.file("pieces \(parts)")
      try await spread(settings, parts: parts, into: pieces)
      let joined = try await PartsTests.report(settings, folder.file("joined \(parts)"), pieces: pieces)
      PartsTests.expectEqual(joined, whole, "\(parts) parts")
    }
    // An alias that arrives after the parts were read belongs to the next night.
    let shop = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    try await shop.executeScript(
      "CREATE OR REPLACE VIEW sales.user_aliases AS SELECT 'user-1' AS user_id, 'user-3' AS same_as")
    let later = try await PartsTests.report(settings, folder.file("later"), pieces: folder.file("pieces 4"))
    PartsTests.expectEqual(later, whole, "an alias arrived during the audit")
    try await shop.executeScript(
      "CREATE OR REPLACE VIEW sales.user_aliases AS SELECT 'user-1' AS user_id, 'user-2' AS same_as")
    await shop.close()
    let recorded = try await recorded(settings, folder.file("recorded"))
    #expect(try recorded == Self.counted(folder.file("recorded")))
    #expect(try await self.recorded(settings, folder.file("of pieces"), pieces: folder.file("pieces 4")) == recorded)
    for name in ["receipts", "transactions", "contests", "judge", "context"] {
      let file = URL(fileURLWithPath: folder.file("pieces 4") + "/" + name)
      let whole = try Data(contentsOf: file)
      try Data().write(to: file)
      let unfit = await #expect(throws: AuditPieces.UnusablePieces.self) {
        try await PartsTests.report(settings, folder.file("never"), pieces: folder.file("pieces 4"))
      }
      #expect(unfit?.description.contains("\(name) in ") == true, "\(name)")
      try whole.write(to: file)
    }
    let manifest = folder.file("pieces 4") + "/manifest.json"
    let said = try String(contentsOfFile: manifest, encoding: .utf8)
    let other = said.replacingOccurrences(of: "\"sums\":", with: "\"sums\":[],\"rest\":")
    try other.write(toFile: manifest, atomically: true, encoding: .utf8)
    await #expect(throws: ReportError.self) {
      try await PartsTests.report(settings, folder.file("never"), pieces: folder.file("pieces 4"))
    }
  }

  @Test func aReportOfPartsSaysThatTheyLayInSeveralStores() async throws {
    let folder = try TemporaryDirectory()
    let settings = try await Self.shop(CrowdedShop(seed: 1))
    try await spread(settings, parts: 2, into: folder.file("pieces"), hasOneSnapshot: false)
    let joined = try await PartsTests.report(settings, folder.file("joined"), pieces: folder.file("pieces"))
    let whole = try await PartsTests.report(settings, folder.file("whole"), readers: 1)
    for file in CrowdedShop.files { #expect(joined[file] == whole[file], "\(file)") }
    func page(_ report: [String: Data]) -> String { String(decoding: report["report.html"] ?? Data(), as: UTF8.self) }
    #expect(page(joined).contains("No snapshot spans the shop") && !page(whole).contains("No snapshot spans the shop"))
  }

  private static func shop(_ shop: CrowdedShop) async throws -> Settings {
    var settings = try await shop.load(reports: "/nonexistent")
    settings.formats = [.csv, .xlsx]
    try await execute(
      settings.databaseURL,
      """
      CREATE VIEW sales.products AS SELECT 'gems' AS product_id, 'Non-Consumable' AS type, 'Gems' AS name,
        NULL::timestamptz AS sold_from, '2027-01-01'::timestamptz AS sold_until;
      CREATE VIEW sales.user_aliases AS SELECT 'user-1' AS user_id, 'user-2' AS same_as;
      \(CrowdedShop.repeatedDeliveries)
      \(CrowdedShop.buyerOfTwo)
      \(CrowdedShop.restorer)
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
        SELECT 'order-9x', 'user-1', 'gems', 1, 9.90, repeat('€', 700), 'verified', min(created_at), min(created_at)
        FROM sales.orders;
      UPDATE sales.orders SET currency = 'EUR' WHERE order_id ~ '[0468]$';
      -- Of two rows of one id the one that breaks the contract takes nothing from the other.
      ALTER TABLE sales.orders DROP CONSTRAINT orders_pkey, ALTER order_id DROP NOT NULL;
      INSERT INTO sales.orders (SELECT order_id, user_id, bundle_id, product_id, quantity, -1 - amount, currency, status,
        transaction_id, app_account_token, created_at, verified_at, updated_at FROM sales.orders
        WHERE encode(sha256(convert_to(order_id, 'UTF8')), 'hex') < '8' OR order_id ~ '^order-(7r|8)1$');
      INSERT INTO sales.orders (SELECT v.order_id, v.user_id, bundle_id, product_id, quantity, amount, currency, status, NULL,
        NULL, created_at, NULL, updated_at FROM sales.orders o,
        (VALUES (NULL, 'b'), ('', 'c'), (NULL, 'a long one')) AS v (order_id, user_id) WHERE o.order_id = 'order-82');
      ALTER TABLE sales.receipts DROP CONSTRAINT receipts_pkey, ALTER receipt_id DROP NOT NULL;
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at) (SELECT v.receipt_id,
        v.order_id, 'user-1', 'x', 'verified', o.created_at FROM sales.orders o,
        (VALUES (NULL, 'order-82'), ('', NULL), (NULL, NULL)) AS v (receipt_id, order_id) WHERE o.order_id = 'order-82');
      ANALYZE;
      """)
    return settings
  }

  private func recorded(_ settings: Settings, _ folder: String, pieces: String? = nil) async throws -> [String: Int] {
    _ = try await CrowdedShop.outcome(settings, CrowdedShop.asOf, folder, pieces: pieces)
    let session = try await PostgresSession.connect(settings.databaseURL, applicationName: "night-audit tests")
    let rows = try await session.execute(
      """
      SELECT currency || ' ' || disposition, orders FROM night_audit.bi_run_totals
      WHERE run_id = (SELECT run_id FROM night_audit.runs ORDER BY started_at DESC LIMIT 1) AND disposition <> 'at_stake'
      """)
    await session.close()
    return Dictionary(uniqueKeysWithValues: try rows.map { (try $0.text(0), Int(try $0.int64(1))) })
  }

  private static func counted(_ folder: String) throws -> [String: Int] {
    let rows = try #require(try CrowdedShop.tables(folder)["orders.csv"])
    let currency = try #require(rows[0].firstIndex(of: "currency"))
    let disposition = try #require(rows[0].firstIndex(of: "disposition"))
    let words = Disposition.inMoneyTotals.map(\.rawValue)
    return rows.dropFirst().filter { words.contains($0[disposition]) }.reduce(into: [:]) {
      $0["\($1[currency]) \($1[disposition])", default: 0] += 1
    }
  }

  private struct Plan: Decodable {
    struct Relation: Decodable {
      var tag: UInt8
      var name: String
      var store: String
      var queries: [String]
    }
    struct Totals: Decodable {
      var query: String
    }
    struct Counts: Decodable {
      var queries: [String: String]
    }
    var relations: [Relation]
    var cuts: [String: [String]]
    var context: Data
    var totals: Totals
    var counts: Counts
  }

  private func spread(
    _ settings: Settings, parts: Int, into folder: String, hasOneSnapshot: Bool = true
  ) async throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    var plan = try CrowdedShop.plan(settings)
    plan.hasOneSnapshot = hasOneSnapshot
    let audit = Audit(
      settings: settings, plan: plan, faults: [:], stop: StopSignal(), progress: .quiet)
    try await withBlockingThread { scope in
      try audit.plan(scope, parts: parts) { line in
        try Cluster(
          plan: JSONDecoder().decode(Plan.self, from: line), folder: folder,
          database: scope.connect(settings.databaseURL, applicationName: "night-audit tests")
        ).run()
      }
    }
  }

  /// A replacement for Spark and its job.
  private final class Cluster {
    private let plan: Plan
    private let folder: String
    private let database: BlockingConnection
    private var pieces: [[String: String]] = []

    init(plan: Plan, folder: String, database: consuming BlockingConnection) throws {
      (self.plan, self.folder) = (plan, folder)
      self.database = database
      try plan.context.write(to: URL(fileURLWithPath: folder + "/context"))
    }

    private func rows(_ names: String...) throws -> [Frame] {
      var frames: [Frame] = []
      for relation in plan.relations where names.contains(relation.name) {
        for query in relation.queries {
          var reader = try database.copyOut(query)
          while try reader.advance() {
            let key: [UInt8] = try reader.bytes(0).map { [0] + [UInt8]($0) } ?? [1]
            let content: [UInt8] = try reader.bytes(1).map { [UInt8]($0) } ?? []
            frames.append(Frame(tag: relation.tag, key: key, content: content))
          }
        }
      }
      return frames
    }

    private func stage(
      _ stage: AuditPart.Stage, _ frames: [Frame], cuts name: String?, further: [Frame] = []
    ) throws -> [Frame] {
      let cuts = Cuts(
        (name.flatMap { plan.cuts[$0] } ?? []).map { text in
          let bytes = stride(from: 0, to: text.count, by: 2).map { place in
            let start = text.index(text.startIndex, offsetBy: place)
            return UInt8(text[start..<text.index(start, offsetBy: 2)], radix: 16) ?? 0
          }
          return bytes.withUnsafeBytes { Identifier(utf8: $0) }
        })
      func part(_ frame: Frame) -> Int {
        frame.key == [1]
          ? cuts.part(of: nil) : frame.key.dropFirst().withUnsafeBytes { cuts.part(of: Identifier(utf8: $0)) }
      }
      var left: [Frame] = []
      for number in 0..<cuts.count {
        let (input, output) = (folder + "/input", folder + "/output")
        let writer = try FrameStream(path: input, isWritten: true)
        let sorted = frames.filter { part($0) == number }.sorted {
          if $0.key != $1.key { return $0.key.lexicographicallyPrecedes($1.key) }
          return $0.tag == $1.tag ? $0.content.lexicographicallyPrecedes($1.content) : $0.tag < $1.tag
        }
        for frame in further + sorted { try writer.write(tag: frame.tag, key: frame.key, content: frame.content) }
        try writer.flush()
        let results = try FrameStream(path: output, isWritten: true)
        try AuditPart(
          AuditContext(path: folder + "/context"), FrameStream(path: input), directory: folder, stop: StopSignal(),
          progress: .quiet
        ).run(stage, to: results)
        let reader = try FrameStream(path: output)
        while let frame = try reader.next() { left.append(frame) }
      }
      return left
    }

    private func keep(_ name: String, _ frames: [Frame]) throws {
      let writer = try FrameStream(path: folder + "/" + name, isWritten: true)
      for frame in frames where frame.tag >= AuditFrame.orderLine.rawValue {
        try writer.write(tag: frame.tag, key: frame.key, content: frame.content)
      }
      try writer.flush()
      pieces.append(["name": name, "sha256": try sha256(name)])
    }

    private func sha256(_ name: String) throws -> String {
      let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: folder + "/" + name))
      return try #require(Digest.sha256(descriptor: file.fileDescriptor))
    }

    func run() throws {
      func of(_ frames: [Frame], _ tag: AuditFrame) -> [Frame] { frames.filter { $0.tag == tag.rawValue } }
      let receipts = try stage(.receipts, rows("receipts", "checks", "receiptLinks"), cuts: "receipts")
      try keep("receipts", receipts)
      let orders = try stage(
        .orders, rows("orders", "lookups", "lookupLinks") + of(receipts, .proof), cuts: "orders")
      try keep("orders", orders)
      let transactions = try stage(
        .transactions, rows("transactions") + of(orders, .reference), cuts: "transactions")
      try keep("transactions", transactions)
      let open = of(orders, .openPerson)
      let tokens = Set(of(transactions, .linkQuestion).map(\.key))
      let answers = try stage(
        .tokens,
        of(transactions, .linkQuestion) + of(orders + transactions, .linkableOrder).filter { tokens.contains($0.key) },
        cuts: nil)
      #expect(!of(answers, .orderTransaction).isEmpty, "the answers must contain references by account token")
      try keep("tokens", answers)
      var groups = of(orders, .group) + of(transactions, .orderTransaction) + of(answers, .orderTransaction)
      let contestedOrders = Set(of(transactions + answers, .contestedOrder).map(\.key))
      #expect(contestedOrders.count > 3)
      let deliveries = try rows("deliveries")
      let byId = of(try stage(.deliveries, deliveries, cuts: "orders"), .delivery)
      let repeated = of(try stage(.repeated, byId, cuts: nil), .repeatedDelivery)
      #expect(repeated.count == 5)
      let outcome = try stage(
        .contests,
        of(transactions + answers, .contested) + (groups + deliveries).filter { contestedOrders.contains($0.key) },
        cuts: nil, further: repeated)
      try keep("contests", outcome)
      groups += of(outcome, .orderTransaction) + of(outcome, .matched)
      let compared = try stage(.purchases, groups, cuts: "orders", further: open)
      groups += of(try stage(.subscriptions, of(compared, .ownedPeriod), cuts: nil), .orderTransaction)
      let twice = of(try stage(.boughtTwice, of(compared, .purchase), cuts: nil), .boughtTwice)
      #expect(!twice.isEmpty)
      try keep(
        "judge", stage(.judge, groups + deliveries + twice, cuts: "orders", further: open + repeated))
      let sums = try database.execute(plan.totals.query).map { Data(try $0.bytes(0)).base64EncodedString() }
      let counts = try plan.counts.queries.mapValues { Int(try database.execute($0).single().int64(0)) }
      let manifest: [String: Any] = [
        "pieces": pieces, "context": try sha256("context"), "sums": sums, "counts": counts,
      ]
      try JSONSerialization.data(withJSONObject: manifest).write(to: URL(fileURLWithPath: folder + "/manifest.json"))
    }
  }

  @Test func invalidFramesAreRejected() throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("frames")
    let stream = try FrameStream(path: path, isWritten: true)
    try stream.write(tag: 4, key: [0, 97], content: [1, 2, 3])
    try stream.write(tag: 9, key: [], content: [])
    try stream.flush()
    let back = try FrameStream(path: path)
    #expect(try back.next() == Frame(tag: 4, key: [0, 97], content: [1, 2, 3]))
    #expect(try back.next() == Frame(tag: 9, key: [], content: []))
    #expect(try back.next() == nil)
    for size in 1...(9 + 2 + 3 - 1) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path)).prefix(size)
      try bytes.write(to: URL(fileURLWithPath: folder.file("cut")))
      #expect(throws: Frame.Failure.self, "\(size)") { try FrameStream(path: folder.file("cut")).next() }
    }
    try Data([0, 0, 0, 1, 9, 0, 0, 0, 7]).write(to: URL(fileURLWithPath: path))
    #expect(throws: Frame.Failure.self) { try FrameStream(path: path).next() }
  }

  @Test(
    arguments: [
      [], [0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 9, 65], [0, 0, 0, 0, 1], [255, 255, 255, 255],
      [0, 0, 0, 1, 0, 0, 0, 25, 127, 255, 255, 255, 65],
    ] as [[UInt8]])
  func invalidRecordsAreRejected(_ record: [UInt8]) throws {
    var reader = CopyReader { () throws(PostgresError) in record }
    #expect(throws: PostgresError.self) { try reader.advance() }
  }
}
