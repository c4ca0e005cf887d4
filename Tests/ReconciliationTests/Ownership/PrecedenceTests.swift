import Reconciliation
import Testing

@testable import SampleWorlds

/// Rejected proofs, tokens and IDs among the orders that are linked to one purchase. A row lists the owner of T1.
@Suite struct PrecedenceTests {
  @Test(arguments: rows)
  func owner(row: Case<String>) {
    let facts = row.scene.world.matchedFacts().orders
    let owners = facts.values.filter { $0.claims.owned.contains { $0.isOf("T1") } }.map(\.order.orderId.text)
    #expect(owners.joined(separator: ",") == row.expected)
  }

  /// A row in whose world T1 has the account token A1.
  private static func row(_ name: String, _ owner: String, _ build: (inout ShopFixture) -> Void) -> Case<String> {
    Case(name, owner) { scene in
      scene.transaction { $0.appAccountToken = .stated("A1") }
      build(&scene)
    }
  }

  static let rows: [Case<String>] = [
    row("another token, without other claimants", "only") {
      $0.order("only", by: "stranger", stating: "T1", with: .list($0.payment)) { $0.appAccountToken = "b2" }
    },
    row("a forged proof gives a stated ID no claim", "payer") { scene in
      scene.order("forger", by: "thief", stating: "T1", hours: -1, with: .forged)
      scene.order("payer", by: "payer", stating: "T1")
    },
    row("a forged proof gives no claim, even without other claimants", "") {
      $0.order("forger", by: "thief", stating: "T1", hours: -1, with: .forged)
    },
    row("a forged proof, and Apple confirms the stated ID", "forger") {
      $0.order("forger", by: "thief", stating: "T1", hours: -1, with: .forged, lookup: .verified(nil))
    },
    row("a forged proof and a confirmed ID, beside a verified receipt", "payer") { scene in
      scene.order("forger", by: "thief", stating: "T1", hours: -1, with: .forged, lookup: .verified(nil))
      scene.order("payer", by: "payer", with: .list(scene.payment))
    },
    Case("a forged proof and a confirmed ID, beside a verified proof of another ID of the purchase", "payer") { scene in
      let periods = ["T1", "T2"].map { id in
        scene.transaction(id) {
          ($0.originalTransactionId, $0.webOrderLineItemId, $0.expiresDate) = ("T1", "W1", asOf + .days(9))
        }
      }
      scene.order("forger", by: "thief", stating: "T1", with: .forged, lookup: .verified(nil))
      scene.order("payer", by: "payer", hours: -5 * 24, with: .signed(periods[1]))
    },
    row("an unreadable payload is no worse than none: the nearer order", "damaged") { scene in
      scene.order("damaged", by: "payer", stating: "T1", with: .unreadable, lookup: .verified(nil))
      scene.order("late", by: "thief", stating: "T1", hours: 1)
    },
    row("an unreadable payload with the token before another token", "damaged") { scene in
      scene.order("damaged", by: "payer", stating: "T1", with: .unreadable, lookup: .verified(nil)) {
        $0.appAccountToken = "a1"
      }
      scene.order("early", by: "thief", stating: "T1", hours: -1) { $0.appAccountToken = "b2" }
    },
    row("after a rejected proof a stated ID is no link beside a verified proof", "proven") { scene in
      scene.order("damaged", by: "thief", stating: "T1", hours: -1, with: .unreadable, lookup: .verified(nil))
      scene.order("proven", by: "payer", with: .list(scene.payment))
    },
    row("after a rejected proof the account token is a link", "damaged") { scene in
      scene.order("damaged", by: "payer", stating: "T1", hours: -1, with: .unreadable, lookup: .verified(nil)) {
        $0.appAccountToken = "a1"
      }
      scene.order("proven", by: "payer", with: .list(scene.payment))
    },
    row("a proof of another app and a stated ID, beside a verified receipt", "payer") { scene in
      scene.order("foreign", by: "thief", stating: "T1", hours: -1, with: .empty(otherApp))
      scene.order("payer", by: "payer", stating: "T1", with: .list(scene.payment))
    },
  ]

  @Test(
    "An order with a rejected proof and the ID of another order's payment is no duplicate",
    arguments: [(false, "unpaid signature_invalid"), (true, "unconfirmed unreadable")])
  func rejectedBesidePayer(isUnreadable: Bool, payment: String) {
    let world = Self.row("a rejected proof", "payer") { scene in
      scene.order(
        by: "thief", stating: "T1", hours: -1, with: isUnreadable ? .unreadable : .forged, lookup: .verified(nil))
      scene.order("payer", by: "payer", stating: "T1", with: .list(scene.payment), isServed: true)
    }.scene.world
    #expect(world.judged()?.payment == payment && world.judged("payer")?.payment == "paid")
    #expect(world.finding(.duplicateClaim) == nil)
  }

  @Test("A purchase and its restore are one payment")
  func restoreOfOwned() {
    let world = shop { scene in
      scene.paidOrder()
      scene.order("again", stating: "T2", with: .signed(scene.transaction("T2") { $0.originalTransactionId = "T1" }))
    }
    #expect(world.judged("again")?.payment == "paid", "it has a verified proof")
    #expect(world.judged()?.payment == "unpaid duplicate")
  }

  @Test("Aliases form persons in any order")
  func people() {
    let people = People(aliases: [("c", "b"), ("d", "e"), ("b", "a")])
    #expect(people.isSame("a", "c") && people.isSame("e", "d") && people.isSame("z", "z"))
    #expect(!people.isSame("a", "d") && !people.isSame("z", "a"))
    #expect(people.person("c") == people.person("a"))
    #expect(people.ids(of: "c") == ["a", "b", "c"] && people.ids(of: "d") == ["d", "e"])
    #expect(people.ids(of: "x") == ["x"])
    #expect(people == People(aliases: [("a", "b"), ("e", "d"), ("c", "a")]))
  }
}

extension ShopFixture {
  fileprivate var payment: TransactionRecord { world.transactions[0] }
}
