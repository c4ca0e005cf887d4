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

  static let rows: [Case<String>] = [
    Case("another token, without other claimants", "only") {
      $0.proven("only", by: "stranger", names: true, token: "b2")
    },
    Case("a forged proof gives a stated ID no claim", "payer") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
      scene.named("payer", by: "payer", hours: 0)
    },
    Case("a forged proof gives no claim, even without other claimants", "") {
      $0.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
    },
    Case("a forged proof, and Apple confirms the stated ID", "forger") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
      scene.world.lookups["forger"] = .verified(nil)
    },
    Case("a forged proof and a confirmed ID, beside a verified receipt", "payer") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
      scene.world.lookups["forger"] = .verified(nil)
      scene.proven("payer", by: "payer", names: false)
    },
    Case("a forged proof and a confirmed ID, beside a verified proof of another ID of the purchase", "payer") { scene in
      let periods = ["T1", "T2"].map { scene.period($0) }
      scene.named("forger", by: "thief", hours: 0, proof: .rejected(.signatureInvalid))
      scene.world.lookups["forger"] = .verified(nil)
      let time = scene.time
      scene.order("payer", by: "payer", with: .signed(periods[1])) { $0.createdAt = time - .days(5) }
    },
    Case("an unreadable payload is no worse than none: the nearer order", "damaged") { scene in
      scene.named("damaged", by: "payer", hours: 0, proof: .rejected(.malformed))
      scene.world.lookups["damaged"] = .verified(nil)
      scene.named("late", by: "thief", hours: 1)
    },
    Case("an unreadable payload with the token before another token", "damaged") { scene in
      scene.named("damaged", by: "payer", hours: 0, token: "a1", proof: .rejected(.malformed))
      scene.world.lookups["damaged"] = .verified(nil)
      scene.named("early", by: "thief", hours: -1, token: "b2")
    },
    Case("after a rejected proof a stated ID is no link beside a verified proof", "proven") { scene in
      scene.named("damaged", by: "thief", hours: -1, proof: .rejected(.malformed))
      scene.world.lookups["damaged"] = .verified(nil)
      scene.proven("proven", by: "payer", names: false)
    },
    Case("after a rejected proof the account token is a link", "damaged") { scene in
      scene.named("damaged", by: "payer", hours: -1, token: "a1", proof: .rejected(.malformed))
      scene.world.lookups["damaged"] = .verified(nil)
      scene.proven("proven", by: "payer", names: false)
    },
    Case("a proof of another app and a stated ID, beside a verified receipt", "payer") { scene in
      scene.named("foreign", by: "thief", hours: -1, proof: .verified(.app))
      scene.proven("payer", by: "payer", names: true)
    },
  ]

  @Test("An order with a forged proof is reported for its proof, not as a duplicate")
  func forger() {
    var scene = ShopFixture()
    scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
    scene.world.lookups["forger"] = .verified(nil)
    scene.delivery("d1", of: scene.proven("payer", by: "payer", names: true))
    let world = scene.world
    #expect(world.findingNames == ["signature_invalid on forger", "status_mismatch on forger"])
    #expect(world.audited().judgements["forger"]?.payment == "unpaid signature_invalid")
    #expect(world.audited().judgements["payer"]?.payment == "paid")
  }

  @Test("An order with junk and the ID of another order's payment is unconfirmed")
  func junk() {
    var scene = ShopFixture()
    scene.named("junk", by: "thief", hours: -1, proof: .rejected(.malformed))
    scene.world.lookups["junk"] = .verified(nil)
    scene.proven("payer", by: "payer", names: true)
    #expect(scene.world.audited().judgements["junk"]?.payment == "unconfirmed unreadable")
  }

  @Test("A purchase and its restore are one payment")
  func restoreOfOwned() {
    var scene = ShopFixture()
    scene.paidOrder()
    let restored = scene.transaction("T2") { $0.originalTransactionId = "T1" }
    scene.signedProof(for: scene.order("again") { $0.transactionId = "T2" }, of: restored)
    let judgements = scene.world.audited().judgements
    #expect(judgements["again"]?.payment == "paid", "it has a verified proof")
    #expect(judgements["order"]?.payment == "unpaid duplicate")
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
  /// A subscription period, which has one purchase whatever its ID.
  fileprivate mutating func period(_ id: String) -> TransactionRecord {
    transaction(id) { record in
      (record.originalTransactionId, record.webOrderLineItemId) = ("T1", "W1")
      record.expiresDate = ShopFixture.asOf + .days(9)
    }
  }

  /// T1, with the account token A1.
  fileprivate var record: TransactionRecord {
    mutating get {
      if let known = world.transactions.first(where: { $0.transactionId == "T1" }) { return known }
      return transaction { $0.appAccountToken = .stated("A1") }
    }
  }

  /// An order that states T1.
  @discardableResult
  fileprivate mutating func named(
    _ text: String, by user: String, hours: Int64, token: String? = nil, proof: ProofState? = nil
  ) -> TransactionRecord {
    let record = self.record
    let time = self.time
    let order = order(text, by: user) { order in
      order.transactionId = "T1"
      order.appAccountToken = token
      order.createdAt = time + .hours(hours)
    }
    if let proof {
      receipt("proof of " + text, for: order, proof) { receipt in
        if proof.outcome == .verified { receipt.state.bundleId = otherApp }
      }
    }
    return record
  }

  /// An order whose own receipt contains T1.
  @discardableResult
  fileprivate mutating func proven(_ text: String, by user: String, names: Bool, token: String? = nil) -> Order {
    let record = self.record
    let made = order(text, by: user) { order in
      order.transactionId = names ? "T1" : nil
      order.appAccountToken = token
    }
    receipt("proof of " + text, for: made, .verified(.app), containing: [record])
    return made
  }
}
