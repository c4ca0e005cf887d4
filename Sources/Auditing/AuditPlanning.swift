import AuditStore
import Foundation
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// What whoever reads parts elsewhere is told: the queries of every part, where ids are cut, and the snapshots to read in.
package struct AuditPlanning: Encodable {
  struct Relation: Encodable {
    var tag: UInt8
    var name: String
    /// `sales` or `own`.
    var store: String
    /// For each part its query: the key and the row.
    var queries: [String]
    /// Whether rows whose key is missing come before all others, as those with an empty one.
    var namelessFirst: Bool
    /// Of the shop's relations: what stands in a row, the key first, for a source that answers no query.
    var columns: [SalesColumn]?
    /// The row's own date, which the horizon is about.
    var date: String?
  }

  /// Rows that are dated after `asOf` are not read, unless they are dated after `until`, too. In microseconds since 1970.
  struct Hidden: Encodable {
    var asOf: Int64
    var until: Int64
  }

  /// What the source adds up to by currency: orders, and amounts of at most so many decimals up to a limit in major units.
  struct Totals: Encodable {
    /// As the server adds it up: currency, orders and amount as `record_send` writes them.
    var query: String
    var decimals = SalesTotals.decimals
    var limit = SalesTotals.limit
  }

  /// The rows by which a night is measured: of the lookback, which begins in microseconds since 1970, for each relation a
  /// query of one number.
  struct Counts: Encodable {
    var since: Int64
    var queries: [String: String]
  }

  var relations: [Relation]
  /// Hexadecimal ids, by what they are of.
  var cuts: [String: [String]]
  /// How each store was reached, by libpq's keywords, the password included.
  var connections: [String: [String: String]]
  /// By store, the name that its snapshot is imported by. It lasts as long as the program that says it.
  var snapshots: [String: String]
  var hidden: Hidden
  var totals: Totals
  var counts: Counts
  /// Whether the shop says what is bought once for good: then the stage `purchases` has something to find.
  var hasCatalogue: Bool
  /// Whether no snapshot spans the shop's store, so that orders behind critical findings are read again and judged by that.
  var looksAgain: Bool
  /// What every stage is started with, as bytes in base 64.
  var context: Data
}

/// What whoever reads the parts may ask while the plan's snapshots are open.
package struct AuditQuestions {
  /// Of the frame that ends a question, and of the one that ends its answer.
  static let end: UInt8 = 0

  /// nil where one snapshot spans the shop's store.
  let look: SecondLook?
  let directory: String

  /// Answers what comes by standard input, until that ends.
  package func answer() throws {
    try answer(
      FrameStream(descriptor: STDIN_FILENO, isWritten: false, name: "standard input"),
      to: FrameStream(descriptor: STDOUT_FILENO, isWritten: true, name: "standard output"))
  }

  /// Takes the findings of a first judging, and leaves the orders behind the critical ones as they are by now.
  func answer(_ input: FrameStream, to output: FrameStream) throws {
    var findings = SpillSorter(directory: directory)
    while let frame = try input.next() {
      if frame.tag == Self.end {
        try look?.take([findings], into: AuditFrameWriter(output).outlet(.looked))
        try output.write(tag: Self.end, key: [], content: [])
        try output.flush()
        findings = SpillSorter(directory: directory)
        continue
      }
      guard frame.tag == AuditFrame.finding.rawValue else {
        throw Frame.Failure(description: "standard input holds a frame of tag \(frame.tag), which is no finding")
      }
      try findings.add(key: frame.key, content: frame.content)
    }
  }
}

