import Reconciliation

extension Scenario {
  static let noPrice = "old receipts tell no price"
  static let noToken = "old receipts tell account tokens of subscriptions alone"
  static let noLookup = "verifyReceipt cannot be asked about an id"
  static let noReason = "old receipts do not say whether it was a purchase"
  static let alwaysReason = "the Server API always says whether it was a purchase; receipts leave it open"
  static let noCatalogue = "the shop has no relation of its products"
  static let noAnswer = "silence is no answer; outages are tried elsewhere"

  package static let honest = Scenario("paid and delivered") { story in
    story.expect(story.sell(), .settled)
  }

  /// Each period until the audit is an order. An ended one ended so recently that access may remain.
  package static let subscription = Scenario("a subscription, each period booked") { story in
    story.sells(SampleProduct.vip)
    let (first, begin) = (story.scene.id("T1"), story.scene.time)
    for number in 1...5 {
      let start = story.scene.time
      let order = story.sell(
        "\(number)", mustName: number > 1,
        transaction: { record in
          (record.purchaseDate, record.expiresDate) = (start, start + .days(30))
          guard number > 1 else { return }
          (record.originalTransactionId, record.originalPurchaseDate, record.isRenewal) = (first, begin, true)
        })
      story.expect(order, .settled)
      story.scene.time = start + .days(30)
      let left = story.asOf - story.scene.time
      if left < .hours(1) || left < .days(14) && story.random.oneIn(4) { break }
    }
  }

