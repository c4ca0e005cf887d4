import Reconciliation

extension Scenario {
  static let payments: [Scenario] = [
    Scenario("paid, not delivered", 19, onLastDay: 3) { story in
      // Every other customer asks Apple for the money back.
      let asks = story.scene.time.seconds / 60 % 2 == 0
      let date = story.asOf - .minutes(30)
      let order = story.buy(transaction: { record in
        if asks { record.refundRequest = RefundRequest(date: date, reason: "FULFILLMENT_ISSUE") }
      })
      let takenBack = story.later(than: order.createdAt + .minutes(2))
      if story.random.oneIn(4) { story.deliver(of: order) { $0.revokedAt = takenBack } }
      story.expect(order, .paidNotDelivered, .paidNotDelivered)
    },
    Scenario("partly delivered", 6, onLastDay: 1) { story in
      story.sells(story.random.pick(among: SampleProduct.gems), quantity: 3)
      let order = story.buy()
      let delivered = Int64(story.random.number(1...2))
      story.deliver(of: order) { $0.quantity = delivered }
      story.expect(order, .partlyDelivered, .partlyDelivered)
    },
    Scenario("delivered twice", 4) { story in
      let order = story.sell()
      story.deliver("surplus", of: order)
      story.expect(order, .settled, .deliveredTwice)
    },
    Scenario("delivered without any proof", 6, onLastDay: 1) { story in
      let order = story.scene.order()
      story.deliver(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("verified without any proof", 2) { story in
      story.expect(story.scene.order(), .void, .statusMismatch)
    },
    Scenario("delivered for an id that Apple does not know", impossible: [.verifyReceipt: noLookup]) { story in
      story.scene.time = story.asOf - .hours(73)
      let unknown = story.scene.id("unknown")
      let order = story.scene.order { $0.transactionId = unknown }
      story.scene.world.lookups[order.orderId] = .notFound()
      story.deliver(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("a forged proof, believed", 6) { story in
      let order = story.scene.order()
      story.scene.receipt(for: order, .rejected(.signatureInvalid))
      story.deliver(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .signatureInvalid)
    },
    Scenario("a forged proof, seen through") { story in
      let order = story.scene.order { $0.status = .failed }
      story.scene.receipt(for: order, .rejected(.signatureInvalid))
      story.expect(order, .void, .signatureInvalid)
    },
    Scenario("a forged proof beside the genuine one") { story in
      let order = story.sell()
      story.scene.receipt("forged", for: order, .rejected(.signatureInvalid))
      story.expect(order, .settled, .signatureInvalid)
    },
    Scenario("rubbish or Xcode, believed", 2) { story in
      let order = story.scene.order()
      story.scene.receipt(for: order, .rejected(story.random.pick(.malformed, .xcode)))
      story.deliver(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("sandbox goods", 7, onLastDay: 1) { story in
      let order = story.sell(mustName: true, transaction: { $0.environment = .sandbox })
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .sandboxDelivered)
    },
    Scenario("sandbox without goods", 4) { story in
      let order = story.buy(order: { $0.status = .failed }, transaction: { $0.environment = .sandbox })
      story.expect(order, .void)
    },
    Scenario("cancelled, yet paid", 7) { story in
      let status = story.random.pick(OrderStatus.cancelled, .failed)
      let order = story.buy(order: { $0.status = status })
      if story.random.oneIn(2) {
        story.deliver(of: order)
        story.expect(order, .settled, .cancelledButPaid)
      } else {
        story.expect(order, .paidNotDelivered, .paidNotDelivered, .cancelledButPaid)
      }
    },
    Scenario("settled, the shop still waits", 4) { story in
      story.expect(story.sell(order: { $0.status = .pending }), .settled, .statusMismatch)
    },
    Scenario("silent for too long", 2, impossible: [.serverApi: noAnswer]) { story in
      story.stayOpen(story.channel == nil && story.random.oneIn(2) ? .neverChecked : story.silence())
    },
    Scenario("the account is gone, or Apple contradicts itself", 4, impossible: [.serverApi: noAnswer]) { story in
      story.stayOpen(.review(story.channel == nil && story.random.oneIn(2) ? .contradiction : .accountGone))
    },
  ]

  static let claims: [Scenario] = [
    Scenario("one payment for several orders", 4) { story in
      let owner = story.sell(mustName: true)
      story.expect(owner, .settled)
      for number in 1...story.random.number(1...3) {
        let user = story.random.pick("user", "stranger")
        story.scene.time = story.scene.time + .minutes(10)
        let order = story.scene.order("claimant\(number)", by: user) { order in
          order.transactionId = owner.transactionId
          order.status = .failed
        }
        if story.random.oneIn(2) {
          story.deliver("d\(number)", of: order)
          story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .duplicateClaim)
        } else {
          story.expect(order, .void)
        }
      }
    },
    Scenario("one receipt sent for two orders, one payment on it", 5) { story in
      let record = story.scene.transaction()
      let owner = story.scene.order("near")
      let early = story.scene.time - .hours(5)
      let user = story.random.pick("user", "stranger")
      let other = story.scene.order("far", by: user) { $0.createdAt = early }
      for order in [owner, other] {
        let text = "r" + order.orderId.text.dropFirst(story.scene.prefix.count)
        story.scene.receipt(text, for: order, .verified(.app), containing: [record])
        story.deliver("d" + text, of: order)
      }
      story.scene.world.copies = [story.scene.id("rfar"): story.scene.id("rnear")]
      story.expect(owner, .settled)
      story.expect(other, .deliveredNotPaid, .deliveredNotPaid, .duplicateClaim)
    },
    Scenario("charged twice") { story in
      let order = story.sell("1", tellsAll: true)
      let second = story.scene.transaction("T2") { $0.purchaseDate = order.createdAt + .minutes(2) }
      story.scene.receipt("second", for: order, .verified(.app), containing: [second])
      story.expect(order, .settled, .chargedTwice)
    },
    Scenario("the cheapest paid, the dearest delivered", 4) { story in
      let dearest = SampleProduct.chest.price(story.scene.amount.currency.code)
      let order = story.sell(
        mustName: true,
        order: { ($0.productId, $0.amount) = (SampleProduct.chest.productId, dearest) })
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .productMismatch)
    },
    Scenario("another product, named", 2) { story in
      let order = story.buy(
        mustName: true,
        order: { ($0.productId, $0.status) = (SampleProduct.chest.productId, .failed) })
      story.expect(order, .void, .productMismatch)
    },
    Scenario("another product, brought", 2) { story in
      let record = story.scene.transaction { $0.productId = SampleProduct.chest.productId }
      let order = story.scene.order { $0.status = .failed }
      story.scene.signedProof(for: order, of: record)
      story.expect(order, .void, .productMismatch)
      story.expect(.orphanPayment, on: record.transactionId)
    },
    Scenario("a payment in another app") { story in
      // Shown by a receipt, because a look-up only finds purchases of its own app.
      let record = story.scene.transaction { $0.bundleId = ShopFixture.otherBundle }
      let isNamed = story.random.oneIn(2)
      let order = story.scene.order { $0.transactionId = isNamed ? record.transactionId : nil }
      if story.random.oneIn(2) {
        story.scene.signedProof(for: order, of: record)
      } else {
        story.scene.receipt(for: order, .verified(.app), containing: [record])
      }
      story.deliver(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .wrongBundle)
    },
    Scenario("another id than the one in the payload") { story in
      let record = story.scene.transaction()
      let invented = story.scene.id("invented")
      let order = story.scene.order { $0.transactionId = invented }
      story.scene.signedProof(for: order, of: record)
      story.deliver(of: order)
      story.expect(order, .settled)
      // verifyReceipt cannot look the ID up.
      if story.channel != .verifyReceipt {
        story.scene.world.lookups[order.orderId] = .notFound()
        story.expect([.transactionIdMismatch], on: order.orderId)
      }
    },
    Scenario("a purchase and what restores it, an order for each", 2, impossible: [.serverApi: alwaysReason]) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let refund = story.random.oneIn(2) ? story.refunding(since: story.scene.time + .hours(3)) : nil
      // Stated and in a receipt: a stated ID alone loses against another order's receipt, and a receipt against a
      // stated ID.
      let bought = story.scene.transaction("T") { $0.revocation = refund }
      let buyer = story.scene.order("buyer") { $0.transactionId = bought.transactionId }
      story.scene.receipt(for: buyer, .verified(.app), containing: [bought])
      story.deliver(of: buyer)
      story.expect(buyer, refund == nil ? .settled : .refundedStillDelivered)
      if refund != nil { story.expect([.refundedStillDelivered, .refundNotBooked], on: buyer.orderId) }
      story.restoreAsSale(of: "T", by: story.random.pick("user", "stranger"), isNamed: story.random.oneIn(2))
    },
    Scenario(
      "a name that is refused, beside who shows the payment", 2, impossible: [.verifyReceipt: noLookup]
    ) { story in
      story.scene.time = story.asOf - .hours(Int64(story.random.number(25...1_300)))
      let record = story.scene.transaction()
      let unknown = story.scene.id("unknown")
      let payer = story.scene.order("payer") { $0.transactionId = unknown }
      story.scene.world.lookups[payer.orderId] = .notFound()
      story.scene.receipt(for: payer, .verified(.app), containing: [record])
      story.deliver(of: payer)
      story.expect(payer, .settled, .transactionIdMismatch)
      let isOfAnother = story.random.oneIn(2)
      let early = story.scene.time - .hours(1)
      let namer = story.scene.order("namer", by: "stranger") { order in
        order.createdAt = early
        order.transactionId = record.transactionId
        if isOfAnother { order.productId = SampleProduct.chest.productId }
        order.status = .failed
      }
      story.scene.world.lookups[namer.orderId] = .verified(nil)
      story.expect(namer, .void)
      if isOfAnother { story.expect(.productMismatch, on: namer.orderId) }
    },
    Scenario("family access sold", 2) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(1...28)))
      let expiry = story.scene.time + .days(30)
      story.sells(SampleProduct.vip)
      let order = story.sell(
        tellsAll: true,
        transaction: { ($0.ownership, $0.expiresDate) = (.familyShared, expiry) })
      story.expect(order, .void, .familySharedSale, .statusMismatch)
    },
    Scenario("a purchase on the receipt of which no order was made") { story in
      let order = story.sell("1", mustName: true)
      story.sells(SampleProduct.seasonPass)
      let lost = story.scene.transaction("T2") { $0.purchaseDate = order.createdAt - .hours(3) }
      story.scene.receipt("more", for: order, .verified(.app), containing: [lost])
      story.expect(order, .settled)
      story.expect(.orphanPayment, on: lost.transactionId)
    },
  ]

  static let refunds: [Scenario] = [
    Scenario("refunded, not booked", 4) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let refund = story.refunding(since: story.scene.time)
      let order = story.buy(transaction: { $0.revocation = refund })
      let takenBack = story.later(than: refund.date)
      if story.random.oneIn(2) { story.deliver(of: order) { $0.revokedAt = takenBack } }
      story.expect(order, .refunded, .refundNotBooked)
    },
    Scenario("refunded, still delivered", 13, onLastDay: 1) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let refund = story.refunding(since: story.scene.time)
      let isBooked = story.random.oneIn(3)
      let order = story.sell(
        order: { $0.status = isBooked ? .refunded : .verified }, transaction: { $0.revocation = refund })
      story.expect(order, .refundedStillDelivered, .refundedStillDelivered)
      if !isBooked { story.expect(.refundNotBooked, on: order.orderId) }
    },
    Scenario("delivered after the refund", 2) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let refund = story.refunding(since: story.scene.time)
      let delivered = story.later(than: refund.date)
      let order = story.buy(order: { $0.status = .refunded }, transaction: { $0.revocation = refund })
      story.deliver(of: order) { $0.deliveredAt = delivered }
      story.expect(order, .refundedStillDelivered, .refundedStillDelivered, .deliveredAfterRefund)
    },
    Scenario("refunded, the shop still waits", 2) { story in
      story.sells(story.random.pick(among: SampleProduct.heroes))
      let refund = story.refunding(since: story.scene.time)
      let order = story.buy(order: { $0.status = .pending }, transaction: { $0.revocation = refund })
      story.expect(order, .refunded, .statusMismatch)
    },
    Scenario("prorated", impossible: [.verifyReceipt: "old receipts do not tell shares"]) { story in
      let status = story.random.pick(OrderStatus.verified, .refunded)
      let percentage = Int32(story.random.number(1...99_999))
      let date = story.later(than: story.scene.time)
      let order = story.sell(
        order: { $0.status = status },
        transaction: { record in
          record.revocation = Revocation(date: date, percentage: percentage, type: "REFUND_PRORATED", reason: 1)
        })
      story.expect(order, .settled, .partialRefund)
    },
    Scenario("refunded in the shop only", 2) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(1...28)))
      let expiry = story.scene.time + .days(30)
      // Only for subscriptions do old receipts show that there was no refund.
      story.sells(SampleProduct.vip)
      let order = story.sell(tellsAll: true, order: { $0.status = .refunded }, transaction: { $0.expiresDate = expiry })
      story.expect(order, .settled, .refundOnlyHere)
    },
    Scenario(
      "a refund that was reversed, the goods still gone",
      impossible: [.verifyReceipt: "old receipts do not tell that a refund was reversed"]
    ) { story in
      let withdrawn = story.later(than: story.scene.time + .hours(2))
      let order = story.buy(transaction: { $0.revocationWithdrawnDate = withdrawn })
      story.deliver(of: order) { $0.revokedAt = withdrawn - .hours(1) }
      story.expect(order, .paidNotDelivered, .paidNotDelivered, .refundReversedNotReinstated)
    },
  ]
}

extension ScenarioFixture {
  /// Adds an order that books the restore of another purchase as a sale, some hours later.
  fileprivate mutating func restoreAsSale(of purchase: String, by user: String, isNamed: Bool) {
    let (first, begin) = (scene.id(purchase), scene.world.transactions.first?.purchaseDate)
    scene.time = scene.time + .hours(2)
    let restored = scene.transaction("restored") { record in
      (record.originalTransactionId, record.originalPurchaseDate) = (first, begin)
    }
    let order = scene.order("restoring", by: user) { order in
      order.transactionId = isNamed ? restored.transactionId : nil
      order.status = .failed
    }
    scene.receipt("restore", for: order, .verified(.app), containing: [restored])
    guard random.oneIn(2) else { return expect(order, .void) }
    deliver("restored goods", of: order)
    expect(order, .deliveredNotPaid, .deliveredNotPaid, .duplicateClaim)
  }

  /// Adds an older order whose receipt stays in the given state.
  fileprivate mutating func stayOpen(_ state: ProofState) {
    scene.time = asOf - .hours(Int64(random.number(49...1_300)))
    let order = scene.order()
    scene.receipt(for: order, state)
    if random.oneIn(2) { deliver(of: order) }
    expectUnconfirmed(order)
  }
}
