import Foundation
import Postgres
import Reconciliation
import SalesStore
import Streams

/// Compares what reports and we say about units, countries and amounts: three streams in the order of their products, one
/// product in memory at a time.
struct UnitsComparison {
  let settings: TieOutSettings
  let coverage: DayCoverage
  let days: ReportDays
  let scope: Scope

  /// What was seen on the way.
  struct Seen {
    var totals = TieOutTotals()
    var lags: [Int: Millionths] = [:]
    var rowsWithoutUnits = 0
    var unknownTypes: [Identifier: Int] = [:]
  }

  private struct AppleRow {
    var parent: Identifier
    var type: Identifier
    var day: ReportDay
    var country: Identifier
    var currency: Identifier
    var price: Millionths
    var sign: Int8
    var units: Millionths
    var rows: Int
  }

  private struct ShopRow {
    var bundleId: String?
    var orderId: Identifier
    var transactionId: Identifier?
    var isVerified: Bool
    var units: ShopUnits
  }

  /// - Parameters:
  ///   - apple: reads `appleQuery`.
  ///   - ours: reads `OurTransactions.query`.
  ///   - shop: reads `shopQuery`, in the shop's database.
  ///   - asking: what is known of single orders.
  ///   - append: gets the rows of each product.
  func run(
    apple: borrowing BlockingConnection, ours: borrowing BlockingConnection, shop: borrowing BlockingConnection,
    asking: borrowing BlockingConnection, append: (TieOutRow) throws -> Void
  ) throws -> Seen {
    var seen = Seen()
    var reports = try apple.copyOut(Self.appleQuery(coverage.days))
    var transactions = try ours.copyOut(OurTransactions.query(days))
    var orders = try shop.copyOut(try Self.shopQuery(days, schema: settings.salesSchema))
    var hasReport = try reports.advance()
    var hasTransaction = try transactions.advance()
    var hasOrder = try orders.advance()
    while hasReport || hasTransaction || hasOrder {
      var product: Identifier?
      func consider(_ candidate: Identifier) { product = product.map { min($0, candidate) } ?? candidate }
      if hasReport { consider(try reports.id(0)) }
      if hasTransaction { consider(try transactions.id(0)) }
      if hasOrder { consider(try orders.id(0)) }
      guard let product else { break }
      var sides: [String: ProductSides] = [:]
      var strangers: [AppleRow] = []
      var known: Set<Identifier> = []
      var waiting: [String: WaitingOrders] = [:]
      while hasReport, try reports.id(0) == product {
        let row = try Self.appleRow(reports)
        add(row, of: product, to: &sides, &strangers, &seen)
        hasReport = try reports.advance()
      }
      while hasTransaction, try transactions.id(0) == product {
        let row = try OurTransactions.row(transactions)
        known.insert(row.record.transactionId)
        if let app = app(row.bundleId, product) {
          side(app, product, &sides) {
            $0.add(
              row.record, storefront: row.storefront, isClaimed: row.isClaimed, withdrawn: row.withdrawn, days: days)
          }
        }
        hasTransaction = try transactions.advance()
      }
      while hasOrder, try orders.id(0) == product {
        if let row = try shopRow(orders), let app = app(row.bundleId, product) {
          if row.isVerified { side(app, product, &sides) { $0.shop.append(row.units) } }
          if row.transactionId.map({ !known.contains($0) }) ?? true {
            waiting[app, default: WaitingOrders()].add(
              row.orderId, transactionId: row.transactionId, bundleId: row.bundleId ?? onlyBundleId, row.units)
          }
        }
        hasOrder = try orders.advance()
      }
      for (app, side) in sides.sorted(by: { $0.key < $1.key }) {
        var comparison = ProductComparison(side, coverage: coverage)
        if comparison.hasUnexplainedSales, let orders = waiting[app] {
          comparison.standIn(try orders.units(on: asking))
        }
        for (lag, units) in comparison.lags { seen.lags[lag, default: .zero] += units }
        for row in comparison.rows {
          seen.totals.add(row)
          try append(row)
        }
      }
      for row in otherScope(strangers, of: product) {
        seen.totals.add(row)
        try append(row)
      }
    }
    return seen
  }

  private func side(
    _ app: String, _ product: Identifier, _ sides: inout [String: ProductSides], _ change: (inout ProductSides) -> Void
  ) {
    change(
      &sides[app, default: ProductSides(app: app, productId: product, isKnown: scope.isKnown(product))])
  }

  /// The app of rows that name none.
  private var onlyBundleId: String? { settings.apps.count == 1 ? settings.apps[0].bundleId : nil }

  /// The configured app of one of our rows.
  private func app(_ bundleId: String?, _ product: Identifier) -> String? {
    let bundleId = bundleId ?? onlyBundleId
    let app = settings.apps.first { $0.bundleId == bundleId }
    return app.map { scope.app(named: $0.name, productId: product) }
  }

  // MARK: - Apple's rows

