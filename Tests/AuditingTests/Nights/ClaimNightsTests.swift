import Foundation
import Postgres
import Reconciliation
import Reporting
import Settings
import ShopDatabases
import Streams
import TestSupport
import Testing

@testable import AuditStore
@testable import Auditing
@testable import Run
@testable import SalesStore
@testable import SampleWorlds

@Suite struct ClaimNightsTests {
  @Test("A stated ID without a proof, or of another product, takes no payment from the order whose receipt contains it")
  func refusedNames() async throws {
    var rows = ShopRows()
    for (number, namer) in ["none", "stranger", "unproven", "other-product"].enumerated() {
      let id = "T\(number)"
      rows.transaction(id)
      rows.order("beside-\(namer)", by: "ann-\(number)", names: "unknown1-\(number)", isUnknown: true, containing: [id])
      switch namer {
      case "stranger": rows.order(namer, by: "bob", names: id, product: "sword", isKnown: true)
      case "unproven": rows.order(namer, by: "bob", names: id, isKnown: true)
      case "other-product": rows.order(namer, by: "ann-\(number)", names: id, product: "sword", containing: [id])
      default: break
      }
    }
    let night = try await rows.audited()
    for (number, namer) in ["none", "stranger", "unproven", "other-product"].enumerated() {
      #expect(night.payments["beside-\(namer)"] == "paid T\(number)", "\(namer)")
    }
    #expect(night.payments["unproven"] == "unpaid duplicate T2")
    #expect(night.payments["stranger"] == "unpaid product_mismatch T1")
    #expect(night.payments["other-product"] == "unpaid product_mismatch T3")
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") })
  }

  @Test("An unverified receipt takes no payment from another order, but pays an order without competitors")
  func unprovenReceipts() async throws {
    var rows = ShopRows()
    for id in ["N1", "P1", "B1", "L1", "A1", "X1", "O1"] { rows.transaction(id) }
    // A stated ID beats an unverified proof without a stated ID.
    rows.order("names", by: "ann", names: "N1", isKnown: true)
    rows.order("forges-names", by: "bob", hours: -1, containing: ["N1"], isUnproven: true)
    // A signature of Apple beats a stated ID with an unverified proof.
    rows.order("proves", by: "ann", containing: ["P1"], kind: "signed")
    rows.order(
      "forges-proves", by: "bob", names: "P1", hours: -1, containing: ["P1"], kind: "transaction", isUnproven: true)
    rows.order("both", by: "ann", names: "B1", containing: ["B1"], kind: "signed")
    rows.order("forges-both", by: "bob", names: "B1", hours: -1, containing: ["B1"], isUnproven: true)
    rows.order("listed", by: "ann", containing: ["L1"])
    rows.order("forges-listed", by: "bob", hours: -1, containing: ["L1"], isUnproven: true)
    rows.order("alone", by: "cid", containing: ["A1"], kind: "transaction", isUnproven: true)
    rows.order("alone-named", by: "dan", names: "O1", containing: ["O1"], kind: "transaction", isUnproven: true)
    for name in ["x1", "x2"] { rows.order(name, by: name, containing: ["X1"], isUnproven: true) }
    let night = try await rows.audited()
    for (order, id) in [
      ("names", "N1"), ("proves", "P1"), ("both", "B1"), ("listed", "L1"), ("alone", "A1"), ("alone-named", "O1"),
    ] {
      #expect(night.payments[order] == "paid \(id)", "\(order)")
    }
    for order in ["forges-proves", "forges-both"] {
      #expect(night.payments[order]?.hasPrefix("unpaid duplicate") == true, "\(order): \(night.payments[order] ?? "")")
    }
    for order in ["forges-names", "forges-listed", "x1", "x2"] {
      #expect(night.payments[order]?.hasPrefix("unconfirmed unreadable") == true, "\(night.payments[order] ?? "")")
    }
  }

  @Test("An order that states a first period and is paid by a later one leaves the first period to another order")
  func namedSubscription() async throws {
    var rows = ShopRows()
    rows.transaction("S1", product: "club", hours: -31 * 24, expires: true, isRenewal: false)
    rows.transaction("S2", of: "S1", product: "club", firstHours: -31 * 24, expires: true, isRenewal: true)
    rows.order(
      "first", by: "ann", names: "unknown", product: "club", hours: -31 * 24, isUnknown: true, containing: ["S1"])
    rows.order("second", by: "ann", names: "S1", product: "club", containing: ["S1", "S2"])
    let night = try await rows.audited()
    #expect(night.payments["first"] == "paid S1" && night.payments["second"] == "paid S2")
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") })
  }

