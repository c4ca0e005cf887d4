/// A way in which a sale goes wrong, or in which it is unusual, and how often that happens.
struct Scenario {
  enum Goods {
    case gems, hero, vip
  }

  enum Timing {
    case anytime
    /// Some days after the beginning and some before the end: there are older sales, and time for a refund.
    case settledIn
    /// In the first eight days.
    case early
    /// In the last four weeks.
    case recent
    /// Since midnight, an hour before the as-of at the latest.
    case tonight
    /// In the hour before the as-of.
    case lastHour
  }

  /// Among 5,000 orders.
  var count: Int
  /// How often besides on the last business day, so that the report of one night has something to show.
  var onLastDay = 0
  var goods = Goods.gems
  var quantity: Int64 = 1
  /// How many orders it makes at a time.
  var orders = 1
  var timing = Timing.anytime
  var byTester = false
  var spoil: (inout Sale, inout ShopBuilder) -> Void

  static var all: [Scenario] { goodsGoneWrong + refunds + notPaid + unconfirmed + bookedWrong }

  /// How many orders it makes among that many: it happens at least once.
  func orders(among total: Int) -> Int { (times(among: total) + onLastDay) * orders }

  private func times(among total: Int) -> Int { max(1, (count * total + 2_500) / 5_000) }

  /// Makes all such sales and records them.
  func play(among total: Int, in shop: inout ShopBuilder) {
    for _ in 0..<times(among: total) { makeSale(in: &shop, at: instant(in: &shop)) }
    let lastDay = (shop.timeline.lastMidnight - Timeline.day)...(shop.timeline.lastMidnight - 10 * Timeline.hour)
    for _ in 0..<onLastDay { makeSale(in: &shop, at: shop.random.whole(lastDay)) }
  }

  private func makeSale(in shop: inout ShopBuilder, at createdAt: Int64) {
    let product =
      switch goods {
      case .gems: shop.random.pick(Catalogue.gems)
      case .hero: shop.random.pick(Catalogue.heroes)
      case .vip: Catalogue.vip
      }
    let user = byTester ? shop.tester() : shop.buyer(of: product)
    var sale = shop.sale(to: user, of: product, quantity: quantity, at: createdAt)
    spoil(&sale, &shop)
    shop.record(sale)
  }

  private func instant(in shop: inout ShopBuilder) -> Int64 {
    let timeline = shop.timeline
    switch timing {
    case .anytime: return timeline.instant(&shop.random)
    case .settledIn:
      return shop.random.whole((timeline.start + 5 * Timeline.day)...(timeline.asOf - 4 * Timeline.day))
    case .early: return shop.random.whole(timeline.start...(timeline.start + 8 * Timeline.day))
    case .recent: return shop.random.whole((timeline.asOf - 28 * Timeline.day)...(timeline.asOf - Timeline.day))
    case .tonight: return shop.random.whole(timeline.lastMidnight...(timeline.asOf - 65 * Timeline.minute))
    case .lastHour:
      return shop.random.whole((timeline.asOf - 50 * Timeline.minute)...(timeline.asOf - 5 * Timeline.minute))
    }
  }
}

// MARK: - Paid, but the goods are wrong

