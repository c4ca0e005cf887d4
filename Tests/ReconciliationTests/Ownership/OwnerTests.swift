import Reconciliation
import Testing

@testable import SampleWorlds

/// The order that a purchase pays: the rules, then scenarios. A row lists the owner of T1, and of T2 if there is one.
@Suite struct OwnerTests {
  @Test(arguments: rules + stories)
  func owners(row: Case<String>) {
    let facts = row.scene.world.matchedFacts().orders
    let owners = row.scene.world.transactions.map(\.transactionId).sorted().map { id in
      facts.values.filter { $0.claims.owned.contains { $0.transactionId == id } }.map(\.order.orderId.text)
        .joined(separator: "+")
    }
    #expect(owners.joined(separator: ",") == row.expected)
  }

  static let rules: [Case<String>] = [
    Case("1: the purchase's token comes before none, at any distance", "far") { scene in
      let record = scene.transaction { $0.appAccountToken = .stated("A1") }
      scene.stating("near", by: "stranger")
      let far = scene.stating("far", by: "payer", hours: -80) { $0.appAccountToken = "a1" }
      scene.signedProof("r", for: far, of: record)
    },
    Case("1: no token comes before another token", "far") { scene in
      scene.transaction { $0.appAccountToken = .stated("A1") }
      scene.stating("near", by: "stranger") { $0.appAccountToken = "b2" }
      scene.stating("far", by: "payer", hours: 70)
    },
    Case("2: an order inside the window with another token comes before one outside without a token", "inside") {
      scene in
      let record = scene.transaction { $0.appAccountToken = .stated("A1") }
      scene.stating("inside", by: "payer") { $0.appAccountToken = "b2" }
      scene.signedProof("r", for: scene.stating("outside", by: "thief", hours: 89), of: record)
    },
    Case("2: a second charge on an order inside the window is no outside order's purchase", "inside,inside") { scene in
      let time = scene.time
      let records = [("T1", 0), ("T2", 1)].map { id, hours in
        scene.transaction(id) { $0.purchaseDate = time + .hours(hours) }
      }
      scene.receipt("r", for: scene.order("inside", by: "ann", hours: 0), .verified(.app), containing: records)
      scene.stating("outside", by: "bob", hours: 90, id: "T2")
    },
    Case("2: an order outside the window that alone has the token owns a second charge", "inside,outside") { scene in
      let records = ["T1", "T2"].map { id in
        scene.transaction(id) { if id == "T2" { $0.appAccountToken = .stated("A1") } }
      }
      scene.receipt("r", for: scene.order("inside", by: "ann", hours: 0), .verified(.app), containing: records)
      scene.stating("outside", by: "bob", hours: 90, id: "T2") { $0.appAccountToken = "a1" }
    },
    Case("2: an order inside the window comes before one outside, with a proof or not", "inside") { scene in
      let record = scene.transaction()
      scene.stating("inside", by: "payer", hours: 72)
      scene.signedProof("r", for: scene.stating("outside", by: "thief", hours: -73), of: record)
    },
    Case("3: a proof comes before a stated ID", "proof") { scene in
      let record = scene.transaction()
      scene.stating("near", by: "a")
      scene.signedProof("r", for: scene.order("proof", by: "b", hours: -20), of: record)
    },
    Case("3: an app receipt is no proof of one purchase", "near") { scene in
      let record = scene.transaction()
      scene.stating("near", by: "a")
      scene.receipt("r", for: scene.order("list", by: "b", hours: -20), .verified(.app), containing: [record])
    },
    Case("4: goods count among orders of one person", "second") { scene in
      scene.transaction()
      scene.stating("first", by: "ann")
      scene.delivery(of: scene.stating("second", by: "ann", hours: 1))
    },
    Case("4: goods do not count between persons", "first") { scene in
      scene.transaction()
      scene.stating("first", by: "ann")
      scene.delivery(of: scene.stating("second", by: "bob", hours: 1))
    },
    Case("4: goods that were taken back do not count", "first") { scene in
      scene.transaction()
      scene.stating("first", by: "ann")
      scene.delivery(of: scene.stating("second", by: "ann", hours: 1)) { $0.revokedAt = ShopFixture.asOf - .hours(1) }
    },
    Case("5: the nearest order", "near") { scene in
      scene.transaction()
      scene.stating("old", by: "a", hours: -10)
      scene.stating("near", by: "b", hours: 9)
    },
    Case("6: the earlier order, then the smaller ID", "a") { scene in
      scene.transaction()
      scene.stating("late", by: "x", hours: 5)
      scene.stating("b", by: "y", hours: -5)
      scene.stating("a", by: "z", hours: -5)
    },
    Case("the best order of each person, then the best person", "bob") { scene in
      scene.transaction()
      scene.stating("ann-near", by: "ann", hours: 1)
      scene.stating("bob", by: "bob", hours: 2)
      scene.delivery(of: scene.stating("ann-goods", by: "ann", hours: 3))
    },
    Case("an order prefers a live purchase to a refunded one, and a proof to an ID", ",order") { scene in
      scene.transaction("T1") { $0.revocation = Revocation(date: ShopFixture.asOf) }
      let order = scene.stating("order", by: "ann")
      scene.signedProof("r", for: order, of: scene.transaction("T2"))
    },
    Case("a rejected proof gives no link, unless Apple confirms the ID and no other order proves it", "payer") {
      scene in
      scene.transaction()
      let forger = scene.stating("forger", by: "thief")
      scene.receipt("r", for: forger, .rejected(.signatureInvalid))
      scene.stating("payer", by: "payer", hours: 50)
    },
  ]

