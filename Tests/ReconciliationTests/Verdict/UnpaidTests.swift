import Reconciliation
import Testing

@testable import SampleWorlds

/// Orders that are proven unpaid, each case beside a similar one without a proof.
@Suite struct UnpaidTests {
  @Test("An order is unpaid for a proven reason only", arguments: proofs + ids + claims + absence)
  func payment(row: Case<String>) {
    #expect(row.judgement?.payment == row.expected)
  }

  static let proofs: [Case<String>] = [
    Case("21003, and the offline check does not contradict it", "unpaid signature_invalid") { $0.order(with: .forged) },
    Case("21003 although the offline check verifies the signature", "unconfirmed contradiction") {
      $0.order(with: .init(.review(.contradiction)))
    },
    Case("a payload that is no receipt", "unpaid malformed") {
      $0.order(with: .init(.rejected(.malformed)) { $0.state.kind = .malformed })
    },
    Case("21002 for a payload that parses", "unconfirmed apple_error") {
      $0.order(with: .init(.unanswered(.appleError)) { $0.state.appleStatus = 21002 })
    },
    Case("an unanswered check with a reason that could prove something", "unconfirmed apple_error") {
      $0.order(with: .init(.unanswered(.malformed)))
    },
    Case("signed by Xcode", "unpaid xcode") { $0.order(with: .init(.rejected(.xcode))) },
    Case("a signed proof of a transaction in Xcode", "unpaid xcode") {
      $0.order(with: .signed($0.transaction { $0.environment = .xcode }))
    },
    Case("a stated transaction in LocalTesting", "unpaid xcode") { $0.paid { $0.environment = .localTesting } },
    Case("an empty receipt of another app", "unpaid wrong_bundle") { $0.order(with: .empty(otherApp)) },
    Case("an empty receipt of our app", "unconfirmed not_in_receipt") { $0.order(with: .empty(ShopFixture.bundle)) },
    Case("a purchase in another app", "unpaid wrong_bundle") { $0.order(with: .signed($0.foreign())) },
    Case("a purchase in another app beside an empty receipt of ours", "unconfirmed not_in_receipt") {
      $0.order(with: .signed($0.foreign()), .empty(ShopFixture.bundle))
    },
    Case("a purchase in another app beside a receipt of another product", "unconfirmed not_in_receipt") {
      $0.order(with: .signed($0.foreign()), .list($0.different("T2")))
    },
    Case("a transaction in Xcode beside an empty production receipt", "unconfirmed not_in_receipt") {
      $0.order(
        with: .signed($0.transaction { $0.environment = .xcode }),
        .init(.verified(.app)) { ($0.state.environment, $0.state.bundleId) = (.production, ShopFixture.bundle) })
    },
    Case("the stated purchase is in another app", "unpaid wrong_bundle") { $0.paid { $0.bundleId = otherApp } },
    Case("a purchase in our app beside a receipt of another app", "paid") {
      $0.order(with: .signed($0.transaction()), .empty(otherApp))
    },
    Case("the second of two configured apps, on the order and the purchase", "paid") { scene in
      scene.world.rules.bundleIds.append("com.example.second")
      scene.paidOrder({ $0.bundleId = "com.example.second" }, transaction: { $0.bundleId = "com.example.second" })
    },
    Case("a purchase in another configured app than the order's", "unpaid wrong_bundle") { scene in
      scene.world.rules.bundleIds.append("com.example.second")
      scene.paidOrder({ $0.bundleId = "com.example.second" })
    },
    Case("a proof signed for another app, while Apple is down", "unpaid wrong_bundle") {
      $0.order(with: .init(.unanswered(.unreachable), of: [$0.foreign()]) { $0.state.signedTransactionId = "T1" })
    },
    Case("an app receipt of another app, while Apple is down", "unconfirmed unreachable") {
      $0.order(with: .init(.unanswered(.unreachable), of: [$0.foreign()]))
    },
    Case("another product, and an ID that Apple does not know yet", "unconfirmed not_found_yet") {
      $0.order(with: .signed($0.different()), .init(.notFound())) { $0.createdAt = asOf - .hours(3) }
    },
    Case("an unreadable payload and a stated ID, beside another app", "unconfirmed not_in_receipt") {
      $0.order(stating: "T9", with: .unreadable, .signed($0.foreign()))
    },
    Case("an unreadable payload without a stated ID, beside another app", "unpaid wrong_bundle") {
      $0.order(with: .unreadable, .signed($0.foreign()))
    },
    Case("an unreadable payload and an ID unknown to Apple, beside another app", "unpaid not_found") {
      $0.order(stating: "T9", with: .unreadable, .signed($0.foreign()), lookup: .notFound())
    },
    Case("an unreadable payload and a stated ID, beside another product", "unconfirmed not_in_receipt") {
      $0.order(stating: "T9", with: .unreadable, .signed($0.different()))
    },
    Case("an unreadable payload, and a confirmed ID of another product", "unconfirmed unreadable") {
      $0.receipt("r1", for: $0.paidOrder(transaction: { $0.productId = "gems.500" }), .rejected(.malformed))
    },
    Case("an unreadable payload, and a stated proof of another product", "unconfirmed unreadable") {
      $0.order(stating: "T1", with: .unreadable, .signed($0.different()))
    },
    Case("an unreadable payload and a confirmed ID, beside another product", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.transaction("T9")
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.signedProof("r2", for: order, of: scene.different())
      scene.world.lookups[order.orderId] = .verified(nil)
    },
    Case("an unreadable payload and a stated ID, beside a forged proof", "unconfirmed unreadable") {
      $0.order(stating: "T9", with: .unreadable, .forged)
    },
    Case("an unreadable payload and an unknown ID, beside a forged proof", "unpaid signature_invalid") {
      $0.order(stating: "T9", with: .unreadable, .forged, lookup: .notFound())
    },
    Case("an unreadable payload and a stated ID, beside a proof from Xcode", "unconfirmed unreadable") {
      $0.order(stating: "T9", with: .unreadable, .init(.rejected(.xcode)))
    },
    Case("an unreadable payload without a stated ID, beside an unknown proof", "unpaid not_found") {
      $0.order(with: .unreadable, .init(.notFound()))
    },
    Case("an unreadable payload and a stated ID without a look-up", "unconfirmed unreadable") {
      $0.order(stating: "T9", with: .unreadable)
    },
    Case("a forged proof beside an unanswered one", "unconfirmed unreachable") { $0.order(with: .forged, .unanswered) },
    Case("a forged proof beside a genuine one", "paid") { $0.order(with: .forged, .signed($0.transaction())) },
  ]