extension Scenario {
  static var goodsGoneWrong: [Scenario] {
    [
      Scenario(count: 16, onLastDay: 3) { sale, _ in
        sale.deliveries = []
        sale.expected = .paidNotDelivered()
      },
      Scenario(count: 3) { sale, _ in
        sale.takeBack(at: sale.order.updatedAt + Timeline.minute)
        sale.expected = .paidNotDelivered()
      },
      Scenario(count: 4) { sale, shop in
        sale.block(status: shop.random.pick(["failed", "cancelled"]))
        sale.expected = .paidNotDelivered("cancelled_but_paid")
      },
      Scenario(count: 3) { sale, _ in
        sale.order.status = "cancelled"
        sale.expected = .settled("cancelled_but_paid")
      },
      Scenario(count: 6, onLastDay: 1, quantity: 3) { sale, shop in
        sale.deliveries[0].quantity = shop.random.whole(1...2)
        sale.expected = Expectation(disposition: "partly_delivered", findings: ["partly_delivered"])
      },
      Scenario(count: 4, timing: .lastHour) { sale, _ in
        sale.deliveries = []
        sale.expected = Expectation(disposition: "in_flight")
      },
      Scenario(count: 8, timing: .tonight) { _, _ in },
      Scenario(count: 4) { sale, shop in
        var second = sale.deliveries[0]
        second.deliveryId = shop.deliveryId()
        second.deliveredAt += 4 * Timeline.second
        sale.deliveries.append(second)
        sale.expected = .settled("delivered_twice")
      },
      Scenario(count: 3) { sale, shop in
        sale.deliveries[0].userId = shop.customers.all[(sale.user + 1) % shop.customers.testers.lowerBound].userId
        sale.expected = .settled("wrong_user")
      },
      Scenario(count: 3) { sale, _ in
        sale.deliveries[0].deliveredAt = sale.order.createdAt + 2 * Timeline.second
        sale.transaction?.purchaseDate = sale.order.createdAt + 26 * Timeline.minute
        sale.transaction?.originalPurchaseDate = sale.order.createdAt + 26 * Timeline.minute
        sale.expected = .settled("delivered_before_paid")
      },
      Scenario(count: 3, goods: .vip, timing: .early) { sale, _ in
        sale.expected = .settled("lapsed_still_served")
      },
    ]
  }

  // MARK: - Refunded by Apple

  static var refunds: [Scenario] {
    [
      Scenario(count: 25, onLastDay: 1, goods: .hero, timing: .settledIn) { sale, shop in
        let refundedAt = shop.refundInstant(of: sale)
        sale.refund(at: refundedAt)
        sale.takeBack(at: refundedAt + 2 * Timeline.hour)
        sale.order.status = "refunded"
        sale.expected = Expectation(disposition: "refunded")
      },
      // Refunds of older orders on the last business day: the refunds of a night are not those of its orders.
      Scenario(count: 4, goods: .hero, timing: .settledIn) { sale, shop in
        let refundedAt = shop.timeline.lastMidnight - shop.random.whole(Timeline.hour...(20 * Timeline.hour))
        sale.refund(at: refundedAt)
        sale.takeBack(at: refundedAt + 10 * Timeline.minute)
        sale.order.status = "refunded"
        sale.expected = Expectation(disposition: "refunded")
      },
      Scenario(count: 4, goods: .hero, timing: .settledIn) { sale, shop in
        let refundedAt = shop.refundInstant(of: sale)
        sale.refund(at: refundedAt)
        sale.takeBack(at: refundedAt + 2 * Timeline.hour)
        sale.expected = Expectation(disposition: "refunded", findings: ["refund_not_booked"])
      },
      Scenario(count: 9, onLastDay: 1, goods: .hero, timing: .settledIn) { sale, shop in
        sale.refund(at: shop.refundInstant(of: sale))
        sale.expected = .refundedStillDelivered("refund_not_booked")
      },
      Scenario(count: 4, goods: .vip, timing: .recent) { sale, shop in
        sale.refund(at: shop.refundInstant(of: sale))
        sale.order.status = "refunded"
        sale.expected = .refundedStillDelivered()
      },
      Scenario(count: 2, goods: .hero, timing: .settledIn) { sale, shop in
        let refundedAt = shop.refundInstant(of: sale)
        sale.refund(at: refundedAt)
        sale.deliveries[0].deliveredAt = refundedAt + 3 * Timeline.hour
        sale.order.status = "refunded"
        sale.expected = .refundedStillDelivered("delivered_after_refund")
      },
      Scenario(count: 2, goods: .vip, timing: .recent) { sale, _ in
        sale.order.status = "refunded"
        sale.expected = .settled("refund_only_here")
      },
    ]
  }
}

extension ShopBuilder {
  /// When Apple refunds a sale: some hours to three weeks later, and before the as-of.
  fileprivate mutating func refundInstant(of sale: Sale) -> Int64 {
    let first = sale.order.createdAt + 6 * Timeline.hour
    return random.whole(first...min(first + 21 * Timeline.day, timeline.asOf - 6 * Timeline.hour))
  }
}