  @Test func anotherPersonsOrderOfALaterPeriodIsFoundByAnyEarlierPeriod() async throws {
    var rows = ShopRows()
    func subscription(_ original: String, _ users: [String], from first: Int, isRenewal: Bool = true) {
      for (place, user) in users.enumerated() {
        let (id, hours) = ("\(original)-\(first + place)", -31 * 24 * Int64(users.count - 1 - place))
        rows.transaction(
          id, of: original, product: "club", hours: hours, firstHours: -700 * 24, expires: true, isRenewal: isRenewal)
        rows.order("o-\(id)", by: user, names: id, product: "club", hours: hours, isKnown: true)
      }
    }
    // The first period of A is unknown. B is bought again each month, C changes hands twice, D is of two persons.
    subscription("A", ["ann", "ann", "bob", "bob"], from: 20)
    subscription("B", ["cid", "dan"], from: 2, isRenewal: false)
    subscription("C", ["eva", "fay", "eva"], from: 1)
    subscription("D", ["gil", "hal", "ida"], from: 1)
    let night = try await rows.audited()
    let accused = night.findings.filter { $0.hasPrefix("wrong_user") }
    #expect(accused == ["A-22", "A-23", "B-3", "C-2", "D-2"].reduce(into: []) { $0.insert("wrong_user on o-\($1)") })
  }

  @Test("An order that states the original ID continues a subscription only if it owns a period")
  func ownersOfPeriods() async throws {
    let day: Int64 = 31 * 24
    var rows = ShopRows()
    func subscription(_ name: String) {
      rows.transaction("S1-\(name)", product: "club", hours: -day, expires: true, isRenewal: false)
      rows.transaction(
        "S2-\(name)", of: "S1-\(name)", product: "club", firstHours: -day, expires: true, isRenewal: true)
    }
    for name in ["late", "lost", "shared"] { subscription(name) }
    // Bob states the original ID a month later. He owns the first period, because no other order claims it.
    rows.order("bob-late", by: "bob", names: "S1-late", product: "club", hours: 1)
    rows.order("ann-late", by: "ann", product: "club", containing: ["S2-late"], kind: "signed")
    // Cid has the first period, so that Bob's order owns none.
    rows.order("cid-1", by: "cid", names: "S1-lost", product: "club", hours: -day)
    rows.order("cid-2", by: "cid", product: "club", containing: ["S2-lost"], kind: "signed")
    rows.order("bob-lost", by: "bob", names: "S1-lost", product: "club", hours: 1)
    // Several orders could own each period, and the owners are two persons.
    rows.order("dan-1", by: "dan", product: "club", hours: -day, containing: ["S1-shared"], kind: "signed")
    rows.order("eva-1", by: "eva", names: "S1-shared", product: "club", hours: -day + 1, isServed: false)
    rows.order("fay-2", by: "fay", product: "club", containing: ["S2-shared"], kind: "signed")
    rows.order("gil-2", by: "gil", names: "S2-shared", product: "club", hours: 1, isServed: false)
    let night = try await rows.audited()
    #expect(night.payments["bob-late"] == "paid S1-late" && night.payments["ann-late"] == "paid S2-late")
    #expect(night.payments["cid-1"] == "paid S1-lost" && night.payments["cid-2"] == "paid S2-lost")
    #expect(night.payments["bob-lost"]?.hasPrefix("unpaid duplicate") == true, "\(night.payments)")
    #expect(night.payments["dan-1"] == "paid S1-shared" && night.payments["fay-2"] == "paid S2-shared")
    let accused = night.findings.filter { $0.hasPrefix("wrong_user") }
    #expect(accused == ["wrong_user on ann-late", "wrong_user on fay-2"])
  }

  @Test func anOrderWithoutAReceiptIsLinkedByTokenToListedPurchases() async throws {
    let token = "6a1f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"
    var rows = ShopRows()
    // The retried order has the goods, but the receipt was sent for the first attempt.
    rows.transaction("R1", token: token)
    rows.order("first", by: "ann", containing: ["R1"], isServed: false, token: token)
    rows.order("retry", by: "ann", hours: 1, token: token)
    // The receipts of both orders were sent for one of them.
    let other = "7b2f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"
    for id in ["B1", "B2"] { rows.transaction(id, product: "coins", token: other) }
    rows.order("both", by: "bob", product: "coins", containing: ["B1", "B2"], kind: "signed", token: other)
    rows.order("none", by: "bob", product: "coins", hours: 1, token: other.uppercased())
    // A purchase with a proof of its own order, and an order with another token.
    let third = "8c3f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"
    rows.transaction("P1", product: "gold", token: third)
    rows.order("proves", by: "cid", product: "gold", containing: ["P1"], kind: "signed", token: third)
    rows.order("cart", by: "cid", product: "gold", hours: 1, isServed: false, token: third)
    rows.order("apart", by: "dan", product: "gold", hours: 1, isServed: false, token: token)
    let night = try await rows.audited()
    #expect(night.payments["retry"] == "paid R1" && night.payments["first"] == "unpaid duplicate R1")
    #expect(night.payments["both"]?.hasPrefix("paid B") == true, "\(night.payments)")
    #expect(night.payments["none"]?.hasPrefix("paid B") == true, "\(night.payments)")
    #expect(night.payments["proves"] == "paid P1" && night.payments["cart"] == "unpaid duplicate P1")
    #expect(night.payments["apart"] == "unpaid no_evidence")
    let accusing = night.findings.filter { $0.hasPrefix("orphan_payment") || $0.hasPrefix("charged_twice") }
    #expect(accusing.isEmpty, "\(accusing)")
  }

