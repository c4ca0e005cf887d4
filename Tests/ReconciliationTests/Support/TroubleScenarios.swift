import Reconciliation
import TestSupport

extension Scenario {
  /// Payment and goods that disagree.
  static let payments: [Scenario] = [
    Scenario("paid, not delivered") { story in
      let order = story.buy()
      if story.random.oneIn(2) { story.scene.delivery(of: order) { $0.revokedAt = Scene.asOf } }
      story.expect(order, .paidNotDelivered, .paidNotDelivered)
    },
    Scenario("partly delivered") { story in
      let order = story.buy(order: { $0.quantity = 3 }, transaction: { $0.quantity = 3 })
      story.scene.delivery(of: order) { $0.quantity = 2 }
      story.expect(order, .partlyDelivered, .partlyDelivered)
    },
    Scenario("delivered twice") { story in
      let order = story.sell()
      story.scene.delivery("surplus", of: order)
      story.expect(order, .settled, .deliveredTwice)
    },
    Scenario("delivered without any proof") { story in
      let order = story.scene.order()
      story.scene.delivery(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("verified without any proof") { story in
      story.expect(story.scene.order(), .void, .statusMismatch)
    },
    Scenario("delivered for an id that Apple does not know") { story in
      story.scene.time = Scene.asOf - .hours(25)
      let order = story.scene.order { $0.transactionId = "unknown" }
      story.scene.world.lookups[order.orderId] = .notFound()
      story.scene.delivery(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("a forged proof, believed") { story in
      let order = story.scene.order()
      story.scene.receipt(for: order, .rejected(.signatureInvalid))
      story.scene.delivery(of: order)
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
    Scenario("rubbish or Xcode, believed") { story in
      let order = story.scene.order()
      story.scene.receipt(for: order, .rejected(story.random.pick(.malformed, .xcode)))
      story.scene.delivery(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
    },
    Scenario("sandbox goods") { story in
      let order = story.sell(transaction: { $0.environment = .sandbox })
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .sandboxDelivered)
    },
    Scenario("sandbox without goods") { story in
      let order = story.buy(order: { $0.status = .failed }, transaction: { $0.environment = .sandbox })
      story.expect(order, .void)
    },
    Scenario("cancelled, yet paid") { story in
      let status = story.random.pick(OrderStatus.cancelled, .failed)
      let order = story.buy(order: { $0.status = status })
      if story.random.oneIn(2) {
        story.scene.delivery(of: order)
        story.expect(order, .settled, .cancelledButPaid)
      } else {
        story.expect(order, .paidNotDelivered, .paidNotDelivered, .cancelledButPaid)
      }
    },
    Scenario("settled, the shop still waits") { story in
      story.expect(story.sell(order: { $0.status = .pending }), .settled, .statusMismatch)
    },
    Scenario("silent for too long") { story in
      story.scene.time = Scene.asOf - .hours(Int64(story.random.number(49...2_000)))
      let order = story.scene.order()
      let silences: [ProofState] = [
        .neverChecked, .unanswered(.unreachable), .unanswered(.appleError), .review(.accountGone),
        .review(.contradiction),
      ]
      story.scene.receipt(for: order, silences[story.random.number(0...4)])
      if story.random.oneIn(2) { story.scene.delivery(of: order) }
      story.expect(order, .unconfirmed, .stuckUnconfirmed)
    },
  ]

  /// Who owns which payment.
  static let claims: [Scenario] = [
    Scenario("one payment for several orders") { story in
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
          story.scene.delivery("d\(number)", of: order)
          story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .duplicateClaim)
        } else {
          story.expect(order, .void, .duplicateClaim)
        }
      }
    },
    Scenario("one receipt sent for two orders, one payment on it") { story in
      let record = story.scene.transaction()
      let owner = story.scene.order("near")
      let early = story.scene.time - .hours(5)
      let other = story.scene.order("far") { $0.createdAt = early }
      for order in [owner, other] {
        story.scene.receipt("r" + order.orderId.text, for: order, .verified(.app), bringing: [record])
        story.scene.delivery("d" + order.orderId.text, of: order)
      }
      story.expect(owner, .settled)
      story.expect(other, .deliveredNotPaid, .deliveredNotPaid, .duplicateClaim)
    },
    Scenario("charged twice") { story in
      let order = story.sell("1")
      let second = story.scene.transaction("T2") { $0.purchaseDate = order.createdAt + .minutes(2) }
      story.scene.receipt("second", for: order, .verified(.app), bringing: [second])
      story.expect(order, .settled, .chargedTwice)
    },
    Scenario("another product, named") { story in
      let order = story.buy(
        mustName: true,
        order: { order in
          order.productId = "another"
          order.status = .failed
        })
      story.expect(order, .void, .productMismatch)
    },
    Scenario("another product, brought") { story in
      let record = story.scene.transaction { $0.productId = "another" }
      let order = story.scene.order { $0.status = .failed }
      story.scene.signedProof(for: order, of: record)
      story.expect(order, .void, .productMismatch)
      story.expect(.orphanPayment, on: record.transactionId)
    },
    Scenario("a payment in another app") { story in
      let order = story.sell(transaction: { $0.bundleId = "com.example.other" })
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid, .wrongBundle)
    },
    Scenario("another id than the one in the payload") { story in
      let record = story.scene.transaction()
      let order = story.scene.order { $0.transactionId = "invented" }
      story.scene.signedProof(for: order, of: record)
      story.scene.delivery(of: order)
      story.expect(order, .deliveredNotPaid, .deliveredNotPaid)
      story.expect(.orphanPayment, on: record.transactionId)
    },
    Scenario("family access sold") { story in
      story.expect(story.sell(transaction: { $0.ownership = .familyShared }), .void, .familySharedSale, .statusMismatch)
    },
  ]

  /// What Apple took back.
  static let refunds: [Scenario] = [
    Scenario("refunded, not booked") { story in
      let order = story.buy(transaction: { $0.revocation = Revocation(date: Scene.asOf - .hours(1)) })
      story.expect(order, .refunded, .refundNotBooked)
    },
    Scenario("refunded, still delivered") { story in
      let order = story.sell(
        order: { $0.status = .refunded }, transaction: { $0.revocation = Revocation(date: Scene.asOf - .hours(1)) })
      story.expect(order, .refundedStillDelivered, .refundedStillDelivered)
    },
    Scenario("delivered after the refund") { story in
      let order = story.buy(
        order: { $0.status = .refunded }, transaction: { $0.revocation = Revocation(date: Scene.asOf - .hours(2)) })
      story.scene.delivery(of: order) { $0.deliveredAt = Scene.asOf - .hours(1) }
      story.expect(order, .refundedStillDelivered, .refundedStillDelivered, .deliveredAfterRefund)
    },
    Scenario("refunded, the shop still waits") { story in
      let order = story.buy(
        order: { $0.status = .pending }, transaction: { $0.revocation = Revocation(date: Scene.asOf - .hours(1)) })
      story.expect(order, .refunded, .statusMismatch)
    },
    Scenario("prorated") { story in
      let status = story.random.pick(OrderStatus.verified, .refunded)
      let percentage = Int32(story.random.number(1...99_999))
      let order = story.sell(
        order: { $0.status = status },
        transaction: { record in
          record.revocation = Revocation(
            date: Scene.asOf - .hours(1), percentage: percentage, type: "REFUND_PRORATED", reason: 1)
        })
      story.expect(order, .settled, .partialRefund)
    },
    Scenario("refunded in the shop only") { story in
      story.expect(story.sell(order: { $0.status = .refunded }), .settled, .refundOnlyHere)
    },
    Scenario("a refund that was reversed, the goods still gone") { story in
      let order = story.buy(transaction: { $0.revocationWithdrawnDate = Scene.asOf - .hours(1) })
      story.scene.delivery(of: order) { $0.revokedAt = Scene.asOf - .hours(2) }
      story.expect(order, .paidNotDelivered, .paidNotDelivered, .refundReversedNotReinstated)
    },
  ]
}
