import Reconciliation

extension Scenario {
  static let records: [Scenario] = [
    Scenario("goods to a stranger") { story in
      let order = story.buy()
      let stranger = story.scene.id("stranger")
      story.deliver(of: order) { $0.userId = stranger }
      story.expect(order, .settled, .wrongUser)
    },
    Scenario("a stranger's account token", impossible: [.verifyReceipt: noToken]) { story in
      let tokens = (story.token("0"), story.token("1"))
      let order = story.sell(
        order: { $0.appAccountToken = tokens.0 }, transaction: { $0.appAccountToken = .stated(tokens.1) })
      story.expect(order, .settled, .wrongUser)
    },
    Scenario("no account token, and Apple's is a stranger's", impossible: [.verifyReceipt: noToken]) { story in
      let token = story.token("2")
      let order = story.sell("1", transaction: { $0.appAccountToken = .stated(token) })
      let other = story.sell(
        "2", by: "stranger", mustName: true, order: { $0.appAccountToken = token },
        transaction: { $0.appAccountToken = .stated(token) })
      story.expect(order, .settled, .wrongUser)
      story.expect(other, .settled)
    },
    Scenario("the account token was not passed on", impossible: [.verifyReceipt: noToken]) { story in
      let token = story.token("3")
      let order = story.sell(order: { $0.appAccountToken = token }, transaction: { $0.appAccountToken = .stated(nil) })
      story.expect(order, .settled, .accountTokenMissing)
    },
    Scenario("another quantity") { story in
      story.sells(story.random.pick(among: SampleProduct.gems), quantity: 3)
      story.expect(story.sell(transaction: { $0.quantity = 2 }), .settled, .quantityMismatch)
    },
    Scenario("another price", impossible: [.verifyReceipt: noPrice]) { story in
      let order = story.sell(transaction: { $0.priceMilliunits = ($0.priceMilliunits ?? 0) + 1_000 })
      story.expect(order, .settled, .amountMismatch)
    },
    Scenario("another currency", impossible: [.verifyReceipt: noPrice]) { story in
      story.expect(story.sell(transaction: { $0.currency = "CHF" }), .settled, .currencyMismatch)
    },
    Scenario("lapsed, still served") { story in
      story.sells(SampleProduct.vip)
      story.scene.time = story.asOf - .days(50)
      let expiry = story.scene.time + .days(30)
      let said = story.random.pick(SubscriptionState.expired, .billingRetry, .revoked)
      let status = story.channel == .verifyReceipt ? .expired : said
      let order = story.sell(transaction: { ($0.expiresDate, $0.subscriptionStatus) = (expiry, status) })
      story.expect(order, .settled)
      story.expectLapse(of: "T")
    },
    Scenario("lapsed, and the customer has other subscriptions", 2) { story in
      story.sells(SampleProduct.vip)
      story.scene.time = story.asOf - .days(50)
      let period = Span.days(30)
      let expiry = story.scene.time + period
      // Apple's answer about one subscription includes the other, which proves no order's payment.
      for other in ["T2", "T3"] { story.scene.world.customers[story.scene.id(other)] = story.scene.id("T1") }
      story.expect(story.sell("1", transaction: { $0.expiresDate = expiry }), .settled)
      story.expectLapse(of: "T1")
      story.scene.time = story.scene.time + .days(10)
      let otherExpiry = story.scene.time + period
      // With verifyReceipt it is the customer's own, because receipts of subscriptions identify the person.
      let buyer = story.channel == .verifyReceipt ? "user" : story.random.pick("user", "stranger")
      let other = story.sell("2", by: buyer, mustName: true, transaction: { $0.expiresDate = otherExpiry })
      story.expect(other, .settled)
      guard story.channel != .verifyReceipt else { return }
      let unowned = story.scene.transaction("T3") { $0.expiresDate = otherExpiry }
      story.expect(.orphanPayment, on: unowned.transactionId)
      let thief = story.scene.order("thief", by: "stranger")
      story.deliver("stolen", of: thief)
      story.expect(thief, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("a better plan in the middle of a period", 2) { story in
      story.sells(SampleProduct.vip)
      story.scene.time = story.asOf - .days(Int64(story.random.number(12...40)))
      let (first, begin, upgraded) = (story.scene.id("T1"), story.scene.time, story.scene.time + .days(10))
      let order = story.buy(
        "1", mustName: true, tellsAll: true,
        transaction: { ($0.expiresDate, $0.isUpgraded) = (begin + .days(30), true) })
      story.deliver("d1", of: order) { $0.revokedAt = upgraded }
      story.sells(SampleProduct.vipGold)
      story.scene.time = upgraded
      let better = story.sell(
        "2", mustName: true,
        transaction: { record in
          (record.originalTransactionId, record.originalPurchaseDate) = (first, begin)
          (record.expiresDate, record.isRenewal) = (upgraded + .days(30), false)
        })
      for made in [order, better] { story.expect(made, .settled) }
    },
    Scenario(
      "its end is past, and Apple gives access all the same or was not asked",
      impossible: [.verifyReceipt: "old receipts tell of a time of grace alone"]
    ) { story in
      story.sells(SampleProduct.vip)
      story.scene.time = story.asOf - .days(50)
      let expiry = story.scene.time + .days(30)
      let status = story.random.pick(SubscriptionState.active, .gracePeriod, nil)
      let order = story.sell(transaction: { ($0.expiresDate, $0.subscriptionStatus) = (expiry, status) })
      story.expect(order, .settled)
    },
    Scenario("delivered before the payment") { story in
      let order = story.buy()
      story.deliver(of: order) { $0.deliveredAt = order.createdAt - .minutes(6) }
      story.expect(order, .settled, .deliveredBeforePaid)
    },
    Scenario(
      "a date in the future", 2, impossible: [.serverApi: "an audit of the past does not know what came later"]
    ) { story in
      let late = story.asOf + .minutes(Int64(story.random.number(6...60)))
      // An audit of the past, as the sample shop's is, reads neither later deliveries nor verifications up to the clock.
      let isVerification = story.channel == .verifyReceipt || story.random.oneIn(2)
      let order = story.buy(order: { $0.verifiedAt = isVerification ? late + .days(36_500) : nil })
      story.deliver(of: order) { $0.deliveredAt = isVerification ? $0.deliveredAt : late }
      story.expect(order, .settled, .futureDated)
    },
    Scenario("called Production, signed for the sandbox", 2) { story in
      story.scene.world.rules.testUsers = [story.scene.id("tester")]
      let record = story.scene.transaction { $0.environment = .sandbox }
      let order = story.scene.order(by: "tester")
      story.scene.receipt(for: order, .verified(.app), containing: [record]) { $0.claimedEnvironment = "Production" }
      story.expect(order, .sandbox, .environmentMislabelled)
    },
    Scenario("called Sandbox, signed for production") { story in
      let record = story.scene.transaction()
      let order = story.scene.order { $0.transactionId = record.transactionId }
      story.scene.receipt(for: order, .verified(.app), containing: [record]) { $0.claimedEnvironment = "Sandbox" }
      story.deliver(of: order)
      story.expect(order, .settled, .environmentMislabelled)
    },
  ]

  static let sales: [Scenario] = [
    Scenario("a restore, posted like a purchase", impossible: [.serverApi: alwaysReason]) { story in
      let (first, time) = (story.scene.id("T0"), story.scene.time)
      let hasOtherId = story.random.oneIn(2)
      // With the purchase's own ID and not stated, it would be an old purchase without an order.
      let order = story.sell(
        mustName: !hasOtherId,
        transaction: { record in
          if hasOtherId { record.originalTransactionId = first }
          record.originalPurchaseDate = time - .days(30)
        })
      story.expect(order, .void, .restoredAsSale, .statusMismatch)
    },
    Scenario(
      "a restore on the day of the purchase, posted by the order of that day", impossible: [.serverApi: alwaysReason]
    ) { story in
      let (first, time) = (story.scene.id("T0"), story.scene.time)
      let hasOtherId = story.random.oneIn(2)
      if hasOtherId, story.random.oneIn(2) {
        let purchase = story.scene.transaction("T0") { $0.purchaseDate = time - .seconds(5) }
        story.scene.receipt("before", for: nil, .verified(.app), containing: [purchase])
      }
      let order = story.sell(transaction: { record in
        if hasOtherId { record.originalTransactionId = first }
        record.purchaseDate = time + .hours(1)
        record.originalPurchaseDate = time - .seconds(5)
      })
      story.expect(order, .settled)
    },
    Scenario("a restore that Apple calls a purchase", impossible: [.verifyReceipt: noReason]) { story in
      let (first, asOf) = (story.scene.id("T0"), story.asOf)
      let order = story.sell(transaction: { record in
        record.originalTransactionId = first
        record.originalPurchaseDate = asOf - .days(300)
        record.isRenewal = false
      })
      story.expect(order, .void, .restoredAsSale, .statusMismatch)
    },
    Scenario("a purchase of two months before") { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(4...20)))
      let bought = story.scene.time - .days(60)
      let order = story.sell(mustName: true, transaction: { $0.purchaseDate = bought })
      story.expect(order, .settled, .purchasePredatesOrder)
    },
    Scenario("a product that the catalogue lacks", impossible: [.verifyReceipt: noCatalogue]) { story in
      story.scene.product = story.scene.id("unheard of")
      story.expect(story.sell(), .settled, .unknownProduct)
    },
    Scenario("sold when it was off sale", impossible: [.verifyReceipt: noCatalogue]) { story in
      story.scene.product = story.scene.id("seasonal")
      let (time, isEarly) = (story.scene.time, story.random.oneIn(2))
      story.scene.world.products = [
        .init(
          productId: story.scene.product, soldFrom: isEarly ? time + .hours(1) : nil, soldUntil: isEarly ? nil : time)
      ]
      story.expect(story.sell(), .settled, .soldOutsideCatalogue)
    },
    Scenario("sold on its first and last days", impossible: [.verifyReceipt: noCatalogue]) { story in
      story.scene.product = story.scene.id("seasonal")
      let time = story.scene.time
      story.scene.world.products = [
        .init(productId: story.scene.product, soldFrom: time, soldUntil: time + .seconds(1))
      ]
      story.expect(story.sell(transaction: { $0.purchaseDate = time }), .settled)
    },
    Scenario("bought for ever, twice", impossible: [.verifyReceipt: noCatalogue]) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      story.scene.time = story.asOf - .days(20)
      story.expect(story.sell("1"), .settled)
      story.scene.time = story.asOf - .days(10)
      story.expect(story.sell("2"), .settled, .boughtTwice)
      story.scene.time = story.asOf - .days(5)
      story.expect(story.sell("3", by: "another"), .settled)
    },
  ]

  static let strays: [Scenario] = [
    Scenario("a code that was redeemed, without an order", impossible: [.verifyReceipt: noPrice]) { story in
      let record = story.scene.transaction { ($0.priceMilliunits, $0.hasOffer) = (0, true) }
      story.scene.signedProof(for: nil, of: record)
      story.expect(.unclaimedRedemption, on: record.transactionId)
    },
    Scenario("a present for which nothing is to be paid") { story in
      let order = story.scene.order { $0.amount = .of(0) }
      story.deliver(of: order)
      story.expect(order, .settled)
    },
    Scenario("the client writes another transaction ID than its proof contains", impossible: [.verifyReceipt: noLookup])
    {
      story in
      let other = story.scene.id("9")
      let order = story.scene.order { $0.transactionId = other }
      story.scene.signedProof(for: order, of: story.scene.transaction("T"))
      story.scene.world.lookups[order.orderId] = .notFound()
      story.deliver(of: order)
      story.expect(order, .settled, .transactionIdMismatch)
    },
    Scenario("the client crashed after paying", impossible: [.verifyReceipt: noToken]) { story in
      story.scene.time = story.asOf - .days(3)
      let token = story.token("5")
      let order = story.scene.order { ($0.appAccountToken, $0.status) = (token, .pending) }
      story.scene.transaction("T") { $0.appAccountToken = .stated(token.uppercased()) }
      story.expect(order, .paidNotDelivered, .paidNotDelivered)
    },
    Scenario("a payment without an order", 4) { story in
      let record = story.scene.transaction()
      let isSent = story.channel == .verifyReceipt || story.random.oneIn(2)
      if isSent { story.scene.signedProof(for: nil, of: record) }
      story.expect(.orphanPayment, on: record.transactionId)
    },
    Scenario(
      "a sale of long ago, told on the day of its restore", impossible: [.serverApi: alwaysReason]
    ) { story in
      let asOf = story.asOf
      story.scene.transaction { ($0.purchaseDate, $0.originalPurchaseDate) = (asOf - .days(2), asOf - .days(200)) }
    },
    Scenario("a payment too old, refunded, in the sandbox or in another app") { story in
      let (why, asOf) = (story.random.number(0...3), story.asOf)
      story.scene.transaction { record in
        switch why {
        case 0: record.purchaseDate = asOf - .days(200)
        case 1: record.revocation = Revocation(date: asOf - .hours(1))
        case 2: record.environment = .sandbox
        default: record.bundleId = ShopFixture.otherBundle
        }
      }
    },
    Scenario("a payment too far from the only order that could claim it") { story in
      let asOf = story.asOf
      story.scene.time = asOf - .days(30)
      let record = story.scene.transaction { $0.purchaseDate = asOf - .days(34) }
      let order = story.scene.order()
      story.scene.receipt(for: order, .verified(.app), containing: [record])
      story.expect(order, .unconfirmed, .stuckUnconfirmed)
      story.expect(.orphanPayment, on: record.transactionId)
    },
    Scenario("a renewal without an order", 6) { story in
      story.sells(SampleProduct.vip)
      story.scene.time = story.asOf - .days(Int64(story.random.number(47...55)))
      let (first, expiry) = (story.scene.id("T1"), story.scene.time + .days(30))
      let order = story.sell("1", transaction: { $0.expiresDate = expiry })
      story.expect(order, .settled)
      let renewal = story.scene.transaction("T2") { record in
        record.originalTransactionId = first
        record.originalPurchaseDate = expiry - .days(30)
        record.purchaseDate = expiry
        record.expiresDate = expiry + .days(30)
        record.isRenewal = true
      }
      story.expect(.renewalWithoutOrder, on: renewal.transactionId)
    },
    Scenario("goods without an order") { story in
      let unknown = story.random.oneIn(2) ? story.scene.id("missing") : nil
      let delivery = Delivery(
        deliveryId: story.scene.id("delivery"), orderId: unknown, userId: story.scene.id("user"),
        productId: story.scene.product, deliveredAt: story.scene.time)
      story.scene.world.deliveries.append(delivery)
      story.expect(.orphanDelivery, on: delivery.deliveryId)
    },
    Scenario("a forged proof without an order") { story in
      let receipt = story.scene.receipt(for: nil, .rejected(.signatureInvalid))
      story.expect(.signatureInvalid, on: receipt.receiptId)
    },
    Scenario("a row that breaks the contract", 5) { story in
      let order = story.scene.order()
      var bad = BadOrder.broken(order.orderId, transactionId: nil)
      (bad.userId, bad.productId, bad.createdAt) = (order.userId, order.productId, order.createdAt)
      switch story.random.number(0...5) {
      case 0: bad.amountText = "-4.99"
      case 1: (bad.amountText, bad.currencyText) = ("160.5", "JPY")
      case 2: bad.currencyText = "XYZ"
      case 3: bad.statusText = "done"
      case 4: bad.quantity = 0
      default: break
      }
      story.scene.world.orders = [.bad(bad)]
      if story.random.oneIn(2) { story.deliver(of: order) }
      story.expect(order, .badRow, .badRow)
    },
    Scenario("rows of an order that break the contract", 2) { story in
      let order = story.sell()
      let receipt = story.scene.receipt("broken receipt", for: order, .rejected(.signatureInvalid)) { receipt in
        receipt.defect = "no status"
      }
      let delivery = story.scene.delivery("broken delivery", of: order) { $0.defect = "quantity below 1" }
      story.expect(order, .settled)
      story.expect(.badRow, on: receipt.receiptId)
      story.expect(.badRow, on: delivery.deliveryId)
    },
  ]
}