  @Test("A further row of a delivery ID gives no order the goods that decide between orders of one person")
  func goodsOfRepeatedDeliveries() async throws {
    var rows = ShopRows()
    rows.transaction("P1")
    rows.order("beside", by: "bob", product: "coins")
    rows.order("near", by: "ann", containing: ["P1"], isServed: false)
    rows.order("repeats", by: "ann", hours: 5, containing: ["P1"], isServed: false)
    rows.repeatDelivery(of: "beside", on: "repeats")
    let night = try await rows.audited()
    #expect(night.payments["near"] == "paid P1", "\(night.payments)")
  }

  @Test("An account token links orders whose receipts are about other purchases")
  func crossedReceipts() async throws {
    let tokens = ["5a", "5b", "5c", "5d", "5e"].map { $0 + "1f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a" }
    var rows = ShopRows()
    // The client attached each receipt to the other order.
    rows.transaction("X1", token: tokens[0])
    rows.transaction("X2", product: "gold", token: tokens[0])
    rows.order("gems", by: "ann", containing: ["X2"], kind: "signed", token: tokens[0])
    rows.order("gold", by: "ann", product: "gold", containing: ["X1"], kind: "signed", token: tokens[0])
    // A later order of another product has a receipt that lists the purchase of the first.
    rows.transaction("Y1", product: "sword", hours: -20 * 24, token: tokens[1])
    rows.transaction("Y2", token: tokens[1])
    rows.order("listing-old", by: "bob", containing: ["Y1"], token: tokens[1])
    rows.order("listing-all", by: "bob", product: "gold", hours: 24, containing: ["Y1", "Y2"], token: tokens[1])
    // The one order that refers to the purchase is outside its window.
    rows.transaction("Z1", token: tokens[2])
    rows.order("late", by: "cid", names: "Z1", hours: -200, isKnown: true, isServed: false, token: tokens[2])
    rows.order("near", by: "cid", containing: ["Y1"], token: tokens[2])
    // An order of the same product refers to the purchase, and the receipts of the other order do not contain it.
    rows.transaction("W0", product: "sword", hours: -20 * 24, token: tokens[3])
    rows.transaction("W1", token: tokens[3])
    rows.transaction("W2", hours: 2, token: tokens[3])
    rows.order("once", by: "dan", names: "W1", containing: ["W0", "W1", "W2"], token: tokens[3])
    rows.order("again", by: "dan", hours: 2, containing: ["W0"], kind: "signed", token: tokens[3])
    rows.transaction("V1", token: tokens[4])
    rows.order("failed", by: "eve", names: "V1", isKnown: true, isServed: false, token: tokens[4])
    rows.order("repeated", by: "eve", hours: 1, containing: ["W0"], token: tokens[4])
    let night = try await rows.audited()
    #expect(night.payments["gems"] == "paid X1" && night.payments["gold"] == "paid X2")
    #expect(night.payments["listing-old"] == "paid Y2" && night.payments["near"] == "paid Z1", "\(night.payments)")
    #expect(night.payments["once"] == "paid W1" && night.payments["again"] == "paid W2", "\(night.payments)")
    #expect(night.payments["repeated"] == "paid V1" && night.payments["failed"] == "unpaid duplicate V1")
    #expect(!night.findings.contains { $0.hasPrefix("charged_twice") }, "\(night.findings)")
  }

  @Test("A purchase after a full refund has its own date, also where its original transaction is a restore's")
  func repurchases() async throws {
    let token = "4a1f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"
    var rows = ShopRows()
    for (name, token) in [("A", token), ("B", nil)] as [(String, String?)] {
      rows.transaction("\(name)1", product: "sword", hours: -240, isRevoked: true, token: token)
      rows.transaction("\(name)2", of: "\(name)1", product: "sword", hours: 30, firstHours: -240, token: token)
    }
    rows.order("token", by: "ann", product: "sword", hours: 30, token: token)
    rows.order("listed", by: "bob", product: "sword", hours: 30, containing: ["B1", "B2"])
    rows.order("beside", by: "bob", product: "coins", hours: 31, containing: ["B1", "B2"])
    let night = try await rows.audited()
    #expect(night.payments["token"] == "paid A2" && night.payments["listed"] == "paid B2", "\(night.payments)")
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") }, "\(night.findings)")
  }

  @Test("A purchase is no second charge of an order if another order of the person proves it")
  func secondPurchases() async throws {
    var rows = ShopRows()
    for (user, other) in [("ann", "ann"), ("bob", "cid")] {
      rows.transaction("\(user)-1")
      rows.transaction("\(user)-2", hours: 24)
      rows.order("\(user)-first", by: user, names: "\(user)-1", containing: ["\(user)-1", "\(user)-2"])
      rows.order(
        "\(user)-second", by: other, names: "\(user)-2", hours: -90, containing: ["\(user)-2"], kind: "signed")
    }
    let night = try await rows.audited()
    #expect(night.payments["ann-first"] == "paid ann-1" && night.payments["ann-second"] == "paid ann-2")
    // Outside the window, a proof of another person takes nothing from an order inside it.
    #expect(night.payments["bob-second"] == "unpaid duplicate bob-2")
    #expect(night.findings.filter { $0.hasPrefix("charged_twice") } == ["charged_twice on bob-first"])
  }

