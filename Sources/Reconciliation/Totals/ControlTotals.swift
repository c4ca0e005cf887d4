/// Two sums of one figure from independent sources, which must agree.
public struct ControlTotal: Hashable, Codable, Sendable {
  public var name: String
  public var left: String
  public var right: String

  public init(name: String, left: String, right: String) {
    (self.name, self.left, self.right) = (name, left, right)
  }

  public var isBalanced: Bool { left == right }
}

/// The orders and money of the period, in separate sums that `control` compares.
/// Memory grows with price points, and with users between two calls of `takeUsers`.
public struct Totals: Sendable {
  /// The amounts of one user or price point in one currency, by disposition.
  public struct Line: Equatable, Sendable {
    public private(set) var orders: Int = 0
    /// Lower halves of sums of 128 bits: by `Disposition.index`, then of all orders.
    private var lower: InlineArray<10, UInt64> = InlineArray(repeating: 0)
    /// Upper halves; nil while all are 0, as for nearly every user.
    private var upper: [Int64]?

    private static let all = 9

    public init() {}

    public init<Failure: Error>(orders: Int, next: () throws(Failure) -> Int128) throws(Failure) {
      self.orders = orders
      for place in 0...Line.all { set(try next(), at: place) }
    }

    /// Minor units by `Disposition.index`, then of all orders.
    public var sums: [Int128] { (0...Line.all).map(sum) }

    public var ordered: Int128 { sum(Line.all) }

    public var byDisposition: [Int128] { Disposition.inMoneyTotals.map { sum($0.index) } }

    public func sum(of disposition: Disposition) -> Int128 { sum(disposition.index) }

    public func forEachSum(_ body: (Int128) -> Void) { for place in 0...Line.all { body(sum(place)) } }

    private func sum(_ place: Int) -> Int128 { Int128(upper?[place] ?? 0) << 64 | Int128(lower[place]) }

    public static func == (left: Line, right: Line) -> Bool {
      left.orders == right.orders && left.ordered == right.ordered && left.byDisposition == right.byDisposition
    }

    mutating func add(_ minorUnits: Int64, _ disposition: Disposition) {
      orders += 1
      add(minorUnits, at: Line.all)
      add(minorUnits, at: disposition.index)
    }

    public mutating func add(_ other: Line) {
      orders += other.orders
      for place in 0...Line.all { set(sum(place) + other.sum(place), at: place) }
    }

    private mutating func set(_ sum: Int128, at place: Int) {
      lower[place] = UInt64(truncatingIfNeeded: sum)
      let above = Int64(truncatingIfNeeded: sum >> 64)
      if above != 0, upper == nil { upper = Array(repeating: 0, count: Line.all + 1) }
      upper?[place] = above
    }

    private mutating func add(_ minorUnits: Int64, at place: Int) {
      let (sum, isCarried) = lower[place].addingReportingOverflow(UInt64(bitPattern: minorUnits))
      lower[place] = sum
      let carried: Int64 = (isCarried ? 1 : 0) - (minorUnits < 0 ? 1 : 0)
      guard carried != 0 else { return }
      if upper == nil { upper = Array(repeating: 0, count: Line.all + 1) }
      upper?[place] += carried
    }
  }

  public struct UserKey: Hashable, Sendable {
    public var userId: Identifier
    public var currency: Currency

    public init(userId: Identifier, currency: Currency) {
      self.userId = userId
      self.currency = currency
    }
  }

  public struct PricePoint: Hashable, Sendable {
    public var currency: Currency
    public var minorUnits: Int64
    public var productId: Identifier
    /// nil: the only app.
    public var bundleId: Identifier?

    public init(currency: Currency, minorUnits: Int64, productId: Identifier, bundleId: Identifier?) {
      (self.currency, self.minorUnits) = (currency, minorUnits)
      (self.productId, self.bundleId) = (productId, bundleId)
    }

    // The other parts hardly differ among the points of a product.
    public func hash(into hasher: inout Hasher) {
      hasher.combine(productId)
      hasher.combine(minorUnits)
    }
  }

  public struct ProductKey: Hashable, Sendable {
    public var bundleId: Identifier?
    public var productId: Identifier
    public var country: Country?
    public var currency: Currency