  static let stories: [Case<String>] = [
    Case("a copied proof, sent for an abandoned order of 60 days ago", "payer") { scene in
      let record = scene.transaction()
      scene.signedProof("r1", for: scene.stating("payer", by: "payer"), of: record)
      scene.signedProof("r2", for: scene.stating("thief", by: "thief", hours: -60 * 24), of: record)
    },
    Case("a copied app receipt, sent for an abandoned order of 60 days ago", "payer") { scene in
      let record = scene.transaction()
      let payer = scene.stating("payer", by: "payer")
      scene.receipt("r1", for: payer, .verified(.app), containing: [record])
      let thief = scene.stating("thief", by: "thief", hours: -60 * 24)
      scene.receipt("r2", for: thief, .verified(.app), containing: [record])
    },
    Case("a late copy that states the ID, beside a payer that states none", "payer") { scene in
      let record = scene.transaction()
      scene.signedProof("r1", for: scene.order("payer", by: "payer", hours: 0), of: record)
      scene.signedProof("r2", for: scene.stating("thief", by: "thief", hours: 40), of: record)
    },
    Case("a payment of 30 days ago that its own buyer sends again", "first") { scene in
      let record = scene.transaction()
      scene.signedProof("r1", for: scene.order("first", by: "ann", hours: 0), of: record)
      scene.signedProof("r2", for: scene.stating("again2", by: "ann", hours: 45), of: record)
    },
    Case("a guest's order that is posted again under the account", "account") { scene in
      scene.world.rules.people = People(aliases: [("guest", "ann")])
      scene.transaction()
      scene.stating("guest-order", by: "guest")
      scene.delivery(of: scene.stating("account", by: "ann", hours: 2))
    },
    Case("the crossed proofs of one user", "first,second") { scene in
      let (one, two) = (scene.transaction("T1"), scene.transaction("T2"))
      scene.signedProof("r1", for: scene.stating("first", by: "ann", id: "T2"), of: one)
      scene.signedProof("r2", for: scene.stating("second", by: "ann", id: "T1"), of: two)
    },
    Case("a junk ID beside a genuine proof", "order") { scene in
      let record = scene.transaction()
      scene.signedProof("r", for: scene.stating("order", by: "ann", id: "7000"), of: record)
      scene.world.lookups["order"] = .notFound()
    },
    Case("another account's cancelled order on a shared device", "payer") { scene in
      let record = scene.transaction()
      scene.delivery(of: scene.stating("payer", by: "payer"))
      let cancelled = scene.order("cancelled", by: "other", hours: -20) { $0.status = .cancelled }
      scene.receipt("r", for: cancelled, .verified(.app), containing: [record])
    },
    Case("Ask to Buy that was approved after five days", "order") { scene in
      let record = scene.transaction()
      scene.signedProof("r", for: scene.order("order", by: "ann", hours: -5 * 24), of: record)
    },
    Case("an order row that was written five days late", "order") { scene in
      let record = scene.transaction()
      scene.signedProof("r", for: scene.order("order", by: "ann", hours: 5 * 24), of: record)
    },
    Case("a renewal in a signed proof", ",order") { scene in
      let later = scene.time + .days(30)
      scene.transaction("T1") { $0.expiresDate = later }
      let renewal = scene.transaction("T2") { record in
        record.originalTransactionId = "T1"
        (record.purchaseDate, record.expiresDate) = (later, later + .days(30))
      }
      scene.signedProof("r", for: scene.order("order", by: "ann", hours: 30 * 24), of: renewal)
    },
    Case("a renewal on a list is no link", ",") { scene in
      let renewal = scene.periods(2)[1]
      scene.receipt("r", for: scene.order("order", by: "ann", hours: 0), .verified(.app), containing: [renewal])
    },
    Case("a renewal on a list is a link beside a stated ID that Apple does not know", ",order") { scene in
      let renewal = scene.periods(2)[1]
      scene.receipt("r", for: scene.stating("order", by: "ann", id: "7000"), .verified(.app), containing: [renewal])
      scene.world.lookups["order"] = .notFound()
    },
    Case("a list outside the window is no link", "") { scene in
      let record = scene.transaction()
      scene.receipt("r", for: scene.order("order", by: "ann", hours: 73), .verified(.app), containing: [record])
    },
    Case("a stated ID is a link at any time", "order") { scene in
      scene.transaction()
      scene.stating("order", by: "ann", hours: -40 * 24)
    },
    Case("a client that crashed after paying, found by the account token", "crashed") { scene in
      scene.transaction { $0.appAccountToken = .stated("0A000000-0000-4000-8000-000000000001") }
      scene.order("crashed", by: "ann", hours: 0) { order in
        order.appAccountToken = "0a000000000040008000000000000001"
        order.status = .pending
      }
      scene.order("other", by: "bob", hours: 0)
    },
    Case("a copied proof of a purchase whose account token an order without a receipt has", "payer") { scene in
      let record = scene.transaction { $0.appAccountToken = .stated("a1") }
      scene.order("payer", by: "payer", hours: 20) { $0.appAccountToken = "a1" }
      scene.signedProof("r", for: scene.stating("thief", by: "thief"), of: record)
    },
    Case("an account token of another product, or outside the window, is no link", "") { scene in
      scene.transaction { $0.appAccountToken = .stated("a1") }
      scene.order("other", by: "ann", hours: 0) { order in
        (order.appAccountToken, order.productId) = ("a1", "chest")
      }
      scene.order("late", by: "ann", hours: 73) { $0.appAccountToken = "a1" }
    },
    Case("an order for each period, each stating the original ID, without receipts", "first,second,third") { scene in
      scene.periods(3)
      for (month, name) in ["first", "second", "third"].enumerated() {
        scene.stating(name, by: "ann", hours: Int64(month - 2) * 30 * 24)
      }
    },
    Case("an order that states the original ID, and only the first period is known", "order") { scene in
      scene.time = ShopFixture.asOf - .days(40)
      scene.periods(1)
      scene.stating("order", by: "ann", hours: 30 * 24)
    },
    Case("an order that states the original ID, and a later period is nearer", ",order") { scene in
      scene.periods(2)
      scene.stating("order", by: "ann")
    },
    Case("two orders a month apart that state the original ID", "first,second") { scene in
      scene.periods(2)
      scene.stating("second", by: "ann")
      scene.stating("first", by: "ann", hours: -30 * 24)
    },
    Case("the original ID on the orders of the second and third period", ",second,third") { scene in
      scene.periods(3)
      scene.stating("second", by: "ann", hours: -30 * 24)
      scene.stating("third", by: "ann")
    },
    Case("the original ID, and the nearer period is another order's", "order,payer") { scene in
      let later = scene.periods(2)[1]
      scene.stating("order", by: "ann")
      scene.signedProof("r", for: scene.order("payer", by: "ann", hours: 1), of: later)
    },
    Case("an upgrade that states the original ID pays the order of its product", "first,better") { scene in
      scene.time = ShopFixture.asOf - .days(40)
      let upgraded = scene.time + .days(10)
      scene.transaction("T1") { $0.expiresDate = upgraded + .days(20) }
      scene.stating("first", by: "ann")
      scene.product = "gold"
      scene.transaction("T2") { record in
        (record.originalTransactionId, record.isRenewal) = ("T1", false)
        (record.purchaseDate, record.expiresDate) = (upgraded, upgraded + .days(30))
      }
      scene.stating("better", by: "ann", hours: 240)
    },
    Case("two purchases of two orders on one receipt are paired in the order of time", "first,second") { scene in
      let time = scene.time
      let records = [("T1", 9), ("T2", 30)].map { id, minutes in
        scene.transaction(id) { $0.purchaseDate = time + .minutes(minutes) }
      }
      for (id, minutes) in [("first", 0), ("second", 10)] as [(String, Int64)] {
        let order = scene.order(id, by: "ann") { $0.createdAt = time + .minutes(minutes) }
        scene.receipt("r-" + id, for: order, .verified(.app), containing: records)
      }
    },
    Case("goods come first where one receipt lists one purchase for two orders", "second") { scene in
      let record = scene.transaction()
      for (id, hours) in [("first", 0), ("second", 1)] as [(String, Int64)] {
        let order = scene.order(id, by: "ann", hours: hours)
        scene.receipt("r-" + id, for: order, .verified(.app), containing: [record])
        if id == "second" { scene.delivery(of: order) }
      }
    },
  ]