extension Audit {
  /// Plans an audit in parts, and keeps its snapshots open until `body` returns.
  ///
  /// - Parameter body: gets the plan as one line of JSON.
  package func plan(_ scope: BlockingScope, parts: Int, _ body: (Data, AuditQuestions) throws -> Void) throws {
    let stores = try AuditStores(settings, scope)
    let horizon = try Horizon(of: plan, on: stores.rows.sales)
    let sales = try SalesRows(settings, horizon: horizon).ordered(on: stores.rows.sales)
    var completed = plan
    completed.rules = try plan.rules.completed(sales, shop: stores.rows.sales)
    let partition = try AuditPartition(sales, readers: parts, shop: stores.rows.sales, own: stores.rows.own)
    let relations = try AuditRelation.allCases.map { relation in
      AuditPlanning.Relation(
        tag: relation.rawValue, name: "\(relation)", store: relation.isShops ? "sales" : "own",
        queries: try (0..<relation.cuts(of: partition).count).map {
          // Rows as `record_send` writes them: types need no translation on the way.
          """
          SELECT textsend(\(relation.isNamelessFirst ? "coalesce(q.key, '')" : "q.key")) AS key, record_send(q) AS row
          FROM (\(try relation.query(completed, sales, partition, part: $0))) AS q (key)
          """
        }, namelessFirst: relation.isNamelessFirst, columns: relation.columns?.all, date: relation.columns?.date)
    }
    func hexadecimal(_ cuts: Cuts) -> [String] {
      cuts.places.map { $0.bytes.map { String(format: "%02x", $0) }.joined() }
    }
    let look = secondLook(stores, scope, sales, completed)
    let planning = AuditPlanning(
      relations: relations,
      cuts: [
        "receipts": hexadecimal(partition.receipts), "orders": hexadecimal(partition.orders),
        "transactions": hexadecimal(partition.transactions),
      ],
      connections: ["own": stores.rows.own.parameters, "sales": stores.rows.sales.parameters],
      snapshots: stores.snapshots,
      hidden: AuditPlanning.Hidden(
        asOf: horizon.asOf.microseconds, until: horizon.hidesRowsUntil.microseconds),
      totals: AuditPlanning.Totals(
        query: "SELECT record_send(q) AS row FROM (\(try SalesTotals.query(sales))) AS q"),
      counts: AuditPlanning.Counts(
        since: completed.rules.lookbackStart.microseconds,
        queries: [
          "orders": try Audit.counted("orders", by: "created_at", sales, since: completed.rules.lookbackStart),
          "deliveries": try Audit.counted(
            "deliveries", by: "delivered_at", sales, since: completed.rules.lookbackStart),
        ]),
      hasCatalogue: completed.rules.catalogue != nil, looksAgain: look != nil,
      context: AuditContext(
        completed, horizon, days: ReportedDays.days(plan, in: settings.timeZone),
        openCriticals: try CriticalEvidence.open(before: plan.asOf, on: stores.rows.own),
        sharedSales: try TransactionTable.sharedSales(on: stores.rows.own)
      ).encoded)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try body(try encoder.encode(planning), AuditQuestions(look: look, directory: NSTemporaryDirectory()))
  }
}

extension AuditRelation {
  /// Whether what has no id is read before everything else: deliveries without an order come last.
  fileprivate var isNamelessFirst: Bool {
    switch self {
    case .orders, .receipts: true
    case .deliveries, .checks, .receiptLinks, .lookups, .lookupLinks, .transactions: false
    }
  }

  /// What stands in a row of the shop's, the id first by which it is ordered, and which of it is the row's own date.
  fileprivate var columns: (all: [SalesColumn], date: String)? {
    switch self {
    case .orders: (SalesRows.order, "created_at")
    case .receipts: (SalesRows.receipt + [.listed], "received_at")
    case .deliveries: (SalesRows.delivery, "delivered_at")
    case .checks, .receiptLinks, .lookups, .lookupLinks, .transactions: nil
    }
  }
}

extension BlockingConnection {
  /// What the connection was made with, for whoever makes one like it.
  fileprivate var parameters: [String: String] {
    var parameters: [String: String] = [:]
    for keyword in ["host", "hostaddr", "port", "dbname", "user", "password", "sslmode", "sslrootcert"] {
      parameters[keyword] = option(keyword).flatMap { $0.isEmpty ? nil : $0 }
    }
    return parameters
  }
}
