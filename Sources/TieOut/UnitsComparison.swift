import AuditStore
import Postgres
import Reconciliation
import Settings
import Streams

/// Compares units, countries and amounts. Merges three streams by product, one product in memory at a time.
struct UnitsComparison {
  private struct OrderSumKey: Hashable {
    var app: String
    var day: ReportDay
    var currency: Identifier
  }

  let settings: Settings
  let asOf: Instant
  let coverage: DayCoverage
  let days: ReportDays
  /// The first day of the first compared week.
  let firstWeek: ReportDay
  let scope: Scope

  struct ObservedUnits {
    var totals = TieOutTotals()
    var weeks = TieOutTotals()
    var lags: [Int: Millionths] = [:]
    var rowsWithoutUnits = 0
    var unknownTypes: [Identifier: Int] = [:]
    var sellers: Set<String> = []
  }

  /// - Parameters:
  ///   - apple: reads `appleQuery`.
  ///   - ours: reads `OurTransactions.query`.
  func run(
    apple: borrowing BlockingConnection, ours: borrowing BlockingConnection, orders: inout OrdersByProduct,
    append: (TieOutRow) throws -> Void
  ) throws -> ObservedUnits {
    var seen = ObservedUnits()
    let shared = try TransactionTable.sharedPurchases(on: ours)
    var reports = try apple.copyOut(appleQuery(coverage.days))
    var transactions = try ours.copyOut(OurTransactions.query(days))
    var hasReport = try reports.advance()
    var hasTransaction = try transactions.advance()
    while true {
      var product = orders.product
      func consider(_ candidate: Identifier) { product = product.map { min($0, candidate) } ?? candidate }
      if hasReport { consider(try reports.id(0)) }
      if hasTransaction { consider(try TransactionTable.productId(transactions)) }
      guard let product else { break }
      var sides: [String: ProductSides] = [:]
      var strangers: [(sku: Identifier, units: AppleUnits)] = []
      var claimed: Set<Identifier> = []
      var awaited: [String: [ReportDay: Millionths]] = [:]
      var booked: [OrderSumKey: (units: Int, amount: Millionths)] = [:]
      while let order = try orders.next(of: product) {
        claimed.formUnion(order.renewals)
        guard let day = days.day(of: order.bookedAt), let name = app(order.bundleId, product) else { continue }
        let units = Int(order.quantity)
        if order.isBooked {
          let key = OrderSumKey(app: name, day: day, currency: Identifier(order.amount.currency.code))
          let sum = booked[key] ?? (units: 0, amount: .zero)
          booked[key] = (units: sum.units + units, amount: sum.amount + Millionths(order.amount))
        }
        if order.isAwaited { awaited[name, default: [:]][day, default: .zero] += Millionths(units) }
      }
      for (key, sum) in booked {
        let units = ShopUnits(day: key.day, currency: key.currency, units: sum.units, amount: sum.amount)
        side(key.app, product, &sides) { $0.shop.append(units) }
      }
      while hasReport, try reports.id(0) == product {
        try add(reports, of: product, to: &sides, &strangers, &seen)
        hasReport = try reports.advance()
      }
      var withSeveralIds: [OurTransactions.Row] = []
      func count(_ row: OurTransactions.Row) {
        guard let app = app(row.record.bundleId, product) else { return }
        let isClaimed = claimed.contains(row.record.transactionId)
        side(app, product, &sides) {
          $0.add(
            row.record, storefront: row.record.details.storefront, isClaimed: isClaimed, withdrawn: row.withdrawn,
            days: days)
        }
      }
      while hasTransaction, try TransactionTable.productId(transactions) == product {
        let row = try OurTransactions.row(transactions)
        if row.record.expiresDate != nil, shared.contains(row.record.purchaseKey.fingerprint) {
          withSeveralIds.append(row)
        } else {
          count(row)
        }
        hasTransaction = try transactions.advance()
      }
      for row in OurTransactions.purchases(withSeveralIds) { count(row) }
      for (app, side) in sides.sorted(by: { $0.key < $1.key }) {
        var comparison = ProductComparison(side, coverage: coverage)
        if side.ours.contains(where: { $0.kind == .sale && coverage.isFinal($0.day) }) { seen.sellers.insert(app) }
        if let units = awaited[app] { comparison.noteAwaitedOrders(units) }
        for (lag, units) in comparison.lags { seen.lags[lag, default: .zero] += units }
        for row in comparison.rows {
          if coverage.printed.contains(row.day) { seen.totals.add(row) }
          if row.day >= firstWeek { seen.weeks.add(row) }
          try append(row)
        }
      }
      for row in otherScope(strangers, of: product) {
        if coverage.printed.contains(row.day) { seen.totals.add(row) }
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

  private var onlyBundleId: String? { settings.apps.count == 1 ? settings.apps[0].bundleId : nil }

  private func app(_ bundleId: String?, _ product: Identifier) -> String? {
    let bundleId = bundleId ?? onlyBundleId
    let app = settings.apps.first { $0.bundleId == bundleId }
    return app.map { scope.app(named: $0.name, productId: product) }
  }

  // MARK: - Apple's rows

  private func appleQuery(_ days: ClosedRange<ReportDay>) throws(PostgresError) -> String {
    """
    SELECT s.sku, s.parent, s.type, s.day, s.country, s.customer_currency, s.customer_price, s.sign, sum(s.units),
      sum(s.rows)::bigint
    FROM \(try ConnectSalesRows.ofDailyReports(asOf))
      AND s.day BETWEEN \(days.lowerBound.number) AND \(days.upperBound.number)
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
    """
  }

  private func add(
    _ row: borrowing CopyReader, of product: Identifier, to sides: inout [String: ProductSides],
    _ strangers: inout [(sku: Identifier, units: AppleUnits)], _ seen: inout ObservedUnits
  ) throws {
    let (parent, type, day) = (try row.id(1), try row.id(2), ReportDay(number: Int(try row.int32(3))))
    let rowKind = SalesRowKind(code: type, hasParent: !parent.isEmpty)
    if rowKind == .app { return }
    let price = try Millionths(row.numeric(6))
    var counted: AppleUnits?
    if let kind = AppleUnits.kind(of: rowKind, price: price, sign: Int8(clamping: try row.int32(7))) {
      counted = AppleUnits(
        day: day, country: try row.id(4), currency: try row.id(5), kind: kind, price: price,
        units: try Millionths(row.numeric(8)))
    }
    guard let app = scope.app(of: Scope.Product(parent: parent, productId: product)) else {
      if let units = counted, coverage.compared.contains(day) { strangers.append((parent, units)) }
      return
    }
    let rows = coverage.printed.contains(day) ? Int(try row.int64(9)) : 0
    if rowKind == .unknown, rows > 0 { seen.unknownTypes[type, default: 0] += rows }
    guard let units = counted else {
      seen.rowsWithoutUnits += rows
      return
    }
    side(app, product, &sides) { $0.apple.append(units) }
  }

  /// Rows of other apps, counted separately so that they are not unexplained.
  private func otherScope(
    _ strangers: [(sku: Identifier, units: AppleUnits)], of product: Identifier
  ) -> [TieOutRow] {
    struct Key: Hashable {
      var app: Identifier
      var day: ReportDay
      var kind: TieOutClass
    }
    // Marked, because a SKU may equal a configured app name.
    let ours = Set(settings.apps.flatMap { [$0.name, scope.app(named: $0.name, productId: product)] })
    var sums: [Key: Millionths] = [:]
    for (sku, units) in strangers {
      var app = sku.text
      while ours.contains(app) { app += " (SKU)" }
      sums[Key(app: Identifier(app), day: units.day, kind: units.kind), default: .zero] += units.units
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
}
