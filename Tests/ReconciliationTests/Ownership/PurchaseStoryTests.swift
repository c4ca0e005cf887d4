import Reconciliation
import Testing

@testable import SampleWorlds

/// Ordinary purchases and attacks around one purchase. A row lists all findings of its scenario; an empty row expects
/// none.
@Suite struct PurchaseStoryTests {
  @Test(arguments: stories + shapes)
  func findings(row: Case<String>) { #expect(row.findings == row.expected) }

  static let stories: [Case<String>] = [
    Case("a copied proof", "delivered_not_paid on thief, duplicate_claim on thief") { scene in
      let record = scene.transaction()
      scene.posted("payer", by: "payer", record)
      scene.posted("thief", by: "thief", hours: 40, record)
    },
    Case("a late copy", "delivered_not_paid on thief, duplicate_claim on thief") { scene in
      scene.time = asOf - .days(40)
      let record = scene.transaction()
      scene.posted("payer", by: "payer", record)
      scene.posted("thief", by: "thief", hours: 30 * 24, record)
    },
    Case("a retry by one person", "nothing") { scene in
      let record = scene.transaction()
      scene.order("first", by: "ann", stating: "T1") { $0.status = .failed }
      scene.posted("second", by: "ann", hours: 1, record)
    },
    Case("a guest, then the account", "nothing") { scene in
      scene.world.rules.people = People(aliases: [("guest", "ann")])
      let record = scene.transaction()
      scene.order("of-guest", by: "guest", stating: "T1") { $0.status = .pending }
      scene.posted("of-account", by: "ann", hours: 2, record)
    },
    Case("crossed proofs of one user", "transaction_id_mismatch on first, transaction_id_mismatch on second") { scene in
      let (one, two) = (scene.transaction("T1"), scene.transaction("T2"))
      scene.posted("first", by: "ann", one) { $0.transactionId = "T2" }
      scene.posted("second", by: "ann", two) { $0.transactionId = "T1" }
    },
    Case(
      "proofs that are attached to each other's orders",
      "transaction_id_mismatch on first, transaction_id_mismatch on second"
    ) { scene in
      let (one, two) = (scene.transaction("T1"), scene.transaction("T2") { $0.productId = "gold" })
      let first = scene.order("first", by: "ann", stating: "T1", isServed: true)
      let second = scene.order("second", by: "bob", stating: "T2", isServed: true) { $0.productId = "gold" }
      scene.signedProof("proof of two", for: first, of: two)
      scene.signedProof("proof of one", for: second, of: one)
    },
    Case("a further proof of another purchase beside the own one", "nothing") { scene in
      let other = scene.transaction("T2") { $0.productId = "gold" }
      let own = scene.posted("own", by: "ann", scene.transaction("T1"))
      scene.posted("other", by: "ann", other) { $0.productId = "gold" }
      scene.signedProof("further proof", for: own, of: other)
    },
    Case("a junk ID beside a genuine proof", "transaction_id_mismatch") { scene in
      scene.posted("order", by: "ann", scene.transaction()) { $0.transactionId = "7000" }
      scene.world.lookups["order"] = .notFound()
    },
    Case("the original ID beside a genuine proof", "nothing") { scene in
      let renewal = scene.periods(2)[1]
      scene.order("first", by: "ann", stating: "T1", hours: -30 * 24, isServed: true)
      scene.posted("second", by: "ann", renewal) { $0.transactionId = "T1" }
    },
    Case("another account's abandoned order on a shared device", "nothing") { scene in
      let record = scene.transaction()
      scene.posted("payer", by: "payer", record)
      scene.order("abandoned", by: "other", with: .list(record)) { $0.status = .cancelled }
    },
    Case("Ask to Buy, approved after five days", "nothing") { scene in
      let time = scene.time
      scene.posted("order", by: "ann", hours: -5 * 24, scene.transaction(), deliveredAt: time + .minutes(1))
    },
    Case("a crash before posting", "paid_not_delivered") { scene in
      scene.transaction { $0.appAccountToken = .stated("a1") }
      scene.order("order", by: "ann") { ($0.appAccountToken, $0.status) = ("a1", .pending) }
    },
    Case("the original ID on the orders of the second and third period alone", "nothing") { scene in
      _ = scene.periods(3)
      scene.order("second", by: "ann", stating: "T1", hours: -30 * 24, isServed: true)
      scene.order("third", by: "ann", stating: "T1", isServed: true)
    },
    Case("a first period that no order states", "orphan_payment on T1") { scene in
      _ = scene.periods(2)
      scene.order("second", by: "ann", stating: "T2", isServed: true)
    },
    Case("the original ID and a nearer period on one order alone", "nothing") { scene in
      _ = scene.periods(2)
      scene.order(by: "ann", stating: "T1", isServed: true)
    },
    Case(
      "the original ID and a nearer period that Apple refunded", "refund_not_booked, refunded_still_delivered"
    ) { scene in
      _ = scene.periods(2) { $0.revocation = Revocation(date: asOf - .hours(5), type: "REFUND_FULL") }
      scene.order(by: "ann", stating: "T1", isServed: true)
    },
    Case(
      "the original ID, and the nearer period is another account's", "purchase_predates_order, wrong_user on other"
    ) { scene in
      let later = scene.periods(2)[1]
      scene.order(by: "ann", stating: "T1", isServed: true)
      scene.posted("other", by: "bob", later)
    },
    Case("a resubscription by the original ID", "nothing") { scene in
      _ = scene.periods(2) { $0.isRenewal = false }
      scene.order("first", by: "ann", stating: "T1", hours: -30 * 24, isServed: true)
      scene.order("again", by: "ann", stating: "T1", isServed: true)
    },
    Case("an upgrade by the original ID", "nothing") { scene in
      let upgraded = scene.time
      _ = scene.periods(2) { ($0.isRenewal, $0.productId, $0.purchaseDate) = (false, "gold", upgraded) }
      scene.order("first", by: "ann", stating: "T1", hours: -30 * 24, isServed: true)
      scene.order("better", by: "ann", stating: "T1", isServed: true) { $0.productId = "gold" }
    },
    Case("an unbooked renewal that another account states", "wrong_user on other") { scene in
      _ = scene.periods(2) { $0.appAccountToken = .stated("a1") }
      scene.order("first", by: "ann", stating: "T1", hours: -30 * 24, isServed: true) { $0.appAccountToken = "a1" }
      scene.order("other", by: "bob", stating: "T2", isServed: true)
    },
    Case("an unbooked renewal that another account states, without tokens", "wrong_user on other") { scene in
      _ = scene.periods(3)
      scene.order("first", by: "ann", stating: "T1", hours: -60 * 24, isServed: true)
      scene.order("other", by: "bob", stating: "T2", hours: -30 * 24, isServed: true)
      scene.order("third", by: "ann", stating: "T3", isServed: true)
    },
    Case("a third period that another account states, and an unknown first one", "wrong_user on p22") { scene in
      let first = scene.time - .days(60)
      for (place, user) in [(20, "ann"), (21, "ann"), (22, "bob")] {
        let start = first + .days(30 * Int64(place - 20))
        scene.transaction("T\(place)") {
          ($0.originalTransactionId, $0.isRenewal, $0.purchaseDate, $0.originalPurchaseDate, $0.expiresDate) = (
            "T0", true, start, first - .days(600), start + .days(30)
          )
        }
        scene.order(
          "p\(place)", by: user, stating: Identifier("T\(place)"), hours: 24 * 30 * Int64(place - 22), isServed: true)
      }
    },
    Case("a resubscription that another account states", "wrong_user on other") { scene in
      _ = scene.periods(2) { $0.isRenewal = false }
      scene.order("first", by: "ann", stating: "T1", hours: -30 * 24, isServed: true)
      scene.order("other", by: "bob", stating: "T2", isServed: true)
    },
    Case("one period under two IDs", "nothing") { scene in
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) {
          ($0.originalTransactionId, $0.webOrderLineItemId, $0.expiresDate) = ("T1", "W1", asOf + .days(9))
        }
      }
      scene.posted("order", by: "ann", records[1]) { $0.transactionId = "T1" }
    },
    Case("two units by two purchases", "nothing") { scene in
      scene.quantity = 2
      let records = ["T1", "T2"].map { id in scene.transaction(id) { ($0.quantity, $0.priceMilliunits) = (1, 4_950) } }
      scene.signedProof("second", for: scene.posted("order", by: "ann", records[0]), of: records[1])
    },
    Case("two units bought of three", "amount_mismatch, quantity_mismatch") { $0.bought(units: 2, of: 3) },
    Case("one of three units refunded, and taken back", "partial_refund") { scene in
      let order = scene.bought(units: 3, of: 3)
      scene.world.transactions[2].revocation = Revocation(date: asOf)
      scene.world.deliveries = []
      scene.delivery(of: order) { $0.quantity = 2 }
    },
    Case("one of three units refunded, and one delivered", "partial_refund, partly_delivered") { scene in
      let order = scene.bought(units: 3, of: 3)
      scene.world.transactions[2].revocation = Revocation(date: asOf)
      scene.world.deliveries = []
      scene.delivery(of: order) { $0.quantity = 1 }
    },
    Case("ten units for one", "quantity_mismatch") { scene in
      scene.quantity = 10
      scene.posted("order", by: "ann", scene.transaction { $0.quantity = 1 })
    },
    Case("a free code, booked at full price", "amount_mismatch") {
      $0.posted("order", by: "ann", $0.transaction { ($0.hasOffer, $0.priceMilliunits) = (true, 0) })
    },
    Case("a gift of amount 0", "nothing") { $0.order(isServed: true) { $0.amount = .of(0) } },
    Case("a gift within the window of a purchase with the account's token", "nothing") { scene in
      scene.posted("order", by: "ann", scene.transaction { $0.appAccountToken = .stated("a1") }) {
        $0.appAccountToken = "a1"
      }
      scene.delivery("gift", of: scene.order("gift", by: "ann") { ($0.amount, $0.appAccountToken) = (.of(0), "a1") })
    },
    Case("a gift beside a purchase whose client crashed", "paid_not_delivered") { scene in
      scene.transaction { $0.appAccountToken = .stated("a1") }
      scene.order("order", by: "ann") { ($0.appAccountToken, $0.status) = ("a1", .pending) }
      scene.order("gift", by: "ann", isServed: true) { ($0.amount, $0.appAccountToken) = (.of(0), "a1") }
    },
    Case("three purchases of one unit for two units", "charged_twice") { scene in
      scene.quantity = 2
      let time = scene.time
      let records = [("T1", Int64(5)), ("T2", 0), ("T3", 1)].map { id, hours in
        scene.transaction(id) { ($0.quantity, $0.priceMilliunits, $0.purchaseDate) = (1, 4_950, time + .hours(hours)) }
      }
      let order = scene.posted("order", by: "ann", records[1])
      scene.signedProof("second", for: order, of: records[0])
      scene.signedProof("third", for: order, of: records[2])
    },
    Case("one charge too many, beside two orders", "charged_twice on near") { scene in
      let time = scene.time
      let record = scene.transaction("T3") { $0.purchaseDate = time + .hours(1) }
      scene.signedProof(
        "further", for: scene.posted("far", by: "ann", hours: -20, scene.transaction("T1"), deliveredAt: time),
        of: record)
      scene.receipt(
        "list", for: scene.posted("near", by: "ann", hours: 1, scene.transaction("T2")), .verified(.app),
        containing: [record])
    },
    Case("a family member's proof five days before the order", "family_shared_sale, status_mismatch") { scene in
      let time = scene.time
      scene.posted(
        "order", by: "ann", scene.transaction { ($0.ownership, $0.purchaseDate) = (.familyShared, time - .days(5)) }
      ) { $0.transactionId = nil }
    },
    Case("ended family access, still served", "lapsed_still_served, status_mismatch") { scene in
      scene.time = asOf - .days(60)
      let record = scene.transaction {
        ($0.ownership, $0.revocation) = (.familyShared, Revocation(date: asOf - .days(20), type: "FAMILY_REVOKE"))
      }
      scene.posted("order", by: "ann", record) { $0.amount = .of(0) }
    },
    Case("ended family access, no longer served", "status_mismatch") { scene in
      scene.time = asOf - .days(60)
      let record = scene.transaction {
        ($0.ownership, $0.revocation) = (.familyShared, Revocation(date: asOf - .days(20), type: "FAMILY_REVOKE"))
      }
      scene.order(by: "ann", with: .signed(record)) { $0.amount = .of(0) }
    },
  ]

  static let shapes: [Case<String>] = [
    Case("the parts of a subscription bundle are one purchase of its product", "nothing") { scene in
      scene.product = "bundle"
      let parts = ["T1", "T2"].map { scene.part($0) }
      scene.posted("order", by: "ann", parts[1]) { $0.transactionId = "B1" }
    },
    Case("an order that states the ID of a bundle's purchase alone", "nothing") { scene in
      scene.product = "bundle"
      for id in ["T1", "T2"] { scene.part(id) }
      scene.order(by: "ann", stating: "B1", isServed: true)
    },
    Case(
      "an order that states the ID of an ordinary period's line item", "orphan_payment on T1, stuck_unconfirmed"
    ) { scene in
      scene.transaction { ($0.webOrderLineItemId, $0.expiresDate) = ("W1", asOf + .days(9)) }
      scene.order(by: "ann", stating: "W1", isServed: true)
    },
    Case("a bundle without an order is one payment", "orphan_payment on T1") { scene in
      scene.product = "bundle"
      for id in ["T1", "T2"] { scene.part(id) }
    },
    Case("an Advanced Commerce item, by its SKU", "nothing") { scene in
      let record = scene.transaction { ($0.productId, $0.priceMilliunits) = ("seasons,episode.7", 40_000) }
      scene.product = "episode.7"
      scene.posted("order", by: "ann", record)
    },
    Case("an item that the Advanced Commerce purchase lacks", "delivered_not_paid, product_mismatch") { scene in
      let record = scene.transaction { $0.productId = "seasons,episode.7" }
      scene.product = "episode"
      scene.posted("order", by: "ann", record)
    },
  ]

  @Test("A refund of a past period is booked, and an active subscription keeps its access")
  func pastPeriod() {
    for (status, action) in [(OrderStatus.verified, FindingAction.bookRefund), (.refunded, .look)] {
      for isActive in [true, false, nil] as [Bool?] {
        var scene = ShopFixture()
        let records = scene.periods(2) { $0.subscriptionStatus = isActive.map { $0 ? .active : .expired } }
        scene.world.transactions[0].revocation = Revocation(date: scene.time - .days(1), type: "REFUND_FULL")
        scene.world.transactions[0].subscriptionStatus = isActive.map { $0 ? .active : .expired }
        scene.world.transactions[0].checkedAt = asOf
        scene.posted("first", by: "ann", hours: -30 * 24, records[0]) { $0.status = status }
        scene.posted("second", by: "ann", records[1])
        let found = scene.world.audited().findings.filter { $0.orderId == "first" }
        let kept = found.first { $0.kind == .refundedStillDelivered }
        #expect(kept?.action == (isActive.map { $0 ? action : .takeBack } ?? .look))
        #expect(kept?.subscriptionExpiresDate == scene.time + .days(30))
        #expect(kept?.subscriptionStatus == isActive.map { $0 ? .active : .expired })
        #expect(found.contains { $0.action == .takeBack } == (isActive == false))
        #expect(found.count { $0.action == .bookRefund } == (status == .refunded ? 0 : 1))
      }
    }
  }

  @Test("A lapsed subscription has one finding for each person who is served")
  func lapsedForTwo() {
    var scene = ShopFixture()
    scene.time = asOf - .days(60)
    let records = scene.periods(2)
    scene.posted("first", by: "ann", hours: -30 * 24, records[0])
    scene.posted("second", by: "ann", records[1])
    scene.posted("other", by: "bob", hours: 1, records[1]) { $0.transactionId = nil }
    var world = scene.world
    world.transactions[1].ownership = .familyShared
    let lapsed = world.audited().findings.filter { $0.kind == .lapsedStillServed }
    #expect(Set(lapsed.map(\.identity)).count == Set(lapsed.compactMap(\.userId)).count)
    #expect(Set(lapsed.compactMap(\.userId)) == ["ann", "bob"])
  }

  @Test("A restore is outdated if it is later than the original purchase by more than the window, and no order is near")
  func outdatedRestores() {
    for (restored, ordered, isOwned) in [
      (1, 10, true), (40, 0, true), (40, 40, false), (40, -20, false),
    ] as [(Int64, Int64, Bool)] {
      var scene = ShopFixture()
      let time = scene.time - .days(50)
      scene.time = time
      let restore = scene.transaction("T2") { record in
        (record.originalTransactionId, record.originalPurchaseDate) = ("T1", time)
        (record.purchaseDate, record.isRenewal) = (time + .days(restored), false)
      }
      scene.posted("order", by: "ann", hours: 24 * ordered, restore)
      let payment = scene.world.audited().judgements["order"]?.payment
      #expect(payment == (isOwned ? "paid" : "unpaid restored"), "restored after \(restored), ordered after \(ordered)")
    }
  }

  @Test("A free trial beside two charges puts the second charge at risk")
  func trialBesideCharges() {
    var scene = ShopFixture()
    let time = scene.time
    let records = [("T0", Int64(0)), ("T1", 990), ("T2", 990)].enumerated().map { place, sale in
      scene.transaction(sale.0) { record in
        record.purchaseDate = time + .hours(Int64(place))
        record.priceMilliunits = Money.of(sale.1).milliunits
      }
    }
    let order = scene.posted("order", by: "ann", records[0])
    for record in records.dropFirst() {
      scene.signedProof("proof of " + record.transactionId.text, for: order, of: record)
    }
    let charged = scene.world.audited().findings.first { $0.kind == .chargedTwice }
    #expect(charged?.atStake == .of(990))
    #expect(charged?.transactionId == "T2")
  }

  @Test("An unread receipt withholds a refund until its question is stuck", arguments: [true, false])
  func refundBesideUnreadReceipt(isStuck: Bool) {
    var scene = ShopFixture()
    let order = scene.posted(
      "order", by: "ann", scene.transaction { $0.revocation = Revocation(date: asOf) })
    var state = ProofState.unanswered(.appleError)
    state.unansweredSince = asOf - (isStuck ? .days(10) : .hours(1))
    scene.receipt("old", for: order, state)
    let found = scene.world.audited().findings
    #expect(found.contains { $0.kind == .refundedStillDelivered } == isStuck)
  }

  @Test(
    "An accused order and the payment that would pay it put one amount at risk",
    arguments: [
      ("ann", 1, nil, 990), ("ann", 73, nil, nil), ("bob", 1, nil, nil), ("ann", 1, "com.example.second", nil),
      ("guest", 1, nil, 990),
    ] as [(Identifier, Int64, String?, Int64?)])
  func sharedStake(user: Identifier, hours: Int64, app: String?, shared: Int64?) {
    var scene = ShopFixture()
    scene.world.rules.bundleIds.append("com.example.second")
    scene.world.rules.people = People(aliases: [("guest", "ann")])
    let time = scene.time
    let record = scene.transaction { $0.purchaseDate = time + .hours(hours) }
    scene.receipt(for: nil, .verified(.app), containing: [record]) { $0.userId = user }
    scene.delivery(of: scene.order("order", by: "ann") { $0.bundleId = app })
    let found = scene.world.audited().findings
    #expect(found.map(\.kind).sorted { $0.index < $1.index } == [.deliveredNotPaid, .orphanPayment])
    #expect(found.compactMap(\.atStake).map(\.minorUnits) == (shared == nil ? [990, 990] : [990]))
    #expect(found.contains { $0.kind == .deliveredNotPaid && $0.atStake == .of(990) })
    #expect(found.allSatisfy { !$0.isAmountAtRiskUnknown })
  }

  @Test("An order with a copied proof shares one amount at risk with the payment that would pay it")
  func sharedStakeOfACopiedProof() {
    var scene = ShopFixture()
    let time = scene.time
    let old = scene.transaction("T0") { $0.purchaseDate = time - .days(60) }
    scene.posted("owner", by: "bob", hours: -60 * 24, old)
    scene.posted("order", by: "ann", old)
    let paid = scene.transaction("T1") { $0.purchaseDate = time + .hours(1) }
    scene.receipt(for: nil, .verified(.app), containing: [paid]) { $0.userId = "ann" }
    let found = scene.world.audited().findings.filter { $0.userId == "ann" }
    #expect(found.contains { $0.kind == .duplicateClaim } && found.contains { $0.kind == .orphanPayment })
    #expect(found.compactMap(\.atStake).map(\.minorUnits) == [990])
  }
}

