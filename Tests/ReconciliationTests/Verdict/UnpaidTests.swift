import Reconciliation
import Testing

@testable import SampleWorlds

/// What proves that an order is not paid, each proof beside the nearest case that proves nothing.
@Suite struct UnpaidTests {
  @Test(arguments: proofs + ids + claims + absence)
  func payment(row: Case<String>) {
    #expect(row.judgement?.payment == row.expected)
  }

  static let proofs: [Case<String>] = [
    Case("21003, and the signature does not contradict it", "unpaid signature_invalid") { scene in
      scene.receipt(for: scene.order(), .rejected(.signatureInvalid))
    },
    Case("21003 while the local check holds", "unconfirmed contradiction") { scene in
      scene.receipt(for: scene.order(), .review(.contradiction))
    },
    Case("a payload that is no receipt", "unpaid malformed") { scene in
      scene.receipt(for: scene.order(), .rejected(.malformed)) { $0.state.kind = .malformed }
    },
    Case("21002 about a payload that parses", "unconfirmed apple_error") { scene in
      scene.receipt(for: scene.order(), .unanswered(.appleError)) { $0.state.appleStatus = 21002 }
    },
    Case("a reason that proves something, without a usable answer", "unconfirmed apple_error") { scene in
      scene.receipt(for: scene.order(), .unanswered(.malformed))
    },
    Case("signed by Xcode", "unpaid xcode") { scene in
      scene.receipt(for: scene.order(), .rejected(.xcode))
    },
    Case("Xcode's transaction on record", "unpaid xcode") { scene in
      let record = scene.transaction { $0.environment = .xcode }
      scene.signedProof(for: scene.order(), of: record)
    },
    Case("LocalTesting's transaction, named", "unpaid xcode") { scene in
      scene.paidOrder(transaction: { $0.environment = .localTesting })
    },
    Case("a receipt of another app that lists nothing", "unpaid wrong_bundle") { scene in
      scene.receipt(for: scene.order(), .verified(.app)) { $0.state.bundleId = "com.example.other" }
    },
    Case("a receipt of our app that lists nothing", "unconfirmed not_in_receipt") { scene in
      scene.receipt(for: scene.order(), .verified(.app)) { $0.state.bundleId = ShopFixture.bundle }
    },
    Case("a purchase in another app", "unpaid wrong_bundle") { scene in
      let record = scene.transaction { $0.bundleId = "com.example.other" }
      scene.signedProof(for: scene.order(), of: record)
    },
    Case("a purchase in another app beside a receipt of that app", "unpaid wrong_bundle") { scene in
      let order = scene.order()
      let record = scene.transaction { $0.bundleId = "com.example.other" }
      scene.signedProof("r1", for: order, of: record)
      scene.receipt("r2", for: order, .verified(.app)) { $0.state.bundleId = "com.example.other" }
    },
    Case("a purchase in another app beside an empty receipt of ours", "unconfirmed not_in_receipt") { scene in
      let order = scene.order()
      scene.signedProof("r1", for: order, of: scene.transaction { $0.bundleId = "com.example.other" })
      scene.receipt("r2", for: order, .verified(.app)) { $0.state.bundleId = ShopFixture.bundle }
    },
    Case("the same, and of it another product is told", "unconfirmed not_in_receipt") { scene in
      let order = scene.order()
      scene.signedProof("r1", for: order, of: scene.transaction { $0.bundleId = "com.example.other" })
      let other = scene.transaction("T2") { $0.productId = "gems.500" }
      scene.receipt("r2", for: order, .verified(.app), bringing: [other])
    },
    Case("Xcode's transaction beside a receipt of Apple's that tells nothing", "unconfirmed not_in_receipt") { scene in
      let order = scene.order()
      scene.signedProof("r1", for: order, of: scene.transaction { $0.environment = .xcode })
      scene.receipt("r2", for: order, .verified(.app)) { receipt in
        (receipt.state.environment, receipt.state.bundleId) = (.production, ShopFixture.bundle)
      }
    },
    Case("the named purchase is in another app", "unpaid wrong_bundle") { scene in
      scene.paidOrder(transaction: { $0.bundleId = "com.example.other" })
    },
    Case("a purchase in one app, one receipt of another app", "paid") { scene in
      let order = scene.order()
      scene.signedProof(for: order, of: scene.transaction())
      scene.receipt("other", for: order, .verified(.app)) { $0.state.bundleId = "com.example.other" }
    },
    Case("the order's own app of several", "paid") { scene in
      scene.world.rules.bundleIds.append("com.example.second")
      scene.paidOrder({ $0.bundleId = "com.example.second" }, transaction: { $0.bundleId = "com.example.second" })
    },
    Case("another of our apps", "unpaid wrong_bundle") { scene in
      scene.world.rules.bundleIds.append("com.example.second")
      scene.paidOrder({ $0.bundleId = "com.example.second" })
    },
    Case("signed for another app, while Apple is silent", "unpaid wrong_bundle") { scene in
      let record = scene.transaction { $0.bundleId = "com.example.other" }
      scene.receipt(for: scene.order(), .unanswered(.unreachable), bringing: [record]) {
        $0.state.signedTransactionId = "T1"
      }
    },
    Case("an app receipt of another app, while Apple is silent", "unconfirmed unreachable") { scene in
      let record = scene.transaction { $0.bundleId = "com.example.other" }
      scene.receipt(for: scene.order(), .unanswered(.unreachable), bringing: [record])
    },
    Case("other products, and an id that Apple does not know yet", "unconfirmed not_found_yet") { scene in
      let order = scene.order { $0.createdAt = ShopFixture.asOf - .hours(3) }
      scene.signedProof("r1", for: order, of: scene.transaction { $0.productId = "gems.500" })
      scene.receipt("r2", for: order, .notFound())
    },
    Case("a payload that nobody can read beside one of another app", "unconfirmed not_in_receipt") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.signedProof("r2", for: order, of: scene.transaction { $0.bundleId = "com.example.other" })
    },
    Case("the same without a name", "unpaid wrong_bundle") { scene in
      let order = scene.order()
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.signedProof("r2", for: order, of: scene.transaction { $0.bundleId = "com.example.other" })
    },
    Case("the same, and Apple does not know the id", "unpaid not_found") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.signedProof("r2", for: order, of: scene.transaction { $0.bundleId = "com.example.other" })
      scene.world.lookups[order.orderId] = .notFound()
    },
    Case("a payload that nobody can read beside a purchase of another id", "unconfirmed not_in_receipt") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.signedProof("r2", for: order, of: scene.transaction { $0.productId = "gems.500" })
    },
    Case("the same, and Apple confirms the id", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.transaction("T9")
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.signedProof("r2", for: order, of: scene.transaction { $0.productId = "gems.500" })
      scene.world.lookups[order.orderId] = .verified(nil)
    },
    Case("a payload that nobody can read beside a forged one", "unconfirmed unreadable") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.receipt("r2", for: order, .rejected(.signatureInvalid))
    },
    Case("the same, and Apple does not know the id", "unpaid signature_invalid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.receipt("r2", for: order, .rejected(.signatureInvalid))
      scene.world.lookups[order.orderId] = .notFound()
    },
    Case("the same without a name", "unpaid signature_invalid") { scene in
      let order = scene.order()
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.receipt("r2", for: order, .rejected(.signatureInvalid))
    },
    Case("a payload that nobody can read beside Xcode's", "unconfirmed unreadable") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.receipt("r2", for: order, .rejected(.xcode))
    },
    Case("a payload that nobody can read beside one that Apple does not know", "unpaid not_found") { scene in
      let order = scene.order()
      scene.receipt("r1", for: order, .rejected(.malformed))
      scene.receipt("r2", for: order, .notFound())
    },
    Case("nothing that anybody can read, and an id that nobody asks about", "unconfirmed unreadable") { scene in
      scene.receipt("r1", for: scene.order { $0.transactionId = "T9" }, .rejected(.malformed))
    },
    Case("a forged proof beside an unanswered one", "unconfirmed unreachable") { scene in
      let order = scene.order()
      scene.receipt("forged", for: order, .rejected(.signatureInvalid))
      scene.receipt("silent", for: order, .unanswered(.unreachable))
    },
    Case("a forged proof beside a genuine one", "paid") { scene in
      let order = scene.order()
      scene.receipt("forged", for: order, .rejected(.signatureInvalid))
      scene.signedProof("genuine", for: order, of: scene.transaction())
    },
  ]

  static let ids: [Case<String>] = [
    Case("the named transaction is another product", "unpaid product_mismatch") { scene in
      scene.paidOrder({ $0.productId = "gems.500" })
    },
    Case("all that its app receipt lists is other products", "unconfirmed not_in_receipt") { scene in
      let records = [scene.transaction("T1"), scene.transaction("T2")]
      let order = scene.order { $0.productId = "gems.500" }
      scene.receipt(for: order, .verified(.app), bringing: records)
    },
    Case("what its old receipt and its signed transaction are about is other products", "unpaid product_mismatch") {
      scene in
      let order = scene.order { $0.productId = "gems.500" }
      scene.receipt("old", for: order, .verified(.transaction), bringing: [scene.transaction("T1")])
      scene.signedProof("signed", for: order, of: scene.transaction("T2"))
    },
    Case("a signed transaction of another product beside an app receipt", "unconfirmed not_in_receipt") { scene in
      let order = scene.order { $0.productId = "gems.500" }
      scene.receipt("app", for: order, .verified(.app), bringing: [])
      scene.signedProof("signed", for: order, of: scene.transaction("T2"))
    },
    Case("a signed transaction of another product beside a forged app receipt", "unpaid product_mismatch") { scene in
      let order = scene.order { $0.productId = "gems.500" }
      scene.receipt("app", for: order, .rejected(.signatureInvalid)) { $0.state.kind = .app }
      scene.signedProof("signed", for: order, of: scene.transaction("T2"))
    },
    Case("one of them is the product, too long ago to be this purchase", "unconfirmed not_in_receipt") { scene in
      let old = scene.transaction("T1") { $0.purchaseDate = ordered - .days(30) }
      let other = scene.transaction("T2") { $0.productId = "gems.500" }
      scene.receipt(for: scene.order(), .verified(.app), bringing: [old, other])
    },
    Case("the stated ID is not the one in its own payload, which pays it", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.signedProof(for: order, of: scene.transaction("T1"))
    },
    Case("the same, and Apple knows both", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.transaction("T9")
      scene.signedProof(for: order, of: scene.transaction("T1"))
    },
    Case("the stated ID is unknown, and its own payload is another order's", "unpaid id_mismatch") { scene in
      let record = scene.transaction("T1")
      let owner = scene.order("owner")
      scene.signedProof("first", for: owner, of: record)
      scene.delivery("d1", of: owner)
      let order = scene.order { $0.transactionId = "T9" }
      scene.signedProof(for: order, of: record)
    },
    Case("the signed payload that holds another id was sent by somebody else", "paid") { scene in
      let order = scene.order { $0.transactionId = "T9" }
      scene.transaction("T9")
      let other = scene.transaction("T1") { $0.productId = "gems.500" }
      scene.receipt(for: order, .verified(.signed, id: "T1"), bringing: [other]) { $0.userId = "stranger" }
    },
    Case("the order states the first purchase of the renewal in its payload", "paid") { scene in
      let renewal = scene.transaction("T2") {
        $0.originalTransactionId = "T1"
        $0.isRenewal = true
      }
      scene.signedProof(for: scene.order { $0.transactionId = "T1" }, of: renewal)
    },
    Case("two payloads, one of them holds the named id", "paid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.signedProof("first", for: order, of: scene.transaction("T1"))
      scene.signedProof("second", for: order, of: scene.transaction("T2") { $0.productId = "gems.500" })
    },
    Case("an app receipt lists the named id, a payload holds another", "paid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt("app", for: order, .verified(.app), bringing: [scene.transaction("T1")])
      scene.signedProof("signed", for: order, of: scene.transaction("T2"))
    },
    Case("a forged payload holds another id", "paid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt("app", for: order, .verified(.app), bringing: [scene.transaction("T1")])
      scene.receipt("forged", for: order, .rejected(.signatureInvalid)) { $0.state.signedTransactionId = "T9" }
    },
    Case("nothing but a forged payload, and somebody's receipt brings the named one", "unpaid signature_invalid") {
      scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1")
      scene.receipt(for: order, .rejected(.signatureInvalid)) { $0.state.signedTransactionId = "T9" }
    },
    Case("nothing but a forged payload, and Apple, asked about the named one, confirms it", "paid") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1")
      scene.receipt(for: order, .rejected(.signatureInvalid)) { $0.state.signedTransactionId = "T9" }
      scene.world.lookups[order.orderId] = .verified(nil)
    },
    Case("nothing but a forged payload, and Apple was not asked about the named one yet", "unconfirmed never_checked") {
      scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, .rejected(.signatureInvalid))
      scene.world.lookups[order.orderId] = .neverChecked
    },
    Case("nothing but a forged payload, and of the named one two things were said", "unpaid signature_invalid") {
      scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.transaction("T1") { $0.isContradictory = true }
      scene.receipt(for: order, .rejected(.signatureInvalid))
      scene.world.lookups[order.orderId] = .verified(nil)
    },
    Case("Apple knows the id nowhere", "unpaid not_found") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.world.lookups[order.orderId] = .notFound()
    },
    Case("one microsecond older than the grace", "unpaid not_found") { scene in
      let order = scene.order {
        $0.transactionId = "T1"
        $0.createdAt = ShopFixture.asOf - .hours(72) - .microsecond
      }
      scene.world.lookups[order.orderId] = .notFound()
    },
    Case("as old as the grace", "unconfirmed not_found_yet") { scene in
      let order = scene.order {
        $0.transactionId = "T1"
        $0.createdAt = ShopFixture.asOf - .hours(72)
      }
      scene.world.lookups[order.orderId] = .notFound()
    },
    Case("not known when the order was young, and not asked since", "unconfirmed not_found_yet") { scene in
      let order = scene.order { $0.transactionId = "T1" }
      scene.world.lookups[order.orderId] = .notFound(at: order.createdAt + .hours(2))
    },
    Case("a receipt that Apple was asked about by its id, in vain", "unpaid not_found") { scene in
      scene.receipt(for: scene.order(), .notFound())
    },
    Case("the same within the grace", "unconfirmed not_found_yet") { scene in
      scene.receipt(for: scene.order { $0.createdAt = ShopFixture.asOf - .hours(3) }, .notFound())
    },
  ]

  static let claims: [Case<String>] = [
    Case("a nearer order states the same transaction", "unpaid duplicate") { scene in
      scene.paidOrder({ $0.createdAt = ordered + .hours(1) }, transaction: { $0.purchaseDate = ordered })
      scene.order("nearer") {
        $0.transactionId = "T1"
        $0.createdAt = ordered - .microsecond
      }
    },
    Case("a later order names the same transaction", "paid") { scene in
      scene.paidOrder()
      scene.order("later") {
        $0.transactionId = "T1"
        $0.createdAt = ordered + .microsecond
      }
    },
    Case("others own all that its receipt lists", "unpaid duplicate") { scene in
      let record = scene.transaction()
      scene.receipt(
        for: scene.order { $0.createdAt = ordered + .hours(1) }, .verified(.app), bringing: [record])
      scene.order("other") { $0.transactionId = "T1" }
    },
    Case("others own all but one", "paid") { scene in
      let records = [scene.transaction("T1"), scene.transaction("T2")]
      scene.receipt(for: scene.order(), .verified(.app), bringing: records)
      scene.order("other") { $0.transactionId = "T1" }
    },
    Case("others own what is known, and a receipt is unanswered", "unconfirmed rate_limited") { scene in
      let order = scene.order { $0.createdAt = ordered + .hours(1) }
      scene.receipt(for: order, .verified(.app), bringing: [scene.transaction()])
      scene.receipt("silent", for: order, .unanswered(.rateLimited))
      scene.order("other") { $0.transactionId = "T1" }
    },
    Case("the owner may still turn out to own another", "unconfirmed awaiting_evidence") { scene in
      let record = scene.transaction()
      scene.receipt(for: scene.order { $0.createdAt = ordered - .hours(1) }, .verified(.app), bringing: [record])
      let nearer = scene.order("nearer")
      scene.receipt("r2", for: nearer, .verified(.app), bringing: [record])
      scene.receipt("r3", for: nearer, .neverChecked)
    },
    Case("the owner's proof of this one purchase waits for news only", "unpaid duplicate") { scene in
      let record = scene.transaction()
      scene.signedProof(for: scene.order { $0.createdAt = ordered - .hours(1) }, of: record)
      let nearer = scene.order("nearer")
      scene.receipt("r2", for: nearer, .unanswered(.unreachable), bringing: [record]) {
        $0.state.signedTransactionId = "T1"
      }
    },
    Case("a sandbox purchase", "unpaid sandbox") { scene in
      scene.paidOrder(transaction: { $0.environment = .sandbox })
    },
    Case("a sandbox purchase, and a receipt is unanswered", "unconfirmed unreachable") { scene in
      let order = scene.order()
      scene.signedProof(for: order, of: scene.transaction { $0.environment = .sandbox })
      scene.receipt("silent", for: order, .unanswered(.unreachable))
    },
    Case("a sandbox purchase beside a production one", "paid") { scene in
      let order = scene.order()
      scene.signedProof("r1", for: order, of: scene.transaction("T1") { $0.environment = .sandbox })
      scene.signedProof("r2", for: order, of: scene.transaction("T2"))
    },
    Case("access through the family", "unpaid family_shared") { scene in
      scene.paidOrder(transaction: { $0.ownership = .familyShared })
    },
    Case("access through the family, taken away", "unpaid family_shared") { scene in
      scene.paidOrder(transaction: { $0.revocation = Revocation(date: ShopFixture.asOf, type: "FAMILY_REVOKE") })
    },
    Case("access through the family, not named", "unpaid family_shared") { scene in
      scene.signedProof(for: scene.order(), of: scene.transaction { $0.ownership = .familyShared })
    },
    Case("the user's own purchase", "paid") { scene in
      scene.paidOrder(transaction: { $0.ownership = .purchased })
    },
  ]

  static let absence: [Case<String>] = [
    Case("verified without receipt and id", "unpaid no_evidence") { $0.order() },
    Case("pending without receipt and id", "unpaid never_paid") { $0.order { $0.status = .pending } },
    Case("failed without receipt and id", "unpaid never_paid") { $0.order { $0.status = .failed } },
    Case("cancelled without receipt and id", "unpaid never_paid") { $0.order { $0.status = .cancelled } },
    Case("refunded without receipt and id", "unpaid never_paid") { $0.order { $0.status = .refunded } },
    Case("one microsecond older than the grace", "unpaid no_evidence") { scene in
      scene.order { $0.createdAt = ShopFixture.asOf - .hours(1) - .microsecond }
    },
    Case("as old as the grace", "unconfirmed awaiting_evidence") { scene in
      scene.order { $0.createdAt = ShopFixture.asOf - .hours(1) }
    },
    Case("a token, and notifications known only until the hour after the order", "unconfirmed awaiting_evidence") {
      $0.orderWithToken(salesKnownUntil: ordered + .hours(1) - .microsecond)
    },
    Case("a token, and notifications known beyond it", "unpaid no_evidence") {
      $0.orderWithToken(salesKnownUntil: ordered + .hours(1))
    },
    Case("a token, and an app without notifications", "unpaid no_evidence") { $0.orderWithToken(salesKnownUntil: nil) },
    Case("no token, and notifications that are not known", "unpaid no_evidence") { scene in
      scene.order { $0.createdAt = ordered }
      scene.world.rules.salesKnownUntil[scene.world.rules.bundleIds[0]] = ordered - .days(1)
    },
    Case("an id that nobody asked about", "unconfirmed never_checked") { $0.order { $0.transactionId = "T1" } },
    Case("a receipt that nobody asked about", "unconfirmed never_checked") { scene in
      scene.receipt(for: scene.order(), .neverChecked)
    },
    Case("a receipt row that breaks the contract counts for nothing", "unpaid no_evidence") { scene in
      scene.receipt(for: scene.order(), .verified(.app), bringing: [scene.transaction()]) { $0.defect = "no status" }
    },
  ]

  /// When the scenes play.
  private static let ordered = ShopFixture.asOf - .days(4)
}

extension ShopFixture {
  fileprivate mutating func orderWithToken(salesKnownUntil: Instant?) {
    order {
      $0.createdAt = ShopFixture.asOf - .days(4)
      $0.appAccountToken = "6f1c1a1e-0000-4000-8000-000000000001"
    }
    world.rules.salesKnownUntil[world.rules.bundleIds[0]] = salesKnownUntil
  }
}