  /// Cases that look unusual and are correct.
  static let ordinary: [Scenario] = [
    honest,
    subscription,
    Scenario("delivered in two parcels") { story in
      story.sells(story.random.pick(among: SampleProduct.gems), quantity: 3)
      let order = story.buy(mustName: true)
      story.deliver("d1", of: order) { $0.quantity = 1 }
      story.deliver("d2", of: order) { $0.quantity = 2 }
      story.expect(order, .settled)
    },
    Scenario("taken back by mistake and delivered again", 2) { story in
      let order = story.buy()
      let later = story.later(than: order.createdAt)
      story.deliver("d1", of: order) { $0.revokedAt = later }
      story.deliver("d2", of: order) { $0.deliveredAt = later }
      story.expect(order, .settled)
    },
    Scenario("paid a moment ago", 4) { story in
      story.scene.time = story.asOf - .minutes(Int64(story.random.number(5...50)))
      story.expect(story.buy(), .inFlight)
    },
    Scenario("ordered a moment ago", 2) { story in
      story.scene.time = story.asOf - .minutes(Int64(story.random.number(5...50)))
      story.expect(story.scene.order { $0.status = .pending }, .unconfirmed)
    },
    Scenario("given up before paying", 78, onLastDay: 1) { story in
      let status = story.random.pick(OrderStatus.pending, .failed, .cancelled, .cancelled)
      story.expect(story.scene.order { $0.status = status }, .void)
    },
    Scenario("refunded, taken back and booked", 29, onLastDay: 1) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let refund = story.refunding(since: story.scene.time)
      let order = story.buy(order: { $0.status = .refunded }, transaction: { $0.revocation = refund })
      let takenBack = story.later(than: refund.date)
      story.deliver(of: order) { $0.revokedAt = takenBack }
      story.expect(order, .refunded)
    },
    Scenario(
      "a refund that was reversed, the goods given back",
      impossible: [.verifyReceipt: "old receipts do not tell that a refund was reversed"]
    ) { story in
      let withdrawn = story.later(than: story.scene.time + .hours(2))
      let order = story.buy(transaction: { $0.revocationWithdrawnDate = withdrawn })
      story.deliver("d1", of: order) { $0.revokedAt = withdrawn - .hours(1) }
      story.deliver("d2", of: order) { $0.deliveredAt = withdrawn }
      story.expect(order, .settled)
    },
    Scenario("an offer at another price than was booked", impossible: [.verifyReceipt: noPrice]) { story in
      let order = story.sell(transaction: { ($0.priceMilliunits, $0.hasOffer) = (0, true) })
      story.expect(order, .settled, .amountMismatch)
    },
    Scenario("the price is not told", impossible: [.verifyReceipt: "it never is, and reports tell prices"]) { story in
      let order = story.sell(transaction: { ($0.priceMilliunits, $0.currency) = (nil, nil) })
      story.expect(order, .settled)
    },
    Scenario("a tester in the sandbox", 40) { story in
      story.scene.world.rules.testUsers = [story.scene.id("tester")]
      let order = story.buy(by: "tester", transaction: { $0.environment = .sandbox })
      if story.random.oneIn(2) { story.deliver(of: order) }
      story.expect(order, .sandbox)
    },
    Scenario("a tester who pays") { story in
      story.scene.world.rules.testUsers = [story.scene.id("tester")]
      story.expect(story.sell(by: "tester"), .settled)
    },
    Scenario("one receipt covers several orders", 12) { story in
      let count = story.random.number(2...5)
      let step = Span.minutes(Int64(story.random.number(4...1_200)))
      var records: [TransactionRecord] = []
      for number in 0..<count {
        records.append(story.scene.transaction("T\(number)"))
        let order = story.scene.order("order\(number)")
        story.deliver("delivery\(number)", of: order)
        // Every device sends all of its purchases.
        story.scene.receipt("receipt\(number)", for: order, .verified(.app), containing: records)
        story.expect(order, .settled)
        story.scene.time = story.scene.time + step
        if story.scene.time > story.asOf - .hours(2) { break }
      }
    },
    Scenario("a restore", 12, impossible: [.serverApi: alwaysReason]) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let order = story.sell()
      let first = story.scene.id("T")
      let restored = story.scene.transaction("T9") { $0.originalTransactionId = first }
      story.scene.receipt("restore", for: nil, .verified(.app), containing: [restored])
      story.expect(order, .settled)
    },
    Scenario(
      "a finished consumable has left the receipt", 16,
      impossible: [.serverApi: "what Apple sold is looked up or told unasked"]
    ) { story in
      let order = story.scene.order()
      story.scene.receipt(for: order, .verified(.app)) { $0.state.bundleId = ShopFixture.bundle }
      story.deliver(of: order)
      story.sellUnseen()
      story.expectUnconfirmed(order)
    },
    Scenario("Apple is silent tonight", 6, impossible: [.serverApi: noAnswer]) { story in
      story.scene.time = story.asOf - .hours(30)
      let order = story.scene.order()
      story.scene.receipt(for: order, story.silence())
      story.deliver(of: order)
      story.expect(order, .unconfirmed)
    },
    Scenario("Apple does not know the id yet", impossible: [.verifyReceipt: noLookup]) { story in
      story.scene.time = story.asOf - .hours(20)
      let unknown = story.scene.id("unknown")
      let order = story.scene.order { $0.transactionId = unknown }
      story.scene.world.lookups[order.orderId] = .notFound()
      story.deliver(of: order)
      story.expect(order, .unconfirmed)
    },
    Scenario("the receipt is lost, an id alone is left", 6, impossible: [.serverApi: noAnswer]) { story in
      let sold = story.sellUnseen()
      let order = story.scene.order { $0.transactionId = sold }
      story.deliver(of: order)
      story.expectUnconfirmed(order)
    },
    Scenario("family access for nothing", 2) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(1...28)))
      let expiry = story.scene.time + .days(30)
      story.sells(SampleProduct.vip)
      story.scene.amount.minorUnits = 0
      let order = story.sell(
        tellsAll: true, order: { $0.status = .pending },
        transaction: { ($0.ownership, $0.expiresDate) = (.familyShared, expiry) })
      story.expect(order, .void)
    },
    Scenario("the account token in other spelling", impossible: [.verifyReceipt: noToken]) { story in
      let token = story.token("a")
      let order = story.sell(
        order: { $0.appAccountToken = token }, transaction: { $0.appAccountToken = .stated(token.uppercased()) })
      story.expect(order, .settled)
    },
    Scenario(
      "the channel carries no account token",
      impossible: [.serverApi: "the Server API always says whether there is one"]
    ) { story in
      let token = story.token("b")
      let order = story.sell(order: { $0.appAccountToken = token }, transaction: { $0.appAccountToken = .absent })
      story.expect(order, .settled)
    },
    Scenario("clocks differ a little") { story in
      let order = story.buy()
      story.deliver(of: order) { $0.deliveredAt = order.createdAt - .minutes(4) }
      story.expect(order, .settled)
    },
    Scenario("charged twice, once refunded") { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let order = story.sell("1", mustName: true)
      let refund = story.refunding(since: order.createdAt + .minutes(2))
      let second = story.scene.transaction("T2") { $0.revocation = refund }
      story.scene.receipt("second", for: order, .verified(.app), containing: [second])
      story.expect(order, .settled)
    },
  ]
}

extension ScenarioFixture {
  /// Adds a sale that is in no answer, and returns its ID.
  @discardableResult
  mutating func sellUnseen() -> Identifier {
    let sold = scene.transaction("T")
    scene.world.transactions.removeLast()
    scene.world.unseen.append(sold)
    return sold.transactionId
  }
}