extension ShopFixture {
  /// An order so many hours after the purchase, with a signed proof and goods.
  @discardableResult
  mutating func posted(
    _ text: String, by user: String, hours: Int64 = 0, _ record: TransactionRecord, deliveredAt: Instant? = nil,
    _ change: (inout Order) -> Void = { _ in }
  ) -> Order {
    let order = order(
      text, by: user, stating: record.transactionId, hours: hours, with: .signed(record), isServed: true, change)
    if let deliveredAt { world.deliveries[world.deliveries.count - 1].deliveredAt = deliveredAt }
    return order
  }

  /// An order for some units at 0.99 USD, all delivered, with proofs of purchases of one unit each.
  @discardableResult
  fileprivate mutating func bought(units: Int, of ordered: Int32) -> Order {
    (quantity, amount) = (ordered, .of(99 * Int64(ordered)))
    let order = order(by: "ann", isServed: true)
    for number in 1...units {
      let record = transaction("T\(number)") { ($0.quantity, $0.priceMilliunits) = (1, 990) }
      signedProof("proof \(number)", for: order, of: record)
    }
    return order
  }

  /// A part of a subscription bundle, as it is read.
  @discardableResult
  fileprivate mutating func part(_ id: String) -> TransactionRecord {
    transaction(id) { record in
      (record.originalTransactionId, record.webOrderLineItemId) = ("B0", "B1")
      (record.isRenewal, record.priceMilliunits) = (false, nil)
      record.expiresDate = ShopFixture.asOf + .days(9)
    }
  }
}