    public init(bundleId: Identifier?, productId: Identifier, country: Country?, currency: Currency) {
      (self.bundleId, self.productId, self.country, self.currency) = (bundleId, productId, country, currency)
    }

    public func hash(into hasher: inout Hasher) {
      hasher.combine(productId)
      hasher.combine(country)
    }
  }

  /// The rows read against the counts of the database.
  public var salesControls: [ControlTotal] = []
  public private(set) var ordersRead = 0
  public private(set) var ordersByDisposition = [Int](repeating: 0, count: Disposition.allCases.count)
  /// By disposition and currency. Bad rows have no currency.
  public private(set) var ordersByCurrency = [ByCurrency<Int>](
    repeating: ByCurrency(), count: Disposition.allCases.count)
  public private(set) var amountByDisposition = [MoneyByCurrency](
    repeating: MoneyByCurrency(), count: Disposition.allCases.count)
  public private(set) var ordered = MoneyByCurrency()
  /// Orders with a finding of each kind, and payments and deliveries without an order, by ``FindingKind/index``.
  public private(set) var ordersByKind = [Int](repeating: 0, count: FindingKind.allCases.count)
  public var refunds = 0
  public private(set) var users = TotalLines<UserKey>()
  public private(set) var pricePoints = TotalLines<PricePoint>()
  public private(set) var products = TotalLines<ProductKey>()
  private var lastBundle: Identifier?
  private var takenUserSums: [Currency: Int128] = [:]

  public init() {}

  public init(
    ordersRead: Int, ordersByDisposition: [Int], ordersByCurrency: [ByCurrency<Int>],
    amountByDisposition: [MoneyByCurrency], ordered: MoneyByCurrency, ordersByKind: [Int]
  ) {
    (self.ordersRead, self.ordersByDisposition) = (ordersRead, ordersByDisposition)
    (self.ordersByCurrency, self.amountByDisposition) = (ordersByCurrency, amountByDisposition)
    (self.ordered, self.ordersByKind) = (ordered, ordersByKind)
  }

  public mutating func join(_ line: Line, of key: UserKey) { users.add(line, to: key) }

  public mutating func join(_ line: Line, of key: PricePoint) { pricePoints.add(line, to: key) }

  /// The mean amount of an order in minor units; nil: no order has the currency.
  public func averageOrder(_ currency: Currency) -> Double? {
    let orders = ordersByCurrency.reduce(0) { $0 + $1[currency, default: 0] }
    return orders == 0 ? nil : Double(ordered.minorUnits[currency, default: 0]) / Double(orders)
  }

  public mutating func join(_ line: Line, of key: ProductKey) { products.add(line, to: key) }

  /// Passes the lines of users on and keeps none, to limit memory. The caller adds up lines of one user.
  public mutating func takeUsers(_ body: (UserKey, Line) throws -> Void) rethrows {
    for (key, line) in users {
      takenUserSums[key.currency, default: 0] += line.ordered
      try body(key, line)
    }
    users.removeAll()
  }

  public mutating func read(_ row: OrderRow) { ordersRead += 1 }

  public mutating func read(_ order: BorrowedOrder) { ordersRead += 1 }

  public mutating func add(_ judgement: Judgement) {
    for (place, finding) in judgement.findings.enumerated()
    where !judgement.findings[..<place].contains(where: { $0.kind == finding.kind }) {
      ordersByKind[finding.kind.index] += 1
    }
    switch judgement.row {
    case .bad: ordersByDisposition[judgement.disposition.index] += 1
    case .valid(let order):
      add(
        order.amount, judgement.disposition, userId: order.userId, productId: order.productId,
        bundleId: order.bundleId.map { Identifier($0) }, country: judgement.country)
    }
  }

  /// Counts a finding without an order, if it is about a payment or a delivery: one customer may send many receipts.
  public mutating func count(withoutOrder kind: FindingKind) {
    if kind.isOfOrphan { ordersByKind[kind.index] += 1 }
  }

