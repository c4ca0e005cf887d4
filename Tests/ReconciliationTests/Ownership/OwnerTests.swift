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
      scene.order("near", by: "stranger", stating: "T1")
      scene.order("far", by: "payer", stating: "T1", hours: -80, with: .signed(record)) { $0.appAccountToken = "a1" }
    },
    Case("1: no token comes before another token", "far") { scene in
      scene.transaction { $0.appAccountToken = .stated("A1") }
      scene.order("near", by: "stranger", stating: "T1") { $0.appAccountToken = "b2" }
      scene.order("far", by: "payer", stating: "T1", hours: 70)
    },
    Case(
      "2: an order inside the window with another token comes before one outside without a token", "inside"
    ) { scene in
      let record = scene.transaction { $0.appAccountToken = .stated("A1") }
      scene.order("inside", by: "payer", stating: "T1") { $0.appAccountToken = "b2" }
      scene.order("outside", by: "thief", stating: "T1", hours: 89, with: .signed(record))
    },
    Case("2: a second charge on an order inside the window is no outside order's purchase", "inside,inside") { scene in
      let records = scene.transactions(minutes: [0, 60])
      scene.order("inside", by: "ann", with: .init(.verified(.app), of: records))
      scene.order("outside", by: "bob", stating: "T2", hours: 90)
    },
    Case("2: an order outside the window that alone has the token owns a second charge", "inside,outside") { scene in
      let second = scene.transaction("T2") { $0.appAccountToken = .stated("A1") }
      scene.order("inside", by: "ann", with: .list(scene.transaction(), second))
      scene.order("outside", by: "bob", stating: "T2", hours: 90) { $0.appAccountToken = "a1" }
    },
    Case("2: an order inside the window comes before one outside, with a proof or not", "inside") { scene in
      let record = scene.transaction()
      scene.order("inside", by: "payer", stating: "T1", hours: 72)
      scene.order("outside", by: "thief", stating: "T1", hours: -73, with: .signed(record))
    },
    Case("3: a proof comes before a stated ID", "proof") { scene in
      let record = scene.transaction()
      scene.order("near", by: "a", stating: "T1")
      scene.order("proof", by: "b", hours: -20, with: .signed(record))
    },
    Case("3: an app receipt is no proof of one purchase", "near") { scene in
      let record = scene.transaction()
      scene.order("near", by: "a", stating: "T1")
      scene.order("list", by: "b", hours: -20, with: .list(record))
    },
    Case("4: goods count among orders of one person", "second") { scene in
      scene.transaction()
      scene.order("first", by: "ann", stating: "T1")
      scene.order("second", by: "ann", stating: "T1", hours: 1, isServed: true)
    },
    Case("4: goods do not count between persons", "first") { scene in
      scene.transaction()
      scene.order("first", by: "ann", stating: "T1")
      scene.order("second", by: "bob", stating: "T1", hours: 1, isServed: true)
    },
    Case("4: goods that were taken back do not count", "first") { scene in
      scene.transaction()
      scene.order("first", by: "ann", stating: "T1")
      scene.delivery(of: scene.order("second", by: "ann", stating: "T1", hours: 1)) { $0.revokedAt = asOf - .hours(1) }
    },
    Case("5: the nearest order", "near") { scene in
      scene.transaction()
      scene.order("old", by: "a", stating: "T1", hours: -10)
      scene.order("near", by: "b", stating: "T1", hours: 9)
    },
    Case("6: the earlier order, then the smaller ID", "a") { scene in
      scene.transaction()
      scene.order("late", by: "x", stating: "T1", hours: 5)
      scene.order("b", by: "y", stating: "T1", hours: -5)
      scene.order("a", by: "z", stating: "T1", hours: -5)
    },
    Case("the best order of each person, then the best person", "bob") { scene in
      scene.transaction()
      scene.order("ann-near", by: "ann", stating: "T1", hours: 1)
      scene.order("bob", by: "bob", stating: "T1", hours: 2)
      scene.order("ann-goods", by: "ann", stating: "T1", hours: 3, isServed: true)
    },
    Case("an order prefers a live purchase to a refunded one, and a proof to an ID", ",order") { scene in
      scene.transaction("T1") { $0.revocation = Revocation(date: asOf) }
      scene.order(by: "ann", stating: "T1", with: .signed(scene.transaction("T2")))
    },
  ]

  static let stories: [Case<String>] = [
    Case("a copied proof, sent for an abandoned order of 60 days ago", "payer") { scene in
      let record = scene.transaction()
      scene.order("payer", by: "payer", stating: "T1", with: .signed(record))
      scene.order("thief", by: "thief", stating: "T1", hours: -60 * 24, with: .signed(record))
    },
    Case("a payment of 30 days ago that its own buyer sends again", "first") { scene in
      let record = scene.transaction()
      scene.order("first", by: "ann", with: .signed(record))
      scene.order("again2", by: "ann", stating: "T1", hours: 45, with: .signed(record))
    },
    Case("an order row that was written five days late", "order") {
      $0.order("order", by: "ann", hours: 5 * 24, with: .signed($0.transaction()))
    },
    Case("a renewal in a signed proof", ",order") { scene in
      let later = scene.time + .days(30)
      scene.transaction("T1") { $0.expiresDate = later }
      let renewal = scene.transaction("T2") {
        ($0.originalTransactionId, $0.purchaseDate, $0.expiresDate) = ("T1", later, later + .days(30))
      }
      scene.order("order", by: "ann", hours: 30 * 24, with: .signed(renewal))
    },
    Case("a renewal on a list is no link", ",") { $0.order("order", by: "ann", with: .list($0.periods(2)[1])) },
    Case("a renewal on a list is a link beside a stated ID that Apple does not know", ",order") {
      $0.order(by: "ann", stating: "7000", with: .list($0.periods(2)[1]), lookup: .notFound())
    },
    Case("a list outside the window is no link", "") {
      $0.order("order", by: "ann", hours: 73, with: .list($0.transaction()))
    },
    Case("a stated ID is a link at any time", "order") { scene in
      scene.transaction()
      scene.order(by: "ann", stating: "T1", hours: -40 * 24)
    },
    Case("a copied proof of a purchase whose account token an order without a receipt has", "payer") { scene in
      let record = scene.transaction { $0.appAccountToken = .stated("a1") }
      scene.order("payer", by: "payer", hours: 20) { $0.appAccountToken = "a1" }
      scene.order("thief", by: "thief", stating: "T1", with: .signed(record))
    },
    Case("an account token of another product, or outside the window, is no link", "") { scene in
      scene.transaction { $0.appAccountToken = .stated("a1") }
      scene.order("other", by: "ann") { ($0.appAccountToken, $0.productId) = ("a1", "chest") }
      scene.order("late", by: "ann", hours: 73) { $0.appAccountToken = "a1" }
    },
    Case("an order for each period, each stating the original ID, without receipts", "first,second,third") { scene in
      scene.periods(3)
      for (month, name) in ["first", "second", "third"].enumerated() {
        scene.order(name, by: "ann", stating: "T1", hours: Int64(month - 2) * 30 * 24)
      }
    },
    Case("an order that states the original ID, and only the first period is known", "order") { scene in
      scene.time = asOf - .days(40)
      scene.periods(1)
      scene.order(by: "ann", stating: "T1", hours: 30 * 24)
    },
    Case("two purchases of two orders on one receipt are paired in the order of time", "first,second") { scene in
      let records = scene.transactions(minutes: [9, 60])
      scene.order("first", by: "ann", with: .init(.verified(.app), of: records))
      scene.order("second", by: "ann", hours: 1, with: .init(.verified(.app), of: records))
    },
    Case("goods come first where one receipt lists one purchase for two orders", "second") { scene in
      let record = scene.transaction()
      scene.order("first", by: "ann", with: .list(record))
      scene.order("second", by: "ann", hours: 1, with: .list(record), isServed: true)
    },
  ]

  @Test("An order prefers a proof, then its account token, an ID, the subscription and a list", arguments: 1...5)
  func preferredLinks(count: Int) {
    var scene = ShopFixture()
    // A receipt lists T1, and each further link is to the next purchase. Refunded purchases are no second charges.
    let records = (1...5).map { number in
      scene.transaction("T\(number)") { record in
        record.revocation = Revocation(date: asOf)
        if number == 2 { (record.originalTransactionId, record.expiresDate) = ("S", asOf) }
        if number == 4 { record.appAccountToken = .stated("a1") }
      }
    }
    let stated: Identifier? = count == 1 ? nil : count == 2 ? "S" : "T3"
    let order = scene.order(by: "ann", stating: stated, with: .list(records[0])) {
      if count > 3 { $0.appAccountToken = "a1" }
    }
    if count > 4 { scene.signedProof("proof", for: order, of: records[4]) }
    #expect(scene.world.ownedBy("order") == [records[count - 1].transactionId])
  }

  @Test("A left-over purchase pays an order that is short of units before a nearer one", arguments: [2, 40])
  func unitsOfFurtherPurchases(orders: Int) {
    var scene = ShopFixture()
    let later = (0..<(orders - 2)).map { 1_000 + 10 * Int64($0) }
    let records = scene.transactions(minutes: [0, 8, 10] + later) { ($0.quantity, $0.priceMilliunits) = (1, 4_950) }
    for (place, minutes) in ([0, 10] + later).enumerated() {
      (scene.quantity, scene.amount) = place == 0 ? (2, .of(990)) : (1, .of(495))
      scene.order("o\(100 + place)", by: "ann", with: .init(.verified(.app), of: records), isServed: true) {
        $0.createdAt = ordered + .minutes(minutes)
      }
    }
    #expect(scene.world.ownedBy("o100") == ["T1", "T2"])
    #expect(scene.world.audited().judgements.values.allSatisfy { $0.disposition == .settled })
    #expect(scene.world.findingNames == [])
  }

  @Test("A refunded purchase belongs to the order that has its units unpaid", arguments: [2, 40])
  func unitsOfRefundedPurchases(orders: Int) {
    var scene = ShopFixture()
    let later = (0..<(orders - 2)).map { 1_000 + 10 * Int64($0) }
    let records = scene.transactions(minutes: [0, 8, 10] + later) { ($0.quantity, $0.priceMilliunits) = (1, 4_950) }
    for (place, minutes) in ([0, 10] + later).enumerated() {
      (scene.quantity, scene.amount) = place == 0 ? (2, .of(990)) : (1, .of(495))
      scene.order("o\(100 + place)", by: "ann", with: .init(.verified(.app), of: records), isServed: true) {
        $0.createdAt = ordered + .minutes(minutes)
      }
    }
    scene.world.transactions[1].revocation = Revocation(date: asOf)
    #expect(scene.world.ownedBy("o100") == ["T1", "T2"])
    #expect(scene.world.ownedBy("o101") == ["T3"])
  }

  @Test(
    "A restore that Apple calls a purchase stays a restore, unless the original was refunded before",
    arguments: [(false, "unpaid restored"), (true, "paid")])
  func restoredPurchase(isRefunded: Bool, payment: String) {
    let row = Case("a restore", payment) { scene in
      let first = ordered - .days(30)
      scene.transaction("T1") { record in
        record.purchaseDate = first
        if isRefunded { record.revocation = Revocation(date: ordered - .days(20)) }
      }
      let restore = scene.transaction("T2") {
        ($0.originalTransactionId, $0.originalPurchaseDate, $0.isRenewal) = ("T1", first, false)
      }
      scene.order(by: "bob", with: .signed(restore), isServed: true)
    }
    #expect(row.judgement?.payment == payment && row.judgement?.disposition == (isRefunded ? .settled : .void))
  }

  @Test(
    "After a refund, a restore belongs to the last purchase of the original that was not refunded before it",
    arguments: [(nil, "nothing", 2), (1, "orphan_payment on T4", 3), (3, "nothing", 2)] as [(Int64?, String, Int)])
  func restoredAgain(refundedAfterDays: Int64?, expected: String, purchases: Int) {
    let row = Case("a restore after a refund", expected) { scene in
      let (first, time) = (ordered - .days(60), ordered - .days(2))
      scene.time = time
      scene.transaction("T1") { ($0.purchaseDate, $0.revocation) = (first, Revocation(date: time - .days(20))) }
      let bought = [("T3", Int64(0)), ("T4", 2)].map { id, days in
        scene.transaction(id) { record in
          (record.originalTransactionId, record.originalPurchaseDate) = ("T1", first)
          record.purchaseDate = time + .days(days)
          if id == "T3" { record.revocation = refundedAfterDays.map { Revocation(date: time + .days($0)) } }
        }
      }
      scene.order(by: "ann", with: .signed(bought[0]), isServed: refundedAfterDays == nil) { order in
        if refundedAfterDays != nil { order.status = .refunded }
      }
    }
    #expect(row.findings == expected)
    let folded = TransactionRecord.foldingPurchases(row.scene.world.transactions.reversed())
    #expect(Set(folded.map(\.purchaseKey)).count == purchases)
  }
}