  @Test("An order with an unknown ID owns the purchase in its receipt, despite a worse claimant that states it")
  func unknownID() async throws {
    var rows = ShopRows()
    for id in ["T1", "R1"] { rows.transaction(id) }
    rows.order("thief", by: "bob", names: "T1", hours: -60 * 24, containing: ["T1"])
    rows.order("payer", by: "ann", names: "junk-1", isUnknown: true, containing: ["T1"])
    // The retried order has the goods, and states an ID that Apple does not know.
    rows.order("first", by: "cid", names: "R1", containing: ["R1"], isServed: false)
    rows.order("retry", by: "cid", names: "junk-2", hours: 1, isUnknown: true, containing: ["R1"])
    let night = try await rows.audited()
    #expect(night.payments["payer"] == "paid T1" && night.payments["thief"] == "unpaid duplicate T1")
    #expect(night.payments["retry"] == "paid R1" && night.payments["first"] == "unpaid duplicate R1")
  }

  @Test("A stated original ID links an order to the period nearest in time, whatever other references the period has")
  func periodsByOriginalID() async throws {
    let month: Int64 = 31 * 24
    var rows = ShopRows()
    for (id, isRenewal) in [("token", false), ("taken", true), ("cached", true)] {
      rows.transaction("S1-\(id)", product: "club", hours: -month, expires: true, isRenewal: false)
      rows.transaction(
        "S2-\(id)", of: "S1-\(id)", product: "club", firstHours: -month, expires: true, isRenewal: isRenewal,
        token: id == "token" ? "6a1f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a" : nil)
      rows.order(
        "first-\(id)", by: id, names: "S1-\(id)", product: "club", hours: -month, containing: ["S1-\(id)"],
        kind: "signed")
      rows.order(
        "second-\(id)", by: id, names: "S1-\(id)", product: "club",
        containing: id == "cached" ? ["S1-cached"] : nil, kind: "signed")
    }
    rows.order("thief", by: "bob", names: "S2-taken", product: "club", hours: -2 * month)
    let night = try await rows.audited()
    for id in ["token", "taken", "cached"] {
      #expect(night.payments["first-\(id)"] == "paid S1-\(id)", "\(id)")
      #expect(night.payments["second-\(id)"] == "paid S2-\(id)", "\(id)")
    }
    #expect(night.payments["thief"] == "unpaid duplicate S2-taken")
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") || $0.hasPrefix("renewal_without_order") })
  }

