import Reconciliation

extension Scenario {
  private static let noField = "old receipts lack the field, or the sample shop has no such sale"

  private static let noFeed = "verifyReceipt has no notifications, and cannot be asked about an id"

  /// Purchases with several transaction IDs, commitment plans, Advanced Commerce items, and facts that Apple tells late,
  /// differently later or not by notification.
  static let purchases: [Scenario] = [
    Scenario("a period with two IDs, and the order states the second", impossible: [.verifyReceipt: noField]) { story in
      let second = story.scene.id("T2")
      let order = story.sellPeriod(order: { $0.transactionId = second })
      story.addSecondID()
      story.expect(order, .settled)
    },
    Scenario("a period with two IDs, and an order for each", impossible: [.verifyReceipt: noField]) { story in
      let order = story.sellPeriod()
      let second = story.addSecondID()
      story.scene.time = story.scene.time + .hours(1)
      let copy = story.scene.order("copy", by: "stranger") { $0.transactionId = second.transactionId }
      story.scene.world.lookups[copy.orderId] = .verified(nil)
      story.deliver("copied goods", of: copy)
      story.expect(order, .settled)
      story.expect(copy, .deliveredNotPaid, .deliveredNotPaid, .duplicateClaim)
    },
    Scenario("a commitment that is billed by the month", impossible: [.verifyReceipt: noField]) { story in
      let month = SampleProduct.vip.price(story.scene.amount.currency.code)
      let whole = Money(minorUnits: 12 * month.minorUnits, currency: month.currency)
      let other = Money(minorUnits: 2 * month.minorUnits, currency: month.currency)
      let amount = story.random.pick(month, whole, other)
      let order = story.sellPeriod(
        order: { $0.amount = amount },
        transaction: { record in
          record.details.billingPlanType = "MONTHLY"
          record.details.commitmentInfo = """
            {"billingPeriodNumber":1,"commitmentPrice":\(whole.milliunits),"totalBillingPeriods":12}
            """
        })
      story.expect(order, .settled)
      if amount == other { story.expect(.amountMismatch, on: order.orderId) }
    },
    Scenario("one of two Advanced Commerce items, by its SKU", impossible: [.verifyReceipt: noField]) { story in
      let (other, item) = (story.scene.id("shield"), story.scene.id("sword"))
      story.scene.product = item
      story.scene.world.products = [.init(productId: item, type: .consumable)]
      let record = story.scene.transaction { $0.productId = Identifier("\(other.text),\(item.text)") }
      let order = story.scene.order { $0.transactionId = record.transactionId }
      story.scene.signedProof(for: order, of: record)
      story.deliver(of: order)
      story.expect(order, .settled)
    },
    Scenario("a subscription bundle, whose parts have their own IDs", impossible: [.verifyReceipt: noField]) { story in
      let part = story.random.pick("T1", "T2")
      let id = story.scene.id(part)
      let order = story.sellPeriod(order: { $0.transactionId = id })
      story.addSecondID()
      for (number, part) in story.scene.world.transactions.suffix(2).enumerated() {
        story.scene.world.announcements[part.key] = Announcement(bundlePart: story.scene.id("part\(number + 1)"))
      }
      story.expect(order, .settled)
    },
    Scenario("a refund whose notification was lost", impossible: [.verifyReceipt: noFeed]) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(20...60)))
      let refund = Revocation(date: story.scene.time + .days(3), reason: 0)
      let order = story.sell(mustName: true, tellsAll: true, transaction: { $0.revocation = refund })
      story.announce(Announcement(isNotified: false))
      story.expect(order, .refundedStillDelivered, .refundedStillDelivered, .refundNotBooked)
    },
    Scenario("a refund whose date Apple states differently later", impossible: [.verifyReceipt: noFeed]) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(20...60)))
      let first = story.scene.time + .days(3)
      let refund = Revocation(date: first + .days(1), reason: 0)
      let order = story.sell(mustName: true, tellsAll: true, transaction: { $0.revocation = refund })
      story.announce(Announcement(firstRefund: (first, refund.date + .hours(5))))
      story.expect(order, .refundedStillDelivered, .refundedStillDelivered, .refundNotBooked)
    },
    Scenario("the client crashed after paying, Apple tells it late", impossible: [.verifyReceipt: noFeed]) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(3...20)))
      let token = story.token("6")
      let order = story.scene.order { ($0.appAccountToken, $0.status) = (token, .pending) }
      story.scene.transaction { $0.appAccountToken = .stated(token) }
      story.announce(Announcement(knownFrom: story.scene.time + .hours(Int64(story.random.number(2...60)))))
      story.expect(order, .paidNotDelivered, .paidNotDelivered)
    },
    Scenario("an ID that Apple knows days later", impossible: [.verifyReceipt: noFeed]) { story in
      story.scene.time = story.asOf - .days(Int64(story.random.number(3...20)))
      let record = story.scene.transaction()
      let order = story.scene.order { $0.transactionId = record.transactionId }
      story.scene.world.lookups[order.orderId] = .verified(nil)
      story.deliver(of: order)
      story.announce(Announcement(knownFrom: story.scene.time + .hours(Int64(story.random.number(2...60)))))
      story.expect(order, .settled)
    },
  ]
}

extension ScenarioFixture {
  /// Sells the first period of a subscription, which has not ended yet.
  fileprivate mutating func sellPeriod(
    order change: (inout Order) -> Void = { _ in }, transaction: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    sells(SampleProduct.vip)
    scene.time = asOf - .days(Int64(random.number(4...28)))
    let (line, expiry) = (scene.id("line"), scene.time + .days(30))
    return sell(
      "1", mustName: true, tellsAll: true, order: change,
      transaction: { record in
        (record.webOrderLineItemId, record.expiresDate, record.isRenewal) = (line, expiry, false)
        transaction(&record)
      })
  }

  /// Sets the course in which Apple tells of the newest transaction.
  fileprivate mutating func announce(_ announcement: Announcement) {
    guard let newest = scene.world.transactions.last else { return }
    scene.world.announcements[newest.key] = announcement
  }

  /// Adds the second transaction ID of the period that was sold last.
  @discardableResult
  fileprivate mutating func addSecondID() -> TransactionRecord {
    let first = scene.world.transactions.last
    return scene.transaction("T2") { record in
      (record.originalTransactionId, record.webOrderLineItemId) = (first?.transactionId, first?.webOrderLineItemId)
      (record.purchaseDate, record.originalPurchaseDate) = (first?.purchaseDate, first?.originalPurchaseDate)
      (record.expiresDate, record.isRenewal) = (first?.expiresDate, false)
    }
  }
}
