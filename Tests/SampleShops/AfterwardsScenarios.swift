import Reconciliation

extension Scenario {
  /// Events between the as-of and the reading of the tables.
  package static let afterwards: [Scenario] = [
    Scenario("paid, delivered only after the as-of", 2) { story in
      let order = story.buy()
      let delivery = Delivery(
        deliveryId: story.scene.id("later"), orderId: order.orderId, userId: order.userId,
        productId: order.productId, quantity: Int64(order.quantity), deliveredAt: story.afterwards)
      story.scene.world.later.deliveries.append(delivery)
      story.expect(order, .paidNotDelivered, .paidNotDelivered)
    },
    Scenario("taken back after the as-of", 2) { story in
      story.expect(story.sell(), .settled)
      story.scene.world.later.revocations[story.scene.id("delivery")] = story.afterwards
    },
    Scenario("the shop's row says since the as-of what does not fit what was paid then", 2) { story in
      let status = story.random.pick(OrderStatus.failed, .cancelled, .pending)
      let change = { (order: inout Order) in (order.status, order.isChangedAfterAsOf) = (status, true) }
      story.expect(story.sell(order: change), .settled)
    },
    Scenario("booked as refunded after the as-of, before Apple told of it", 2) { story in
      let order = story.sell(order: { ($0.status, $0.isChangedAfterAsOf) = (.refunded, true) })
      story.expect(order, .settled)
    },
    Scenario("verified after the as-of by a row that had neither payment nor goods", 2) { story in
      story.expect(story.scene.order { $0.isChangedAfterAsOf = true }, .void)
    },
    Scenario("the order for a payment is written after the as-of", 2) { story in
      let record = story.scene.transaction()
      story.scene.signedProof(for: nil, of: record)
      var order = Order(
        orderId: story.scene.id("later"), userId: story.scene.id("user"), productId: story.scene.product,
        quantity: story.scene.quantity, amount: story.scene.amount, status: .verified, createdAt: story.afterwards)
      order.transactionId = record.transactionId
      story.scene.world.later.orders.append(order)
      story.expect(.orphanPayment, on: record.transactionId)
    },
  ]
}

extension ScenarioFixture {
  fileprivate var afterwards: Instant { asOf + World.moment }
}
