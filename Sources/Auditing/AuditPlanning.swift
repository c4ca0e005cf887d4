import AuditStore
import Foundation
import Postgres
import Reconciliation
import Run
import SalesStore
import Settings
import Streams

/// The plan for reading parts elsewhere: queries, cuts of IDs, and snapshots.
package struct AuditPlanning: Encodable {
  struct Relation: Encodable {
    var tag: UInt8
    var name: String
    var store: String
    /// One query for each part; its columns are the key and the row.
    var queries: [String]
    /// True if rows without a key come first, like rows with an empty key.
    var namelessFirst: Bool
    /// Columns of a shop relation, the key first, for sources without queries; nil for our own relations.
    var columns: [SalesColumn]?
    /// The column with the row's date, which the horizon filters.
    var date: String?
  }

  /// Rows dated after `asOf` and not after `until` are not read. Microseconds since 1970.
  struct Hidden: Encodable {
    var asOf: Int64
    var until: Int64
  }

  struct Totals: Encodable {
    /// Returns currency, orders and amount, in the format of `record_send`.
    var query: String
    var decimals = SalesTotals.decimals
    var limit = SalesTotals.limit
  }

  /// Row counts of the lookback for the plausibility checks; `since` is in microseconds since 1970.
  struct Counts: Encodable {
    var since: Int64
    var queries: [String: String]
  }

  var relations: [Relation]
  var cuts: [String: [String]]
  /// By store, libpq connection parameters, including the password.
  var connections: [String: [String: String]]
  /// By store, the ID of the exported snapshot. It lives as long as this process.
  var snapshots: [String: String]
  var hidden: Hidden
  var totals: Totals
  var counts: Counts
  var hasCatalogue: Bool
  /// False if no snapshot spans the shop's store.
  var hasOneSnapshot: Bool
  /// The encoded `AuditContext`, base64 in JSON.
  var context: Data
}

extension Audit {
  /// Plans an audit in parts and keeps its snapshots open until `body` returns. `body` receives one line of JSON.
  package func plan(_ scope: BlockingScope, parts: Int, _ body: (Data) throws -> Void) throws {
    let stores = try AuditStores(settings, scope)
    let horizon = try Horizon(of: plan, on: stores.rows.sales)
    let sales = try SalesRows(settings, horizon: horizon).ordered(on: stores.rows.sales)
    var completed = plan
    completed.rules = try plan.rules.completed(
      sales, settings: settings, shop: stores.rows.sales, own: stores.rows.own)
    let partition = try AuditPartition(sales, readers: parts, shop: stores.rows.sales, own: stores.rows.own)
    let relations = try AuditRelation.allCases.map { relation in
      AuditPlanning.Relation(
        tag: relation.rawValue, name: "\(relation)", store: relation.isOfShop ? "sales" : "own",
        queries: try (0..<relation.cuts(of: partition).count).map {
          // In the format of `record_send`, so that types need no conversion.
          """
          SELECT textsend(\(relation.sortsEmptyIDsFirst ? "coalesce(q.key, '')" : "q.key")) AS key, record_send(q) AS row
          FROM (\(try relation.query(completed, sales, partition, part: $0))) AS q (key)
          """
        }, namelessFirst: relation.sortsEmptyIDsFirst, columns: relation.columns?.all, date: relation.columns?.date)
    }
    func hexadecimal(_ cuts: Cuts) -> [String] {
      cuts.places.map { $0.bytes.map { String(format: "%02x", $0) }.joined() }
    }
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
      hasCatalogue: completed.rules.catalogue != nil, hasOneSnapshot: plan.hasOneSnapshot,
      context: AuditContext(
        completed, horizon, days: ReportedDays.days(plan, in: settings.timeZone),
        openCriticals: try CriticalEvidence.open(before: plan.asOf, on: stores.rows.own),
        sharedPurchases: try TransactionTable.sharedPurchases(on: stores.rows.own)
      ).encoded)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try body(try encoder.encode(planning))
  }
}

extension AuditRelation {
  fileprivate var sortsEmptyIDsFirst: Bool {
    switch self {
    case .orders, .receipts: true
    case .deliveries, .checks, .receiptLinks, .lookups, .lookupLinks, .transactions: false
    }
  }

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
  fileprivate var parameters: [String: String] {
    var parameters: [String: String] = [:]
    for keyword in ["host", "hostaddr", "port", "dbname", "user", "password", "sslmode", "sslrootcert"] {
      parameters[keyword] = option(keyword).flatMap { $0.isEmpty ? nil : $0 }
    }
    return parameters
  }
}