  static let ids: [Case<String>] = [
    Case("the stated transaction is of another product", "unpaid product_mismatch") {
      $0.paidOrder({ $0.productId = "gems.500" })
    },
    Case("an app receipt that lists other products only", "unconfirmed not_in_receipt") { scene in
      let records = [scene.transaction("T1"), scene.transaction("T2")]
      scene.order(with: .init(.verified(.app), of: records)) { $0.productId = "gems.500" }
    },
    Case("an old transaction receipt and a signed transaction, both of other products", "unpaid product_mismatch") {
      $0.order(with: .init(.verified(.transaction), of: [$0.transaction("T1")]), .signed($0.transaction("T2"))) {
        $0.productId = "gems.500"
      }
    },
    Case("a signed transaction of another product beside an app receipt", "unconfirmed not_in_receipt") { scene in
      let order = scene.order { $0.productId = "gems.500" }
      scene.receipt("app", for: order, .verified(.app), containing: [])
      scene.signedProof("signed", for: order, of: scene.transaction("T2"))
    },
    Case("a signed transaction of another product beside a forged app receipt", "unpaid product_mismatch") {
      $0.order(with: .init(.rejected(.signatureInvalid)) { $0.state.kind = .app }, .signed($0.transaction("T2"))) {
        $0.productId = "gems.500"
      }
    },
    Case("an app receipt of an old purchase, and another product", "unconfirmed not_in_receipt") {
      $0.order(with: .list($0.transaction("T1") { $0.purchaseDate = ordered - .days(30) }, $0.different("T2")))
    },
    Case("the order's own proof contains another ID, and Apple knows both", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.transaction("T9")
      scene.signedProof(for: order, of: scene.transaction("T1"))
    },
    Case("the stated ID is unknown, and another order owns the proven purchase", "unpaid id_mismatch") { scene in
      let record = scene.transaction("T1")
      scene.order("owner", with: .signed(record), isServed: true)
      scene.order(stating: "T9", with: .signed(record), lookup: .notFound())
    },
    Case("another user sent the signed payload with another ID", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.transaction("T9")
      scene.receipt(for: order, .verified(.signed, id: "T1"), containing: [scene.different("T1")]) {
        $0.userId = "stranger"
      }
    },
    Case("the order states the first purchase of the renewal in its payload", "paid") {
      $0.order(
        stating: "T1", with: .signed($0.transaction("T2") { ($0.originalTransactionId, $0.isRenewal) = ("T1", true) }))
    },
    Case("an app receipt lists the stated ID, a signed payload contains another", "paid") {
      $0.order(stating: "T1", with: .list($0.transaction("T1")), .signed($0.transaction("T2")))
    },
    Case("an app receipt lists the stated ID, a forged payload contains another", "paid") {
      $0.order(
        stating: "T1", with: .list($0.transaction("T1")),
        .init(.rejected(.signatureInvalid)) { $0.state.signedTransactionId = "T9" })
    },
    Case("a forged payload, and a stated ID that is known from another source", "unpaid signature_invalid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1")
      scene.receipt(for: order, .rejected(.signatureInvalid)) { $0.state.signedTransactionId = "T9" }
    },
    Case("a forged payload, and Apple confirms the stated ID", "paid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1")
      scene.receipt(for: order, .rejected(.signatureInvalid)) { $0.state.signedTransactionId = "T9" }
      scene.world.lookups[order.orderId] = .verified(nil)
    },
    Case("a forged payload, and the look-up of the stated ID was never made", "unconfirmed never_checked") {
      $0.order(stating: "T1", with: .forged, lookup: .neverChecked)
    },
    Case("a forged payload, and contradictory records about the stated ID", "unpaid signature_invalid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1") { $0.isContradictory = true }
      scene.receipt(for: order, .rejected(.signatureInvalid))
      scene.world.lookups[order.orderId] = .verified(nil)
    },
    Case("Apple does not know the stated ID", "unpaid not_found") { $0.order(stating: "T1", lookup: .notFound()) },
    Case("Apple does not know the ID, one microsecond after the grace", "unpaid not_found") {
      $0.order(stating: "T1", lookup: .notFound()) { $0.createdAt = asOf - .hours(72) - .microsecond }
    },
    Case("Apple does not know the ID, at the end of the grace", "unconfirmed not_found_yet") {
      $0.order(stating: "T1", lookup: .notFound()) { $0.createdAt = asOf - .hours(72) }
    },
    Case("Apple did not know the ID within the grace, and was not asked again", "unconfirmed not_found_yet") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.world.lookups[order.orderId] = .notFound(at: order.createdAt + .hours(2))
    },
    Case("a receipt whose transaction Apple does not know", "unpaid not_found") { $0.order(with: .init(.notFound())) },
    Case("a receipt whose transaction Apple does not know, within the grace", "unconfirmed not_found_yet") {
      $0.order(with: .init(.notFound())) { $0.createdAt = asOf - .hours(3) }
    },
  ]

  static let claims: [Case<String>] = [
    Case("a nearer order states the same transaction", "unpaid duplicate") { scene in
      scene.paidOrder({ $0.createdAt = ordered + .hours(1) }, transaction: { $0.purchaseDate = ordered })
      scene.order("nearer", stating: "T1") { $0.createdAt = ordered - .microsecond }
    },
    Case("another order owns the only purchase on the receipt", "unpaid duplicate") { scene in
      scene.order(hours: 1, with: .list(scene.transaction()))
      scene.order("other", stating: "T1")
    },
    Case("another order owns one of two purchases on the receipt", "paid") { scene in
      let records = [scene.transaction("T1"), scene.transaction("T2")]
      scene.order(with: .init(.verified(.app), of: records))
      scene.order("other", stating: "T1")
    },
    Case("another order owns the known purchase, and a receipt is unanswered", "unconfirmed rate_limited") { scene in
      scene.order(hours: 1, with: .list(scene.transaction()), .init(.unanswered(.rateLimited)))
      scene.order("other", stating: "T1")
    },
    Case("an unanswered receipt of the owner may contain another purchase", "unconfirmed awaiting_evidence") { scene in
      let record = scene.transaction()
      scene.order(hours: -1, with: .list(record))
      scene.order("nearer", with: .list(record), .init(.neverChecked))
    },
    Case("a sandbox purchase", "unpaid sandbox") { $0.paid { $0.environment = .sandbox } },
    Case("the owner's signed transaction is unanswered, and contains this purchase only", "unpaid duplicate") { scene in
      let record = scene.transaction()
      scene.order(hours: -1, with: .signed(record))
      scene.order(
        "nearer", with: .init(.unanswered(.unreachable), of: [record]) { $0.state.signedTransactionId = "T1" })
    },
    Case("a sandbox purchase, and a receipt is unanswered", "unconfirmed unreachable") {
      $0.order(with: .signed($0.transaction { $0.environment = .sandbox }), .unanswered)
    },
    Case("a sandbox purchase beside a production one", "paid") {
      $0.order(with: .signed($0.transaction("T1") { $0.environment = .sandbox }), .signed($0.transaction("T2")))
    },
    Case("access through the family", "unpaid family_shared") { $0.paid { $0.ownership = .familyShared } },
    Case("access through the family, taken away", "unpaid family_shared") {
      $0.paid { $0.revocation = Revocation(date: asOf, type: "FAMILY_REVOKE") }
    },
  ]

  static let absence: [Case<String>] = [
    Case("verified without receipt and id", "unpaid no_evidence") { $0.order() },
    Case("pending without receipt and id", "unpaid never_paid") { $0.order { $0.status = .pending } },
    Case("failed without receipt and id", "unpaid never_paid") { $0.order { $0.status = .failed } },
    Case("cancelled without receipt and id", "unpaid never_paid") { $0.order { $0.status = .cancelled } },
    Case("refunded without receipt and id", "unpaid never_paid") { $0.order { $0.status = .refunded } },
    Case("verified, one microsecond older than the grace", "unpaid no_evidence") {
      $0.order { $0.createdAt = asOf - .hours(1) - .microsecond }
    },
    Case("verified, at the grace", "unconfirmed awaiting_evidence") { $0.order { $0.createdAt = asOf - .hours(1) } },
    Case("an account token, and sales known for less than an hour after the order", "unconfirmed awaiting_evidence") {
      $0.orderWithToken(salesKnownUntil: ordered + .hours(1) - .microsecond)
    },
    Case("an account token, and sales known for an hour after the order", "unpaid no_evidence") {
      $0.orderWithToken(salesKnownUntil: ordered + .hours(1))
    },
    Case("a token, and an app without notifications", "unpaid no_evidence") { $0.orderWithToken(salesKnownUntil: nil) },
    Case("an account token, and an unread receipt for another order of the person", "unconfirmed awaiting_evidence") {
      $0.orderBesideUnreadReceipt(token: "a1", hours: 72)
    },
    Case("an account token, and an unread receipt for an order outside the window", "unpaid no_evidence") {
      $0.orderBesideUnreadReceipt(token: "a1", hours: 73)
    },
    Case("no account token, and an unread receipt for another order of the person", "unpaid no_evidence") {
      $0.orderBesideUnreadReceipt(token: nil, hours: 1)
    },
    Case(
      "a test user's sandbox proof of another app, and sales not known yet", "unconfirmed awaiting_evidence"
    ) { scene in
      scene.world.rules.testUsers = ["user"]
      scene.order(
        with: .signed(scene.transaction { ($0.environment, $0.bundleId) = (.sandbox, ShopFixture.otherBundle) })
      ) { $0.appAccountToken = "a1" }
      scene.world.rules.salesKnownUntil[scene.world.rules.bundleIds[0]] = ordered
    },
    Case("no account token, and sales known until before the order only", "unpaid no_evidence") { scene in
      scene.order { $0.createdAt = ordered }
      scene.world.rules.salesKnownUntil[scene.world.rules.bundleIds[0]] = ordered - .days(1)
    },
    Case("an earlier JWS, and sales unknown", "unconfirmed awaiting_evidence") {
      $0.orderAgain(salesKnownUntil: ordered)
    },
    Case("an earlier JWS, and sales known", "unpaid duplicate") { $0.orderAgain(salesKnownUntil: ordered + .hours(1)) },
    Case("the original ID in the second month, and sales not known yet", "unconfirmed awaiting_evidence") {
      $0.orderOfSecondMonth(salesKnownUntil: ordered)
    },
    Case("the original ID in the second month, and sales known", "unpaid duplicate") {
      $0.orderOfSecondMonth(salesKnownUntil: ordered + .hours(1))
    },
    Case("the original ID of an upgraded subscription, and sales not known yet", "unconfirmed awaiting_evidence") {
      $0.orderOfUpgrade(isUpgraded: nil, salesKnownUntil: ordered)
    },
    Case("the original ID of another subscription, and sales known", "unpaid product_mismatch") {
      $0.orderOfUpgrade(isUpgraded: nil, salesKnownUntil: ordered + .hours(1))
    },
    Case("an upgraded period without a known successor", "unconfirmed awaiting_evidence") {
      $0.orderOfUpgrade(isUpgraded: true, salesKnownUntil: ordered + .hours(1))
    },
    Case("an upgraded period, and a later one of a third product", "unpaid product_mismatch") { scene in
      scene.orderOfUpgrade(isUpgraded: true, salesKnownUntil: ordered + .hours(1))
      scene.transaction("T2") {
        ($0.originalTransactionId, $0.productId, $0.isRenewal, $0.expiresDate) = (
          "T1", "vip.third", true, asOf + .days(60)
        )
      }
    },
    Case("a stated ID that was never looked up", "unconfirmed never_checked") { $0.order(stating: "T1") },
    Case("a stated ID of a purchase after the as-of", "unconfirmed awaiting_evidence") {
      $0.order(stating: "T1", lookup: .verified(nil))
    },
    Case("a receipt that was never asked about", "unconfirmed never_checked") { $0.order(with: .init(.neverChecked)) },
    Case("a receipt row that breaks the contract is ignored", "unpaid no_evidence") {
      $0.order(with: .init(.verified(.app), of: [$0.transaction()]) { $0.defect = "no status" })
    },
  ]
}

