import Reconciliation
import TestSupport

extension Scenario {
  /// What looks odd at first sight and is right.
  static let ordinary: [Scenario] = [
    Scenario("paid and delivered") { story in
      story.expect(story.sell(), .settled)
    },
    Scenario("delivered in two parcels") { story in
      let order = story.buy(mustName: true, order: { $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      story.scene.delivery("d1", of: order) { $0.quantity = 1 }
      story.scene.delivery("d2", of: order) { $0.quantity = 2 }
      story.expect(order, .settled)
    },
    Scenario("taken back by mistake and delivered again") { story in
      let order = story.buy()
      let later = story.later(than: order)
      story.scene.delivery("d1", of: order) { $0.revokedAt = later }
      story.scene.delivery("d2", of: order) { $0.deliveredAt = later }
      story.expect(order, .settled)
    },
    Scenario("paid a moment ago") { story in
      story.scene.time = Scene.asOf - .minutes(20)
      story.expect(story.buy(), .inFlight)
    },
    Scenario("ordered a moment ago") { story in
      story.scene.time = Scene.asOf - .minutes(20)
      story.expect(story.scene.order { $0.status = .pending }, .unconfirmed)
    },
    Scenario("given up before paying") { story in
      let status = story.random.pick(OrderStatus.pending, .failed, .cancelled)
      story.expect(story.scene.order { $0.status = status }, .void)
    },
    Scenario("refunded, taken back and booked") { story in
      let order = story.buy(
        order: { $0.status = .refunded }, transaction: { $0.revocation = Revocation(date: Scene.asOf - .hours(1)) })
      story.scene.delivery(of: order) { $0.revokedAt = Scene.asOf - .minutes(1) }
      story.expect(order, .refunded)
    },
    Scenario("a refund that was reversed, the goods given back") { story in
      let order = story.buy(transaction: { $0.revocationWithdrawnDate = Scene.asOf - .hours(1) })
      story.scene.delivery("d1", of: order) { $0.revokedAt = Scene.asOf - .hours(2) }
      story.scene.delivery("d2", of: order)
      story.expect(order, .settled)
    },
    Scenario("an offer explains the price") { story in
      let order = story.sell(transaction: { record in
        record.priceMilliunits = 0
        record.hasOffer = true
      })
      story.expect(order, .settled)
    },
    Scenario("the price is not told") { story in
      let order = story.sell(transaction: { record in
        record.priceMilliunits = nil
        record.currency = nil
      })
      story.expect(order, .settled)
    },
    Scenario("a tester in the sandbox") { story in
      story.scene.world.rules.testUsers = [story.scene.id("tester")]
      let order = story.buy(by: "tester", transaction: { $0.environment = .sandbox })
      if story.random.oneIn(2) { story.scene.delivery(of: order) }
      story.expect(order, .sandbox)
    },
    Scenario("a tester who pays") { story in
      story.scene.world.rules.testUsers = [story.scene.id("tester")]
      story.expect(story.sell(by: "tester"), .settled)
    },
    Scenario("one receipt covers several orders") { story in
      let count = story.random.number(2...5)
      let step = Span.hours(Int64(story.random.number(1...20)))
      var records: [TransactionRecord] = []
      for number in 0..<count {
        records.append(story.scene.transaction("T\(number)"))
        let order = story.scene.order("order\(number)")
        story.scene.delivery("delivery\(number)", of: order)
        // Every device sends all that it has.
        story.scene.receipt("receipt\(number)", for: order, .verified(.app), bringing: records)
        story.expect(order, .settled)
        story.scene.time = story.scene.time + step
        if story.scene.time > Scene.asOf - .hours(2) { break }
      }
    },
    Scenario("a restore") { story in
      let order = story.sell()
      let first = story.scene.id("T")
      let restored = story.scene.transaction("T9") { record in
        record.originalTransactionId = first
      }
      story.scene.receipt("restore", for: nil, .verified(.app), bringing: [restored])
      story.expect(order, .settled)
    },
    Scenario("a subscription that was renewed, each period booked") { story in
      story.scene.time = Scene.asOf - .days(50)
      let first = story.scene.id("T1")
      let order = story.sell("1", transaction: { $0.expiresDate = Scene.asOf - .days(20) })
      story.scene.time = Scene.asOf - .days(20)
      let renewal = story.sell(
        "2", mustName: true,
        transaction: { record in
          record.originalTransactionId = first
          record.isRenewal = true
          record.expiresDate = Scene.asOf + .days(10)
        })
      story.expect(order, .settled)
      story.expect(renewal, .settled)
    },
    Scenario("a finished consumable has left the receipt") { story in
      story.scene.time = Scene.asOf - .hours(30)
      let order = story.scene.order()
      story.scene.receipt(for: order, .verified(.app)) { $0.state.bundleId = Scene.bundle }
      story.scene.delivery(of: order)
      story.expect(order, .unconfirmed)
    },
    Scenario("Apple is silent tonight") { story in
      story.scene.time = Scene.asOf - .hours(30)
      let order = story.scene.order()
      let reason = story.random.pick(PaymentReason.unreachable, .rateLimited, .appleError, .noRoots)
      story.scene.receipt(for: order, .unanswered(reason))
      story.scene.delivery(of: order)
      story.expect(order, .unconfirmed)
    },
    Scenario("Apple does not know the id yet") { story in
      story.scene.time = Scene.asOf - .hours(20)
      let order = story.scene.order { $0.transactionId = "unknown" }
      story.scene.world.lookups[order.orderId] = .notFound()
      story.scene.delivery(of: order)
      story.expect(order, .unconfirmed)
    },
    Scenario("family access for nothing") { story in
      story.scene.amount = .of(0)
      let order = story.sell(order: { $0.status = .pending }, transaction: { $0.ownership = .familyShared })
      story.expect(order, .void)
    },
    Scenario("the account token in other spelling") { story in
      let token = story.token("a")
      let order = story.sell(
        order: { $0.appAccountToken = token }, transaction: { $0.appAccountToken = .says(token.uppercased()) })
      story.expect(order, .settled)
    },
    Scenario("the channel carries no account token") { story in
      let token = story.token("b")
      let order = story.sell(order: { $0.appAccountToken = token }, transaction: { $0.appAccountToken = .silent })
      story.expect(order, .settled)
    },
    Scenario("clocks differ a little") { story in
      let order = story.buy()
      story.scene.delivery(of: order) { $0.deliveredAt = order.createdAt - .minutes(4) }
      story.expect(order, .settled)
    },
    Scenario("charged twice, once refunded") { story in
      let order = story.sell("1", mustName: true)
      let second = story.scene.transaction("T2") { $0.revocation = Revocation(date: Scene.asOf - .hours(1)) }
      story.scene.receipt("second", for: order, .verified(.app), bringing: [second])
      story.expect(order, .settled)
    },
  ]
}
