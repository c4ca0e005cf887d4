import Reconciliation
import Testing

@testable import SampleWorlds

/// Rejected proofs, tokens and IDs among the orders that are linked to one purchase. A row lists the order that owns T1.
@Suite struct PrecedenceTests {
  @Test(arguments: rows)
  func owner(row: Case<String>) {
    let facts = row.scene.world.matchedFacts().orders
    let owners = facts.values.filter { $0.claims.owned.contains { $0.transactionId == "T1" } }.map(\.order.orderId.text)
    #expect(owners.joined(separator: ",") == row.expected)
  }

  static let rows: [Case<String>] = [
    Case("a genuine proof before an earlier name", "late") { scene in
      scene.named("early", by: "thief", hours: -1)
      scene.proven("late", by: "payer", names: true)
    },
    Case("a genuine proof without a name before the name of another user", "late") { scene in
      scene.named("early", by: "thief", hours: -1)
      scene.proven("late", by: "payer", names: false)
    },
    Case("the transaction's token before a proof", "token") { scene in
      scene.named("token", by: "payer", hours: 1, token: "A-1")
      scene.proven("proof", by: "stranger", names: true)
    },
    Case("the transaction's token without a name before a proof with one", "token") { scene in
      scene.proven("proof", by: "stranger", names: true)
      scene.proven("token", by: "payer", names: false, token: "a1")
    },
    Case("another token than the transaction's comes last", "late") { scene in
      scene.proven("early", by: "stranger", names: true, token: "b2")
      scene.named("late", by: "payer", hours: 1)
    },
    Case("another token owns what nobody else claims", "only") { scene in
      scene.proven("only", by: "stranger", names: true, token: "b2")
    },
    Case("the smaller id of equals of one time", "a") { scene in
      scene.named("b", by: "b", hours: 0)
      scene.named("a", by: "a", hours: 0)
    },
    Case("a forged proof and a name claim nothing", "payer") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
      scene.named("payer", by: "payer", hours: 0)
    },
    Case("not even what nobody else claims", "") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
    },
    Case("unless Apple, asked about that id, confirms it", "forger") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
      scene.world.lookups["forger"] = .verified(nil)
    },
    Case("and nobody with a genuine proof claims it", "payer") { scene in
      scene.named("forger", by: "thief", hours: -1, proof: .rejected(.signatureInvalid))
      scene.world.lookups["forger"] = .verified(nil)
      scene.proven("payer", by: "payer", names: false)
    },
    Case("junk and a name", "payer") { scene in
      scene.named("junk", by: "thief", hours: -1, proof: .rejected(.malformed))
      scene.world.lookups["junk"] = .verified(nil)
      scene.proven("payer", by: "payer", names: true)
    },
    Case("a payload that nobody can read is no worse than none: the nearer order", "damaged") { scene in
      scene.named("damaged", by: "payer", hours: 0, proof: .rejected(.malformed))
      scene.world.lookups["damaged"] = .verified(nil)
      scene.named("late", by: "thief", hours: 1)
    },
    Case("a payload that nobody can read, and the token, before another's token", "damaged") { scene in
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
    Case("a foreign proof and a name", "payer") { scene in
      scene.named("foreign", by: "thief", hours: -1, proof: .verified(.app))
      scene.proven("payer", by: "payer", names: true)
    },
    Case("among those without a name the token excludes others, however near", "far") { scene in
      scene.proven("near", by: "stranger", names: false)
      scene.time = scene.time - .hours(20)
      scene.proven("far", by: "payer", names: false, token: "a-1")
    },
    Case("among those without a name another token comes last, however near", "far") { scene in
      scene.proven("near", by: "stranger", names: false, token: "b2")
      scene.time = scene.time - .hours(20)
      scene.proven("far", by: "payer", names: false)
    },
  ]

  @Test("Who claims with a false proof is told of the proof and not of the owner")
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

  @Test("An order with junk and the ID of another order's payment is not confirmed")
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
    #expect(judgements["again"]?.payment == "paid", "it has a genuine proof")
    #expect(judgements["order"]?.payment == "unpaid duplicate")
  }

  @Test("People are who is paired, in whatever order")
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
  /// T1 carries the token A1.
  fileprivate var record: TransactionRecord {
    mutating get {
      if let known = world.transactions.first(where: { $0.transactionId == "T1" }) { return known }
      return transaction { $0.appAccountToken = .says("A1") }
    }
  }

  /// An order that names T1.
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
        if proof.outcome == .verified { receipt.state.bundleId = "com.example.other" }
      }
    }
    return record
  }

  /// An order whose own receipt brings T1.
  @discardableResult
  fileprivate mutating func proven(_ text: String, by user: String, names: Bool, token: String? = nil) -> Order {
    let record = self.record
    let made = order(text, by: user) { order in
      order.transactionId = names ? "T1" : nil
      order.appAccountToken = token
    }
    receipt("proof of " + text, for: made, .verified(.app), bringing: [record])
    return made
  }
}