  @Test("An ordinary retry is one settled order and one void order, without a finding")
  func retry() {
    for status in [OrderStatus.failed, .pending, .cancelled] {
      var scene = ShopFixture()
      scene.transaction()
      scene.stating("first", by: "ann") { $0.status = status }
      scene.delivery(of: scene.stating("second", by: "ann", hours: 1))
      let outcome = scene.world.audited()
      #expect(outcome.judgements["first"]?.disposition == .void)
      #expect(outcome.judgements["second"]?.disposition == .settled)
      #expect(scene.world.findingNames == [])
    }
  }

  @Test("The payer of a copied proof has no finding, and the copy is critical")
  func copy() {
    var scene = ShopFixture()
    let record = scene.transaction()
    let payer = scene.order("payer", by: "payer", hours: 0)
    scene.signedProof("r1", for: payer, of: record)
    scene.delivery("d1", of: payer)
    let thief = scene.stating("thief", by: "thief", hours: 40)
    scene.signedProof("r2", for: thief, of: record)
    scene.delivery("d2", of: thief)
    #expect(scene.world.findingNames == ["delivered_not_paid on thief", "duplicate_claim on thief"])
    let duplicate = scene.world.audited().findings.first { $0.kind == .duplicateClaim }
    #expect(duplicate?.severity == .critical)
  }