  /// Sums of the daily reports that count, in the byte order of their products.
  private static func appleQuery(_ days: ClosedRange<ReportDay>) -> String {
    """
    SELECT s.sku, s.parent, s.type, s.day, s.country, s.customer_currency, s.customer_price, s.sign, sum(s.units),
      sum(s.rows)::bigint
    FROM night_audit.connect_sales s JOIN night_audit.connect_reports_current r USING (report_id)
    WHERE r.kind = 'SALES' AND r.frequency = 'DAILY' AND r.state = 'reported'
      AND s.day BETWEEN \(days.lowerBound.number) AND \(days.upperBound.number)
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    """
  }

  private static func appleRow(_ row: borrowing CopyReader) throws -> AppleRow {
    AppleRow(
      parent: try row.id(1), type: try row.id(2), day: ReportDay(number: Int(try row.int32(3))),
      country: try row.id(4), currency: try row.id(5), price: try Millionths(row.numeric(6)),
      sign: Int8(clamping: try row.int32(7)), units: try Millionths(row.numeric(8)), rows: Int(try row.int64(9)))
  }

  private func add(
    _ row: AppleRow, of product: Identifier, to sides: inout [String: ProductSides], _ strangers: inout [AppleRow],
    _ seen: inout Seen
  ) {
    let rowKind = SalesRowKind(code: row.type, hasParent: !row.parent.isEmpty)
    if rowKind == .app { return }
    let isPrinted = coverage.printed.contains(row.day)
    guard let app = scope.app(of: Scope.Product(parent: row.parent, productId: product)) else {
      if isPrinted { strangers.append(row) }
      return
    }
    if rowKind == .unknown, isPrinted { seen.unknownTypes[row.type, default: 0] += row.rows }
    guard let kind = AppleUnits.kind(of: rowKind, price: row.price, sign: row.sign) else {
      if isPrinted { seen.rowsWithoutUnits += row.rows }
      return
    }
    side(app, product, &sides) {
      $0.apple.append(
        AppleUnits(
          day: row.day, country: row.country, currency: row.currency, kind: kind, price: row.price, units: row.units))
    }
  }

  /// What belongs to nobody here: counted apart, so that nobody looks for it among what is unexplained.
  private func otherScope(_ rows: [AppleRow], of product: Identifier) -> [TieOutRow] {
    struct Key: Hashable {
      var app: Identifier
      var day: ReportDay
      var kind: TieOutClass
    }
    // A SKU may be what an app of ours is called in the configuration.
    let ours = Set(settings.apps.flatMap { [$0.name, scope.app(named: $0.name, productId: product)] })
    var sums: [Key: Millionths] = [:]
    for row in rows {
      let rowKind = SalesRowKind(code: row.type, hasParent: !row.parent.isEmpty)
      guard let kind = AppleUnits.kind(of: rowKind, price: row.price, sign: row.sign) else { continue }
      var app = row.parent.text
      while ours.contains(app) { app += " (SKU)" }
      sums[Key(app: Identifier(app), day: row.day, kind: kind), default: .zero] += row.units
    }
    return sums.sorted {
      ($0.key.app, $0.key.day, $0.key.kind.rawValue) < ($1.key.app, $1.key.day, $1.key.kind.rawValue)
    }.map { key, units in
      var explained = Explained()
      explained[.otherScope] = units
      return TieOutRow(
        level: .units, app: key.app.text, productId: product, day: key.day, country: "", currency: "",
        kind: key.kind, apple: units, ours: .zero, shop: nil,
        comparison: .init(explained: explained, unexplained: .zero))
    }
  }

  // MARK: - The shop's rows

  /// Orders by the day on which the shop believed them paid: those that it verified count, those that are pending may wait
  /// for Apple. Rows that break the contract are the audit's to report; here they count for nothing.
  private static func shopQuery(_ days: ReportDays, schema: String) throws(PostgresError) -> String {
    let paid = "coalesce(o.verified_at, o.created_at)"
    return """
      SELECT o.product_id::text, nullif(o.bundle_id::text, ''), \(paid)::timestamptz, o.currency::text, o.quantity::bigint,
        o.amount::numeric, o.order_id::text, nullif(\(SalesRows.namedTransaction), ''), o.status::text = 'verified'
      FROM \(try PostgresIdentifier(schema, "orders").sql) o
      WHERE o.status::text IN ('verified', 'pending') AND o.order_id IS NOT NULL AND o.product_id IS NOT NULL AND o.quantity BETWEEN 1 AND 1000000
        AND o.amount >= 0 AND o.amount < 1000000000000 AND o.amount::numeric = round(o.amount::numeric, 6)
        AND \(paid) >= \(try PostgresLiteral.timestamp(days.start.microseconds))
        AND \(paid) < \(try PostgresLiteral.timestamp(days.end.microseconds))
      ORDER BY o.product_id::text COLLATE "C", o.order_id::text COLLATE "C"
      """
  }

  private func shopRow(_ row: borrowing CopyReader) throws -> ShopRow? {
    guard let day = days.day(of: Instant(microseconds: try row.timestamp(2))) else { return nil }
    return ShopRow(
      bundleId: try row.optionalText(1), orderId: try row.id(6), transactionId: try row.optionalId(7),
      isVerified: try row.bool(8),
      units: ShopUnits(
        day: day, currency: try row.optionalId(3) ?? "", units: Int(try row.int64(4)),
        amount: try Millionths(row.numeric(5))))
  }
}
