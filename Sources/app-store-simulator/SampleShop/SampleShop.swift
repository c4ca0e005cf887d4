/// A whole shop: subscriptions that renew, honest sales, everything that goes wrong, and what lies around without an order.
enum SampleShop {
  /// Fewer have no room for every scenario.
  static let fewestOrders = 500
  /// Fewer have no time for a subscription to lapse; more are beyond the audit's lookback.
  static let possibleDays = 56...110

  /// - Parameter orders: exactly so many are made, `fewestOrders` or more.
  static func make(orders: Int, seed: UInt64, timeline: Timeline) -> ShopBuilder {
    var shop = ShopBuilder(seed: seed, timeline: timeline)
    let troubled = Scenario.all.reduce(0) { $0 + $1.orders(among: orders) }
    for _ in 0..<(orders / 28) { shop.subscribe(at: shop.timeline.instant(&shop.random)) }
    for _ in 0..<max(1, orders / 800) { shop.subscribeWithUnbookedRenewal() }

    // In the order of time: a receipt lists what its user bought before.
    let rest = max(0, orders - troubled - shop.orders.count)
    let instants = (0..<rest).map { _ in timeline.instant(&shop.random) }.sorted()
    for instant in instants { shop.sellHonestly(at: instant) }
    for scenario in Scenario.all { scenario.play(among: orders, in: &shop) }
    shop.leaveLooseEnds(among: orders)
    return shop
  }
}

extension ShopBuilder {
  /// A sale without any trouble but the daily one: an id that the client never reported, a check that timed out.
  fileprivate mutating func sellHonestly(at instant: Int64) {
    let draw = random.fraction()
    let product =
      switch draw {
      case ..<0.38: Catalogue.gems[0]
      case ..<0.62: Catalogue.gems[1]
      case ..<0.76: Catalogue.gems[2]
      case ..<0.82: Catalogue.gems[3]
      case ..<0.96: random.pick(Catalogue.heroes)
      default: Catalogue.seasonPass
      }
    let user = buyer(of: product)
    let quantity = product.kind == .consumable && random.chance(0.12) ? random.whole(2...5) : 1
    var sale = sale(to: user, of: product, quantity: quantity, at: instant)
    if random.chance(0.12) {
      sale.proof?.kind = .transaction
    } else {
      sale.proof?.others = permanentPurchases(of: user, before: instant)
    }
    if random.chance(0.1) { sale.order.transactionId = nil }
    if random.chance(0.04) { sale.proof?.shopStatus = random.pick(["timeout", "timeout", "unverified"]) }
    recordHonest(sale)
  }

  /// A subscription from its first period until the as-of, each period an order of its own. The one that ends does so too
  /// recently for access to have to end.
  fileprivate mutating func subscribe(at instant: Int64) {
    let user = buyer(of: Catalogue.vip)
    var sale = sale(to: user, of: Catalogue.vip, at: instant)
    var periods = [sale.transaction].compactMap(\.self)
    recordHonest(sale)
    while let expiry = periods.last?.expiresDate, expiry < timeline.asOf - Timeline.hour {
      if timeline.asOf - expiry < 14 * Timeline.day, random.chance(0.25) { return }
      sale = renewal(of: periods, for: user, at: expiry)
      periods += [sale.transaction].compactMap(\.self)
      record(sale)
    }
  }

  /// The same, but the renewals were never booked.
  fileprivate mutating func subscribeWithUnbookedRenewal() {
    let user = buyer(of: Catalogue.vip)
    let firstDays = timeline.start...(timeline.start + 8 * Timeline.day)
    let first = sale(to: user, of: Catalogue.vip, at: random.whole(firstDays))
    var periods = [first.transaction].compactMap(\.self)
    recordHonest(first)
    while let expiry = periods.last?.expiresDate, expiry < timeline.asOf - Timeline.hour {
      guard let period = renewal(of: periods, for: user, at: expiry).transaction else { return }
      periods.append(period)
      add(period)
      expect("renewal_without_order", on: period.transactionId)
    }
  }

  private mutating func renewal(of periods: [SampleTransaction], for user: Int, at expiry: Int64) -> Sale {
    var sale = sale(to: user, of: Catalogue.vip, at: expiry - 20 * Timeline.second)
    sale.transaction?.purchaseDate = expiry
    sale.transaction?.expiresDate = expiry + Catalogue.vipPeriod
    sale.transaction?.transactionReason = .renewal
    if let first = periods.first {
      sale.transaction?.originalTransactionId = first.transactionId
      sale.transaction?.originalPurchaseDate = first.purchaseDate
    }
    sale.proof?.others = periods
    return sale
  }

  /// Receipts, payments and deliveries behind which no order stands.
  fileprivate mutating func leaveLooseEnds(among orders: Int) {
    for _ in 0..<max(1, orders / 1_200) {
      let sale = looseSale()
      if let purchase = sale.transaction {
        add(purchase)
        expect("orphan_payment", on: purchase.transactionId)
      }
      _ = sendReceipt(of: sale, isLost: true)
    }
    for position in 0..<max(2, orders / 1_500) {
      var delivery = looseSale().deliveries[0]
      if position.isMultiple(of: 2) { delivery.orderId = nil }
      add(delivery)
      expect("orphan_delivery", on: delivery.deliveryId)
    }
    // Restores on a new phone: what the user has bought for good, and no sale.
    for _ in 0..<max(1, orders / 125) {
      var sale = looseSale()
      sale.proof?.others = permanentPurchases(of: sale.user, before: sale.order.createdAt)
      sale.transaction = nil
      if sale.proof?.others.isEmpty == false { _ = sendReceipt(of: sale, isLost: true) }
    }
    var broken = looseSale()
    broken.transaction = nil
    broken.proof?.shopStatus = "ok"
    _ = sendReceipt(of: broken, isLost: true)
    if let receipt = receipts.last { expect("bad_row", on: receipt.receiptId) }
  }

  private mutating func looseSale() -> Sale {
    let product = random.pick(Catalogue.gems)
    return sale(to: buyer(of: product), of: product, at: timeline.instant(&random))
  }
}