  @Test("A second order of one person with goods is a major duplicate")
  func samePerson() {
    var scene = ShopFixture()
    scene.transaction()
    scene.delivery("d1", of: scene.stating("first", by: "ann"))
    scene.delivery("d2", of: scene.stating("second", by: "ann", hours: 1))
    let duplicate = scene.world.audited().findings.first { $0.kind == .duplicateClaim }
    #expect(duplicate?.orderId == "second" && duplicate?.severity == .major)
  }

  @Test("Two units that two purchases of one unit paid are settled")
  func twoUnits() {
    var scene = ShopFixture()
    scene.quantity = 2
    let order = scene.order()
    for id in ["T1", "T2"] {
      let record = scene.transaction(id) { record in
        record.quantity = 1
        record.priceMilliunits = 4_950
      }
      scene.signedProof("r" + id, for: order, of: record)
    }
    scene.delivery(of: order)
    #expect(scene.world.audited().judgements["order"]?.disposition == .settled)
    #expect(scene.world.findingNames == [])
  }

  @Test("A left-over purchase pays an order that is short of units before a nearer one", arguments: [2, 40])
  func unitsOfFurtherPurchases(orders: Int) {
    var scene = ShopFixture()
    let time = scene.time
    let minutes = [0, 8, 10] + (0..<(orders - 2)).map { 1_000 + 10 * Int64($0) }
    let records = minutes.enumerated().map { place, minutes in
      scene.transaction("T\(100 + place)") { record in
        (record.quantity, record.priceMilliunits, record.purchaseDate) = (1, 4_950, time + .minutes(minutes))
      }
    }
    for (place, minutes) in ([0, 10] + minutes.dropFirst(3)).enumerated() {
      (scene.quantity, scene.amount) = place == 0 ? (2, .of(990)) : (1, .of(495))
      let order = scene.order("o\(100 + place)", by: "ann") { $0.createdAt = time + .minutes(minutes) }
      scene.receipt("r\(100 + place)", for: order, .verified(.app), containing: records)
      scene.delivery("d\(100 + place)", of: order)
    }
    #expect(scene.world.ownedBy("o100") == ["T100", "T101"])
    #expect(scene.world.audited().judgements.values.allSatisfy { $0.disposition == .settled })
    #expect(scene.world.findingNames == [])
  }

  @Test("Ten units paid for one are a critical difference, with nine tenths at risk")
  func tenUnits() {
    var scene = ShopFixture()
    scene.quantity = 10
    scene.amount = .of(9_900)
    let order = scene.order()
    let record = scene.transaction { record in
      record.quantity = 1
      record.priceMilliunits = 9_900
    }
    scene.signedProof(for: order, of: record)
    scene.delivery(of: order)
    let finding = scene.world.audited().findings.first { $0.kind == .quantityMismatch }
    #expect(finding?.severity == .critical && finding?.atStake == .of(8_910))
  }