  @Test("An order is compared with the user of an account token only if it refers to a transaction with the token")
  func tokenOfLinkedPeriod() async throws {
    let month: Int64 = 31 * 24
    var rows = ShopRows()
    for (id, token) in [
      ("unknown", "6a1f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"), ("known", "7b2f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"),
    ] {
      // The order states the first period, and its subscription alone links the order to the second one.
      if id == "known" {
        rows.transaction("S1-\(id)", product: "club", hours: -month, expires: true, isRenewal: false, token: token)
      }
      rows.transaction(
        "S2-\(id)", of: "S1-\(id)", product: "club", firstHours: -month, expires: true, isRenewal: true, token: token)
      rows.order("renews-\(id)", by: "ann", names: "S1-\(id)", product: "club")
      rows.order("has-token-\(id)", by: "bob", product: "gems", token: token)
    }
    let night = try await rows.audited()
    for id in ["unknown", "known"] { #expect(night.payments["renews-\(id)"] == "paid S2-\(id)", "\(id)") }
    let accused = night.findings.filter { $0.hasPrefix("wrong_user") }
    #expect(accused == ["wrong_user on renews-known"], "\(night.findings)")
  }

  @Test("A renewal booked by another person is a finding, and one booked by the same person is not")
  func renewalOfAnother() async throws {
    var rows = ShopRows()
    let month: Int64 = 31 * 24
    for (id, isStated) in [("stated", true), ("proven", false)] {
      rows.transaction("S1-\(id)", product: "club", hours: -2 * month, expires: true, isRenewal: false)
      for (period, hours) in [("S2", -month), ("S3", 0)] {
        rows.transaction(
          "\(period)-\(id)", of: "S1-\(id)", product: "club", hours: hours, firstHours: -2 * month, expires: true,
          isRenewal: true)
      }
      for (period, user, hours) in [("S1", "ann", -2 * month), ("S2", "bob", -month), ("S3", "ann", 0)] {
        rows.order(
          "\(period)-of-\(id)", by: "\(user)-\(id)", names: isStated ? "\(period)-\(id)" : nil, product: "club",
          hours: hours, containing: isStated ? nil : ["\(period)-\(id)"], kind: "signed")
      }
    }
    let night = try await rows.audited()
    let wrong = night.findings.filter { $0.hasPrefix("wrong_user") }
    #expect(wrong == ["wrong_user on S2-of-stated", "wrong_user on S2-of-proven"], "\(night.findings)")
  }

  @Test("Goods decide between orders of one person that state an ID, but not against an order of another person")
  func bestOrderOfEachPerson() async throws {
    var rows = ShopRows()
    rows.transaction("T1")
    for (hours, isServed) in [(Int64(1), false), (2, false), (10, true)] {
      rows.order("ann-\(hours)", by: "ann", names: "T1", hours: hours, isServed: isServed)
    }
    rows.order("bob", by: "bob", names: "T1", hours: 3)
    let night = try await rows.audited()
    #expect(night.payments["bob"] == "paid T1")
    for hours in [1, 2, 10] { #expect(night.payments["ann-\(hours)"] == "unpaid duplicate T1") }
  }

  @Test("The original purchase of an owned restore is no orphan") func purchaseBehindRestore() async throws {
    var rows = ShopRows()
    for (names, order) in [("R2", "naming"), (nil, "silent")] as [(String?, String)] {
      let (purchase, restore) = (names == nil ? "Q9" : "R1", names == nil ? "Q2" : "R2")
      rows.transaction(purchase)
      rows.transaction(restore, of: purchase, hours: 2, firstHours: 0)
      rows.order(order, by: order, names: names, hours: 2, containing: [purchase, restore])
    }
    let night = try await rows.audited()
    #expect(night.payments.values.allSatisfy { $0.hasPrefix("paid ") })
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") })
  }

  @Test("An order with a proof of another app is unconfirmed, whether or not another receipt lists its purchase")
  func otherApp() async throws {
    var rows = ShopRows()
    for id in ["alone", "beside"] {
      rows.transaction("own1-\(id)", product: "sword")
      rows.transaction("other-\(id)", product: "shield", bundle: "com.example.other")
      rows.order(id, by: id, containing: ["own1-\(id)"])
      rows.receipt("s-\(id)", for: id, by: id, kind: "signed", bundle: "com.example.other", containing: ["other-\(id)"])
    }
    rows.order("buyer", by: "beside", names: "own1-beside", product: "sword", containing: ["own1-beside"])
    let night = try await rows.audited()
    #expect(night.payments["alone"] == "unconfirmed not_in_receipt")
    #expect(night.payments["beside"] == "unconfirmed not_in_receipt")
    #expect(night.payments["buyer"] == "paid own1-beside")
  }

  @Test("An order whose receipt lists a contradictory purchase is unconfirmed, whatever other receipts list it")
  func contradiction() async throws {
    var rows = ShopRows()
    for id in ["alone", "both"] {
      rows.transaction("T1-\(id)")
      rows.transaction("U3-\(id)", product: "sword", isContradictory: true)
      let further = id == "both" ? ["U3-\(id)"] : []
      rows.order("owner-\(id)", by: "ann-\(id)", names: "T1-\(id)", containing: ["T1-\(id)"] + further)
      rows.order("loser-\(id)", by: "bob-\(id)", hours: 1, containing: ["T1-\(id)", "U3-\(id)"])
    }
    let night = try await rows.audited()
    for id in ["alone", "both"] {
      #expect(night.payments["owner-\(id)"] == "paid T1-\(id)")
      #expect(night.payments["loser-\(id)"] == "unconfirmed contradiction", "\(id)")
    }
    #expect(!night.findings.contains { $0.hasPrefix("duplicate_claim") })
  }

  @Test("A purchase and its restore pay one order, whichever of the two IDs other orders claim")
  func purchaseAndRestore() async throws {
    var rows = ShopRows()
    for id in ["named", "silent", "refunded", "supported"] {
      rows.transaction("P1-\(id)", isRevoked: id == "refunded")
      rows.transaction("R2-\(id)", of: "P1-\(id)", hours: 2, firstHours: 0)
      rows.order("buy-\(id)", by: "ann-\(id)", names: "P1-\(id)", containing: id == "supported" ? nil : ["P1-\(id)"])
      rows.order(
        "again-\(id)", by: "bob-\(id)", names: id == "silent" ? nil : "R2-\(id)", hours: 2, containing: ["R2-\(id)"])
    }
    let night = try await rows.audited()
    for id in ["named", "silent", "refunded", "supported"] {
      #expect(night.payments["buy-\(id)"] == (id == "refunded" ? "reversed P1-\(id)" : "paid P1-\(id)"))
      #expect(night.payments["again-\(id)"] == "unpaid duplicate \(id == "silent" ? "P1" : "R2")-\(id)")
      #expect(night.findings.contains("duplicate_claim on again-\(id)"))
      #expect(night.findings.contains("delivered_not_paid on again-\(id)"))
    }
    #expect(!night.findings.contains { $0.hasPrefix("orphan_payment") })
  }

  @Test("A refunded renewal without an order is a finding while goods of its subscription are not taken back")
  func refundedRenewals() async throws {
    var rows = ShopRows()
    for (id, isServed) in [("served", true), ("ended", false)] {
      rows.transaction("S1-\(id)", product: "club", hours: -31 * 24, expires: true, isRenewal: false)
      rows.transaction(
        "S2-\(id)", of: "S1-\(id)", product: "club", firstHours: -31 * 24, expires: true, isRenewal: true,
        isRevoked: true)
      rows.order(
        id, by: id, names: "S1-\(id)", product: "club", hours: -31 * 24, containing: ["S1-\(id)"], isServed: isServed)
    }
    let night = try await rows.audited()
    let renewals = night.findings.filter { $0.hasPrefix("renewal_without_order") }
    #expect(renewals == ["renewal_without_order on S2-served"])
  }

  @Test("An unpaid order and the orphan payment that could pay it count one amount at risk")
  func sharedStakes() async throws {
    var rows = ShopRows()
    rows.transaction("T1", price: 9_900)
    rows.transaction("T2", price: 9_900)
    for (id, user) in [("T1", "ann"), ("T2", "bob")] {
      rows.receipt("lost-\(id)", for: nil, by: user, containing: [id])
    }
    rows.order("accused", by: "ann")
    let night = try await rows.audited()
    #expect(night.findings == ["delivered_not_paid on accused", "orphan_payment on T1", "orphan_payment on T2"])
    #expect(night.atStake == ["delivered_not_paid": ["9.90"], "orphan_payment": ["", "9.90"]])
  }

  @Test("An order that states only a bundle's transaction ID owns the period, whichever ID is the smaller one")
  func bundlesByID() async throws {
    var rows = ShopRows()
    for (bundle, original) in [("1-bundle", "5-first"), ("9-bundle", "4-first")] {
      for part in ["a", "b"] {
        rows.transaction(
          "\(bundle)-\(part)", of: original, product: "club", firstHours: -60 * 24, expires: true, isRenewal: true,
          period: bundle)
      }
      rows.order("order-\(bundle)", by: "ann-\(bundle)", names: bundle, product: "club", isUnknown: true)
    }
    // An order that states the original ID is linked to the period, too.
    rows.order("later", by: "ann-1-bundle", names: "5-first", product: "club", hours: 2, isServed: false)
    let night = try await rows.audited()
    for bundle in ["1-bundle", "9-bundle"] { #expect(night.payments["order-\(bundle)"] == "paid \(bundle)-a") }
    #expect(night.payments["later"] == "unpaid duplicate 5-first", "\(night.payments)")
    #expect(!night.findings.contains { $0.hasPrefix("renewal_without_order") }, "\(night.findings)")
  }

  @Test("An order that states a bundle's transaction ID owns the period, however long before it the order was created")
  func oldBundlesByID() async throws {
    var rows = ShopRows()
    for part in ["a", "b"] {
      rows.transaction(
        "7-bundle-\(part)", of: "6-first", product: "club", firstHours: -60 * 24, expires: true, isRenewal: true,
        period: "7-bundle")
    }
    rows.order("order", by: "ann", names: "7-bundle", product: "club", hours: -10 * 24, isUnknown: true)
    rows.order("original", by: "ann", names: "6-first", product: "club", hours: -10 * 24, isServed: false)
    let night = try await rows.audited()
    #expect(night.payments["order"] == "paid 7-bundle-a")
    #expect(night.payments["original"]?.hasPrefix("paid") == false)
    #expect(!night.findings.contains { $0.hasPrefix("renewal_without_order") }, "\(night.findings)")
  }

  @Test("A second ID of a purchase changes no link between it and the orders of its account")
  func secondIDOfAccount() async throws {
    let token = "9d4f0c5e-0d7b-4c5e-9d8a-1f2e3d4c5b6a"
    var nights: [ShopRows.Night] = []
    for ids in [["S1"], ["S1", "S1-second"]] {
      var rows = ShopRows()
      for id in ids {
        rows.transaction(
          id, of: "S0", product: "club", firstHours: -60 * 24, expires: true, isRenewal: false, token: token,
          period: "W1")
      }
      rows.transaction("X1", product: "coins")
      rows.transaction("T1", product: "club", hours: 9, expires: true, isRenewal: false, token: token)
      rows.order("first", by: "ann", product: "club", containing: ["S1"], isServed: false, token: token)
      rows.order("second", by: "ann", product: "club", hours: 1, containing: ["X1"], token: token)
      rows.order("third", by: "ann", names: "T1", product: "club", hours: 9, containing: ["T1"], token: token)
      nights.append(try await rows.audited())
    }
    #expect(nights[0].payments["second"] == "paid S1" && nights[0].payments["third"] == "paid T1")
    #expect(nights[0].payments == nights[1].payments && nights[0].findings == nights[1].findings)
  }

  @Test("A purchase without references is an orphan, unless an order owns its restore")
  func unmentionedPurchase() async throws {
    var rows = ShopRows()
    for id in ["owned", "lost", "unstated"] {
      rows.transaction("P1-\(id)")
      rows.transaction("R2-\(id)", of: "P1-\(id)", hours: 2, firstHours: 0)
    }
    rows.order("order", by: "ann", names: "R2-owned", hours: 2, containing: ["R2-owned"])
    rows.order("unstated", by: "bob", hours: 2, containing: ["R2-unstated"])
    rows.order("other", by: "cid", hours: 4, containing: ["R2-unstated"])
    let night = try await rows.audited()
    #expect(night.payments["order"] == "paid R2-owned" && night.payments["unstated"] == "paid P1-unstated")
    #expect(night.payments["other"] == "unpaid duplicate P1-unstated")
    #expect(night.findings.filter { $0.hasPrefix("orphan_payment") } == ["orphan_payment on P1-lost"])
  }

  @Test("An orphan is explained by the order that could own another ID of the purchase alone")
  func orphanWithAnotherID() async throws {
    var rows = ShopRows()
    rows.transaction("P1")
    rows.transaction("R2", of: "P1", hours: 2, firstHours: 0)
    // Both orders are of another product. Only one of them refers to the restore.
    rows.order("both", by: "ann", product: "coins", containing: ["P1", "R2"])
    rows.order("first", by: "bob", product: "coins", containing: ["P1"])
    let night = try await rows.audited()
    let orphan = "orphan_payment on P1"
    #expect(night.findings.contains(orphan))
    #expect(night.explained["both"]?.contains(orphan) == true, "\(night.explained)")
  }
}

struct ShopRows {
  private static let day = CrowdedShop.asOf - .days(3)

  private var script = ""
  private var orderIds: [String] = []
  private var transactionIds: [String] = []

  struct Night {
    /// Payment, reason and transaction, by order.
    var payments: [String: String] = [:]
    /// The findings, each as `kind on subject`.
    var findings: Set<String> = []
    /// The findings that apply according to `explain`, by order.
    var explained: [String: Set<String>] = [:]
    /// The sorted amounts at risk, by kind.
    var atStake: [String: [String]] = [:]
  }

  private static func text(_ value: String?) -> String { value.map { "'\($0)'" } ?? "NULL" }

  private static func time(_ hours: Int64) -> String {
    "timestamptz 'epoch' + \((day + .hours(hours)).microseconds) * interval '1 microsecond'"
  }

  /// Adds a delivered order. `isUnknown` and `isKnown` are Apple's answer about the stated ID. `isUnproven`: the
  /// receipt's signature cannot be verified. `containing`: the transactions in a receipt of the user.
  mutating func order(
    _ id: String, by user: String, names: String? = nil, product: String = "gems", hours: Int64 = 0,
    isUnknown: Bool = false, isKnown: Bool = false, containing: [String]? = nil, kind: String = "app",
    isUnproven: Bool = false, isServed: Bool = true, token: String? = nil
  ) {
    let (date, asOf) = (Self.time(hours), Self.time(48))
    orderIds.append(id)
    script += """
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, transaction_id,
        app_account_token, created_at, updated_at)
      VALUES ('\(id)', '\(user)', '\(product)', 1, 9.90, 'USD', 'verified', \(Self.text(names)),
        \(Self.text(token)), \(date), \(date));
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at,
        revoked_at)
      VALUES ('\(id)', '\(id)', '\(user)', '\(product)', 1, \(date) + interval '1 minute',
        \(isServed ? "NULL" : asOf));

      """
    if let names, isUnknown || isKnown {
      let subject = CheckSubject.lookup(names, of: CrowdedShop.bundle).id.text
      script += """
        INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, received_at, outcome, reason, brought_count,
          last_attempt, answered_at)
        VALUES ('lookup', '\(subject)', \(date), '\(isKnown ? "verified" : "not_found")',
          \(isKnown ? "NULL" : "'not_found'"), \(isKnown ? 1 : 0), \(asOf), \(asOf));
        INSERT INTO night_audit.lookups VALUES ('\(id)', '\(subject)');

        """
      if isKnown { link(names, to: subject, "lookup") }
    }
    guard let containing else { return }
    receipt("r-\(id)", for: id, by: user, hours: hours, kind: kind, containing: containing, isUnproven: isUnproven)
  }

  /// Adds a further row with the delivery ID of an order, on an order with a greater ID.
  mutating func repeatDelivery(of orderId: String, on other: String) {
    script += """
      ALTER TABLE sales.deliveries DROP CONSTRAINT IF EXISTS deliveries_pkey;
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      SELECT delivery_id, '\(other)', user_id, product_id, quantity, delivered_at FROM sales.deliveries
      WHERE delivery_id = '\(orderId)';

      """
  }

  mutating func receipt(
    _ id: String, for orderId: String?, by user: String, hours: Int64 = 0, kind: String = "app",
    bundle: String = CrowdedShop.bundle, signed: String? = nil, containing: [String], isUnproven: Bool = false
  ) {
    let signed = signed ?? (kind == "signed" ? containing.first : nil)
    let (date, asOf) = (Self.time(hours), Self.time(48))
    script += """
      INSERT INTO sales.receipts (receipt_id, order_id, user_id, payload, status, received_at)
      VALUES ('\(id)', \(Self.text(orderId)), '\(user)', 'x', 'verified', \(date));
      INSERT INTO night_audit.receipt_checks (subject_kind, subject_id, order_id, received_at, payload_kind, outcome,
        environment, bundle_id, signed_transaction_id, brought_count, last_attempt, is_unproven)
      VALUES ('receipt', '\(id)', \(Self.text(orderId)), \(date), '\(kind)', 'verified', 'Production',
        '\(bundle)', \(Self.text(signed)), \(containing.count), \(asOf), \(isUnproven));

      """
    for transactionId in containing { link(transactionId, to: id, "receipt") }
  }

  private mutating func link(_ transactionId: String, to subject: String, _ kind: String) {
    script += """
      INSERT INTO night_audit.receipt_transactions VALUES ('\(kind)', '\(subject)', 'Production', '\(transactionId)');

      """
  }

  /// - Parameter isRenewal: nil if unknown, as in verifyReceipt.
  mutating func transaction(
    _ id: String, of original: String? = nil, product: String = "gems", bundle: String = CrowdedShop.bundle,
    hours: Int64 = 0, firstHours: Int64? = nil, expires: Bool = false, isRenewal: Bool? = nil, isRevoked: Bool = false,
    isContradictory: Bool = false, price: Int64? = nil, token: String? = nil, period: String? = nil
  ) {
    let (date, asOf) = (Self.time(hours), Self.time(48))
    let expiry = expires ? "\(date) + interval '31 days'" : "NULL::timestamptz"
    transactionIds.append(id)
    script += """
      INSERT INTO night_audit.transactions (environment, transaction_id, original_transaction_id, bundle_id, product_id,
        quantity, purchased_at, original_purchased_at, expires_at, subscription_expires_at, revoked_at, revocation_told_at,
        tells_account_token, app_account_token, is_contradictory, is_renewal, channel, signed_at, checked_at,
        web_order_line_item_id, revocation_of_some_items, price_milliunits, currency)
      VALUES ('Production', '\(id)', '\(original ?? id)', '\(bundle)', '\(product)', 1, \(date),
        \(Self.time(firstHours ?? hours)), \(expiry), \(expiry), \(isRevoked ? Self.time(24) : "NULL"), \(asOf), \(token != nil),
        \(Self.text(token)),
        \(isContradictory), \(isRenewal.map { "\($0)" } ?? "NULL"), 'serverApi', \(asOf), \(asOf), \(Self.text(period)),
        \(isRevoked ? "false" : "NULL::boolean"),
        \(price.map { "\($0), 'USD'" } ?? "NULL, NULL"));

      """
  }

  /// Stores the rows in a database of their own, and returns the settings to audit it.
  func loaded() async throws -> Settings {
    var settings = Settings()
    settings.databaseURL = try await PrivatePostgres.shopDatabase()
    settings.apps = [Settings.App(name: "game", bundleId: CrowdedShop.bundle)]
    settings.channel = .verifyReceipt
    settings.reportDirectory = "/nonexistent"
    settings.formats = [.csv]
    settings.holdShare = .whole
    try await execute(settings.databaseURL, script)
    return settings
  }

  func audited() async throws -> Night {
    let folder = try TemporaryDirectory()
    let settings = try await loaded()
    let whole = try await PartsTests.report(settings, folder.file("whole"), partition: AuditPartition())
    let partition = AuditPartition(
      receipts: Cuts(quantilesOf: orderIds.map { Identifier("r-" + $0) }, count: 4),
      orders: Cuts(quantilesOf: orderIds.map { Identifier($0) }, count: 4),
      transactions: Cuts(quantilesOf: transactionIds.map { Identifier($0) }, count: 4))
    let parts = try await PartsTests.report(settings, folder.file("parts"), partition: partition)
    PartsTests.expectEqual(parts, whole, "\(partition)")
    var night = try Night(tables: CrowdedShop.tables(folder.file("whole")))
    for id in orderIds {
      let explanation = try await Explain(settings: settings).order(Identifier(id), asOf: CrowdedShop.asOf)
      let words = [explanation.payment, explanation.paymentReason?.rawValue].compactMap { $0 }.joined(separator: " ")
      let said = try #require(night.payments[id])
      #expect(said == words || said.hasPrefix(words + " "), "\(id) is explained as \(words)")
      if words == "paid" || words == "reversed" {
        let owned = explanation.transactions.filter(\.isOwned).map { "\(words) \($0.transactionId)" }
        #expect(owned.contains(said), "\(id) is \(said), and explained as \(owned)")
      }
      for duplicate in explanation.findings where duplicate.kind == .duplicateClaim && duplicate.stands {
        let payment = try #require(duplicate.transactionId)
        #expect(duplicate.reason.hasPrefix("The payment \(payment) "), "\(id): \(duplicate.reason)")
        let listed = explanation.transactions.map(\.transactionId)
        #expect(listed.contains(payment), "\(id) claims \(payment), and is explained by \(listed)")
      }
      let isAccused = explanation.findings.contains { $0.kind == .wrongUser && $0.orderId == Identifier(id) }
      #expect(night.findings.contains("wrong_user on \(id)") == isAccused, "\(id)")
      let applicable = explanation.findings.filter(\.stands)
      night.explained[id] = Set(
        applicable.map { "\($0.kind.rawValue) on \(($0.orderId ?? $0.transactionId)?.text ?? "")" })
    }
    return night
  }
}

extension ShopRows.Night {
  fileprivate init(tables: [String: [[String]]]) throws {
    for row in try Self.rows(tables["orders.csv"]) {
      payments[row["order_id"] ?? ""] =
        ["payment", "payment_reason", "transaction_id"].compactMap { row[$0] }.filter { !$0.isEmpty }
        .joined(separator: " ")
    }
    for row in try Self.rows(tables["findings.csv"]) {
      let subject = [row["order_id"], row["transaction_id"]].compactMap { $0 }.first { !$0.isEmpty }
      findings.insert("\(row["kind"] ?? "") on \(subject ?? "")")
      atStake[row["kind"] ?? "", default: []].append(row["at_stake"] ?? "")
      atStake[row["kind"] ?? ""]?.sort()
    }
  }

  private static func rows(_ table: [[String]]?) throws -> [[String: String]] {
    let table = try #require(table)
    let header = try #require(table.first)
    return table.dropFirst().map { row in Dictionary(zip(header, row)) { first, _ in first } }
  }
}