extension ShopFixture {
  /// The order has an account token and the proof of the purchase that another order of the user owns.
  fileprivate mutating func orderAgain(salesKnownUntil: Instant) {
    let bought = time - .days(10)
    let record = transaction { ($0.appAccountToken, $0.purchaseDate) = (.stated("a1"), bought) }
    signedProof("first", for: order("first") { ($0.appAccountToken, $0.createdAt) = ("a1", bought) }, of: record)
    let again = order { $0.appAccountToken = "a1" }
    delivery(of: again)
    signedProof("again", for: again, of: record)
    world.rules.salesKnownUntil[world.rules.bundleIds[0]] = salesKnownUntil
  }

  /// The order states the original ID a month after the first period, which another order of the user owns.
  fileprivate mutating func orderOfSecondMonth(salesKnownUntil: Instant) {
    let bought = time - .days(30)
    let record = transaction { record in
      (record.purchaseDate, record.expiresDate, record.isRenewal) = (bought, bought + .days(30), false)
    }
    signedProof("first", for: order("first") { $0.createdAt = bought }, of: record)
    delivery(of: order { $0.transactionId = "T1" })
    world.rules.salesKnownUntil[world.rules.bundleIds[0]] = salesKnownUntil
  }

  /// The order states the original ID of a subscription to another product.
  fileprivate mutating func orderOfUpgrade(isUpgraded: Bool?, salesKnownUntil: Instant) {
    let bought = time - .days(10)
    transaction { record in
      (record.purchaseDate, record.expiresDate) = (bought, bought + .days(30))
      (record.productId, record.isUpgraded) = ("vip.basic", isUpgraded)
    }
    delivery(of: order { $0.transactionId = "T1" })
    world.rules.salesKnownUntil[world.rules.bundleIds[0]] = salesKnownUntil
  }

  /// The person has another order so many hours later, whose receipt Apple has not answered.
  fileprivate mutating func orderBesideUnreadReceipt(token: String?, hours: Int64) {
    let later = time + .hours(hours)
    order { $0.appAccountToken = token }
    receipt("unread", for: order("other") { $0.createdAt = later }, .unanswered(.unreachable))
  }

  fileprivate mutating func orderWithToken(salesKnownUntil: Instant?) {
    order {
      $0.createdAt = ShopFixture.asOf - .days(4)
      $0.appAccountToken = "6f1c1a1e-0000-4000-8000-000000000001"
    }
    world.rules.salesKnownUntil[world.rules.bundleIds[0]] = salesKnownUntil
  }
}