  @Test(
    "A purchase more than 30 days older than its order puts the amount at risk",
    arguments: [(Int64(29), Severity.minor), (31, .major)])
  func oldPurchase(days: Int64, severity: Severity) {
    var scene = ShopFixture()
    scene.delivery(
      of: scene.paidOrder(transaction: { $0.purchaseDate = $0.purchaseDate.map { $0 - .days(days) } }))
    let finding = scene.world.audited().findings.first { $0.kind == .purchasePredatesOrder }
    #expect(finding?.severity == severity && finding?.atStake == (severity == .major ? .of(990) : nil))
  }

  @Test("An offer does not excuse another amount if Apple states the price")
  func freeCode() {
    var scene = ShopFixture()
    let order = scene.order()
    let record = scene.transaction { record in
      record.hasOffer = true
      record.priceMilliunits = 0
    }
    scene.signedProof(for: order, of: record)
    scene.delivery(of: order)
    #expect(scene.world.findingNames == ["amount_mismatch on order"])
  }

  @Test("A restore that Apple calls a purchase stays a restore, unless the original was refunded before")
  func restoredPurchase() {
    for isRefunded in [false, true] {
      var scene = ShopFixture()
      let (first, time) = (scene.time - .days(30), scene.time)
      scene.transaction("T1") { record in
        record.purchaseDate = first
        if isRefunded { record.revocation = Revocation(date: time - .days(20)) }
      }
      let restore = scene.transaction("T2") { record in
        (record.originalTransactionId, record.originalPurchaseDate) = ("T1", first)
        record.isRenewal = false
      }
      let order = scene.order("order", by: "bob")
      scene.signedProof(for: order, of: restore)
      scene.delivery(of: order)
      let judgement = scene.world.audited().judgements["order"]
      #expect(judgement?.disposition == (isRefunded ? .settled : .void))
      #expect(judgement?.payment == (isRefunded ? "paid" : "unpaid restored"))
    }
  }

  @Test("After a refund, a restore belongs to the last purchase of the original that was not refunded before it")
  func restoredAgain() {
    for (refundedAfterDays, expected) in [(nil, []), (1, ["orphan_payment on T4"]), (3, [])] as [(Int64?, [String])] {
      var scene = ShopFixture()
      let (first, time) = (scene.time - .days(60), scene.time - .days(2))
      scene.time = time
      scene.transaction("T1") { record in
        (record.purchaseDate, record.revocation) = (first, Revocation(date: time - .days(20)))
      }
      let bought = [("T3", Int64(0)), ("T4", 2)].map { id, days in
        scene.transaction(id) { record in
          (record.originalTransactionId, record.originalPurchaseDate) = ("T1", first)
          record.purchaseDate = time + .days(days)
          if id == "T3" { record.revocation = refundedAfterDays.map { Revocation(date: time + .days($0)) } }
        }
      }
      let order = scene.order("order", by: "ann", hours: 0) { order in
        if refundedAfterDays != nil { order.status = .refunded }
      }
      scene.signedProof(for: order, of: bought[0])
      if refundedAfterDays == nil { scene.delivery(of: order) }
      #expect(scene.world.findingNames == expected, "refunded after \(refundedAfterDays ?? 0) days")
      let folded = TransactionRecord.foldingPurchases(scene.world.transactions.reversed())
      #expect(Set(folded.map(\.purchaseKey)).count == (refundedAfterDays == 1 ? 3 : 2))
    }
  }

  @Test("An order outside the window takes no purchase from one inside, unless it alone has the token")
  func outsideTakesNothing() {
    for hasToken in [false, true] {
      var scene = ShopFixture()
      let record = scene.transaction { $0.appAccountToken = .stated("A1") }
      scene.stating("inside", by: "payer")
      let outside = scene.stating("outside", by: "other", hours: -100) { $0.appAccountToken = hasToken ? "a1" : nil }
      scene.signedProof("r", for: outside, of: record)
      #expect(scene.world.ownedBy(hasToken ? "outside" : "inside") == ["T1"])
    }
  }
}

extension ShopFixture {
  /// An order created some hours after the purchase.
  @discardableResult
  fileprivate mutating func order(
    _ text: String, by user: String, hours: Int64, _ change: (inout Order) -> Void = { _ in }
  ) -> Order {
    let time = self.time
    return order(text, by: user) { order in
      order.createdAt = time + .hours(hours)
      change(&order)
    }
  }

  /// An order that states a transaction ID, created some hours after the purchase.
  @discardableResult
  fileprivate mutating func stating(
    _ text: String, by user: String, hours: Int64 = 0, id: Identifier = "T1",
    _ change: (inout Order) -> Void = { _ in }
  ) -> Order {
    order(text, by: user, hours: hours) { order in
      order.transactionId = id
      change(&order)
    }
  }
}