  public mutating func add(_ sale: SettledSale) {
    if let bundleId = sale.order.bundleId {
      if !(lastBundle.map { bundleId.isSame(as: $0) } ?? false) { lastBundle = bundleId.id }
    } else {
      lastBundle = nil
    }
    add(
      sale.order.amount, .settled, userId: sale.order.userId.id, productId: sale.order.productId.id,
      bundleId: lastBundle, country: sale.country)
  }

  private mutating func add(
    _ amount: Money, _ disposition: Disposition, userId: Identifier, productId: Identifier, bundleId: Identifier?,
    country: Country?
  ) {
    ordersByDisposition[disposition.index] += 1
    ordersByCurrency[disposition.index][amount.currency, default: 0] += 1
    amountByDisposition[disposition.index].add(amount)
    switch disposition {
    case .sandbox, .badRow: return
    case .settled, .paidNotDelivered, .deliveredNotPaid, .partlyDelivered, .refunded, .refundedStillDelivered,
      .inFlight, .unconfirmed, .void:
      ordered.add(amount)
      let (minorUnits, currency) = (amount.minorUnits, amount.currency)
      users.add(minorUnits, disposition, to: UserKey(userId: userId, currency: currency))
      pricePoints.add(
        minorUnits, disposition,
        to: PricePoint(currency: currency, minorUnits: minorUnits, productId: productId, bundleId: bundleId))
      products.add(
        minorUnits, disposition,
        to: ProductKey(bundleId: bundleId, productId: productId, country: country, currency: currency))
    }
  }

  public mutating func join(_ other: Totals) {
    ordersRead += other.ordersRead
    for place in ordersByDisposition.indices {
      ordersByDisposition[place] += other.ordersByDisposition[place]
      for (currency, orders) in other.ordersByCurrency[place].sorted {
        ordersByCurrency[place][currency, default: 0] += orders
      }
      amountByDisposition[place].add(other.amountByDisposition[place])
    }
    ordered.add(other.ordered)
    for place in ordersByKind.indices { ordersByKind[place] += other.ordersByKind[place] }
    refunds += other.refunds
    for (key, line) in other.users { users.add(line, to: key) }
    takenUserSums.merge(other.takenUserSums, uniquingKeysWith: +)
    for (key, line) in other.pricePoints { pricePoints.add(line, to: key) }
    for (key, line) in other.products { products.add(line, to: key) }
  }

  public var control: [ControlTotal] {
    var totals = salesControls
    totals.append(
      ControlTotal(
        name: "orders read = sum over dispositions", left: String(ordersRead),
        right: String(ordersByDisposition.reduce(0, +))))
    let usersByCurrency = Totals.sums(users.lazy.map { ($0.key.currency, $0.value.ordered) }).merging(
      takenUserSums, uniquingKeysWith: +)
    let pointsByCurrency = Totals.sums(pricePoints.lazy.map { ($0.key.currency, $0.value.ordered) })
    let productsByCurrency = Totals.sums(products.lazy.map { ($0.key.currency, $0.value.ordered) })
    var dispositions = MoneyByCurrency()
    for disposition in Disposition.inMoneyTotals { dispositions.add(amountByDisposition[disposition.index]) }
    let currencies = Set(ordered.minorUnits.keys).union(dispositions.minorUnits.keys)
      .union(usersByCurrency.keys).union(pointsByCurrency.keys).union(productsByCurrency.keys)
    for currency in currencies.sorted() {
      let amount = ordered.minorUnits[currency] ?? 0
      func line(_ what: String, _ other: Int128) -> ControlTotal {
        ControlTotal(
          name: "ordered \(currency) = sum over \(what)", left: Money.decimalText(amount, digits: currency.digits),
          right: Money.decimalText(other, digits: currency.digits))
      }
      totals.append(line("dispositions", dispositions.minorUnits[currency] ?? 0))
      totals.append(line("users", usersByCurrency[currency] ?? 0))
      totals.append(line("price points", pointsByCurrency[currency] ?? 0))
      totals.append(line("products", productsByCurrency[currency] ?? 0))
    }
    return totals
  }

  private static func sums(_ amounts: some Sequence<(Currency, Int128)>) -> [Currency: Int128] {
    amounts.reduce(into: [:]) { $0[$1.0, default: 0] += $1.1 }
  }
}
