import AuditStore
import Foundation
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

  /// - Parameters:
  ///   - apple: reads `appleQuery`.
  ///   - ours: reads `OurTransactions.query`.
  func run(
    apple: borrowing BlockingConnection, ours: borrowing BlockingConnection, orders: inout OrdersByProduct,
    append: (TieOutRow) throws -> Void
  ) throws -> ObservedUnits {
    var seen = ObservedUnits()
    let shared = try TransactionTable.sharedPurchases(on: ours)
    var reports = try apple.copyOut(Self.appleQuery(coverage.days))
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
      var strangers: [AppleRow] = []
      var claimed: Set<Identifier> = []
      var awaited: [String: [ReportDay: Millionths]] = [:]
      var booked: [OrderSumKey: ShopUnits] = [:]
      while let order = try orders.next(of: product) {
        claimed.formUnion(order.renewals)
        guard let day = days.day(of: order.bookedAt), let name = app(order.bundleId, product) else { continue }
        let units = Int(order.quantity)
        if order.isBooked {
          let one = ShopUnits(
            day: day, currency: Identifier(order.amount.currency.code), units: units, amount: Millionths(order.amount))
          booked[OrderSumKey(app: name, day: day, currency: one.currency), default: one.nothing].add(one)
        }
        if order.isAwaited { awaited[name, default: [:]][day, default: .zero] += Millionths(units) }
      }
      for (booking, sum) in booked { side(booking.app, product, &sides) { $0.shop.append(sum) } }
      while hasReport, try reports.id(0) == product {
        let row = try Self.appleRow(reports)
        add(row, of: product, to: &sides, &strangers, &seen)
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
    _ seen: inout ObservedUnits
  ) {
    let rowKind = SalesRowKind(code: row.type, hasParent: !row.parent.isEmpty)
    if rowKind == .app { return }
    let isPrinted = coverage.printed.contains(row.day)
    guard let app = scope.app(of: Scope.Product(parent: row.parent, productId: product)) else {
      if coverage.compared.contains(row.day) { strangers.append(row) }
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

  /// Rows of other apps, counted separately so that they are not unexplained.
  private func otherScope(_ rows: [AppleRow], of product: Identifier) -> [TieOutRow] {
    struct Key: Hashable {
      var app: Identifier
      var day: ReportDay
      var kind: TieOutClass
    }
    // Marked, because a SKU may equal a configured app name.
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
}
