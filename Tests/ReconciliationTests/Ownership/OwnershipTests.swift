import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Details of ownership, and claims that may still change.
@Suite struct OwnershipTests {
  private let noon = ShopFixture().time

  @Test("A list contains transactions with an app only, and distinguishes environments")
  func listOfProven() {
    let scene = ShopFixture()
    func record(_ id: Identifier, _ environment: AppleEnvironment, bundleId: String?) -> TransactionRecord {
      var record = TransactionRecord(environment: environment, transactionId: id, productId: "gems.100")
      record.bundleId = bundleId
      record.purchaseDate = scene.time
      return record
    }
    let nameless = record("T1", .production, bundleId: nil)
    #expect(VerifiedTransactions([nameless]).records.isEmpty)
    let named = record("T2", .sandbox, bundleId: ShopFixture.bundle)
    let list = VerifiedTransactions([named, nameless])
    #expect(list.records == [named] && list.contains(named.key) && !list.contains(nameless.key))
    #expect(!list.contains(record("T2", .production, bundleId: ShopFixture.bundle).key))
    let many = (10...30).flatMap { number in
      [AppleEnvironment.sandbox, .production].map { record(Identifier("T\(number)"), $0, bundleId: ShopFixture.bundle) }
    }
    let long = VerifiedTransactions(many)
    #expect(many.allSatisfy { long.contains($0.key) })
    #expect(long.named("T17").map(\.environment) == [.production, .sandbox] && long.named("T170").isEmpty)
  }

  @Test("The judgement of a duplicate is dated by the check of the purchase that it lost")
  func checkedAtOfLost() {
    var scene = ShopFixture()
    scene.transaction { $0.checkedAt = asOf - .hours(5) }
    for (text, user) in [("first", "ann"), ("second", "bob")] {
      scene.order(text, by: user) { $0.transactionId = "T1" }
      scene.time = scene.time + .minutes(1)
    }
    let judgement = scene.world.audited().judgements["second"]
    #expect(judgement?.payment == "unpaid duplicate" && judgement?.checkedAt == asOf - .hours(5))
  }

  @Test("Among orders with the transaction's token, a verified receipt comes before a stated ID")
  func proofBeforeName() {
    var scene = ShopFixture()
    let record = scene.transaction { $0.appAccountToken = .stated("A1") }
    scene.order("naming", by: "ann") { order in
      order.transactionId = "T1"
      order.appAccountToken = "a1"
    }
    let withReceipt = scene.order("bringing", by: "bob") { $0.appAccountToken = "A1" }
    scene.receipt(for: withReceipt, .verified(.app), containing: [record])
    #expect(scene.world.ownedBy("bringing") == ["T1"])
    #expect(scene.world.ownedBy("naming") == [])
  }

  @Test("Among orders of one person, the transaction's token comes before a stated ID without a token")
  func tokenAmongUnnamed() {
    var scene = ShopFixture()
    let record = scene.transaction { $0.appAccountToken = .stated("A1") }
    let naming = scene.order("naming", by: "ann") { $0.transactionId = "T1" }
    scene.receipt(for: naming, .verified(.app), containing: [record])
    for (number, (name, token)) in [("stranger", "B1"), ("holder", "A1")].enumerated() {
      let order = scene.order(name, by: "ann") { $0.appAccountToken = token }
      scene.receipt("r\(number)", for: order, .verified(.app), containing: [record])
    }
    #expect(scene.world.ownedBy("holder") == ["T1"])
    #expect(scene.world.ownedBy("naming") == [] && scene.world.ownedBy("stranger") == [])
  }

  @Test("An order that states a refunded purchase owns it once the other claimants have their own")
  func givenBack() {
    var scene = ShopFixture()
    let refunded = scene.transaction { $0.revocation = Revocation(date: asOf) }
    let live = scene.transaction("T2")
    scene.order("naming", by: "ann") { order in
      order.transactionId = "T1"
      order.createdAt = noon + .days(1)
    }
    let withReceipt = scene.order("bringing", by: "bob") { $0.transactionId = "T2" }
    scene.receipt(for: withReceipt, .verified(.app), containing: [refunded, live])
    let other = scene.order("other", by: "bob") { $0.createdAt = noon + .hours(1) }
    let nearer = scene.transaction("T3") { $0.purchaseDate = noon + .hours(1) }
    scene.receipt("r2", for: other, .verified(.app), containing: [refunded, nearer])
    #expect(scene.world.ownedBy("bringing") == ["T2"])
    #expect(scene.world.ownedBy("other") == ["T3"])
    #expect(scene.world.ownedBy("naming") == ["T1"])
  }

  @Test(
    "A purchase owned by its stated ID is not final while an open claim may have a better link",
    arguments: [("none", false), ("open", true), ("settled", false), ("false and open", true)])
  func beatable(other: String, mayChange: Bool) {
    let record = ShopFixture().paid("T1")
    var claimants = [Claimant(order: named("first", "T1"), proven: .none, known: VerifiedTransactions([record]))]
    if other != "none" {
      claimants.append(
        Claimant(
          order: named("second", "T1", after: .hours(1)), proven: .none, known: VerifiedTransactions([record]),
          proofValidity: other == "false and open" ? .allRejectedIDKnown : .notAllRejected,
          isOpen: other == "open" || other == "false and open"))
    }
    let claims = Matching(of: claimants, rules: ShopFixture().world.rules).claims
    #expect(claims["first"]?.owned == [record])
    #expect(claims["first"]?.isFinal == !mayChange)
  }

  @Test("Among orders with rejected proofs only, an open one may still come first")
  func beatableAmongFalse() {
    let record = ShopFixture().paid("T1")
    let claimants = [false, true].map { isOpen in
      Claimant(
        order: named(isOpen ? "second" : "first", "T1", after: isOpen ? .hours(1) : .hours(0)), proven: .none,
        known: VerifiedTransactions([record]), proofValidity: .allRejectedIDKnown, isOpen: isOpen)
    }
    #expect(Matching(of: claimants, rules: ShopFixture().world.rules).claims["first"]?.isFinal == false)
  }

  @Test("A stated ID of rejected proofs gives no claim if its transaction refutes it")
  func falseAndRefuted() {
    for change: (inout TransactionRecord.Contents) -> Void in [
      { $0.productId = "coins" }, { $0.isContradictory = true },
    ] {
      let record = ShopFixture().paid("T1", change)
      let claimant = Claimant(
        order: named("order", "T1"), proven: .none, known: VerifiedTransactions([record]),
        proofValidity: .allRejectedIDKnown)
      let claims = Matching.uncontested(claimant, rules: ShopFixture().world.rules)
      #expect(claims.owned == [] && claims.named == nil && claims.refused == nil && claims.contradictory == nil)
      #expect(Matching(of: [claimant], rules: ShopFixture().world.rules).claims["order"] == claims)
    }
  }

  @Test(
    "An order of another app claims no payment that it states",
    arguments: [ProofValidity.notAllRejected, .allRejectedIDPending])
  func ofAnotherApp(validity: ProofValidity) {
    let record = ShopFixture().paid("T1") { $0.bundleId = otherApp }
    let claimant = Claimant(
      order: named("order", "T1"), proven: .none, known: VerifiedTransactions([record]), proofValidity: validity)
    let claims = Matching.uncontested(claimant, rules: ShopFixture().world.rules)
    #expect(claims.named == nil && !claims.referTo(record, stating: "T1"))
    #expect((claims.refused?.reason == .wrongBundle) == (validity == .notAllRejected))
    let matching = Matching(of: [claimant], rules: ShopFixture().world.rules)
    #expect(matching.claims["order"] == claims && !matching.isClaimed(record))
  }

  @Test("A claim is not lost finally to an order whose stated ID is not known yet", arguments: [true, false])
  func lostToUnsettled(isOwnerUnsettled: Bool) {
    let record = ShopFixture().paid("T1") { $0.appAccountToken = .stated("A1") }
    var owner = named("owner", "T8")
    owner.appAccountToken = "a1"
    if !isOwnerUnsettled { owner.transactionId = nil }
    let claimants = [
      Claimant(order: owner, proven: .none, known: VerifiedTransactions([record])),
      Claimant(order: named("loser", "T9"), proven: VerifiedTransactions([record])),
    ]
    let claims = Matching(of: claimants, rules: ShopFixture().world.rules).claims
    #expect(claims["owner"]?.owned == [record])
    #expect(claims["loser"]?.lost.map(\.isFinal) == [!isOwnerUnsettled])
  }

  @Test("An order for more units than it owns is no secure owner", arguments: [Int32(1), 2])
  func secureOwner(quantity: Int32) {
    let record = ShopFixture().paid("T1")
    var order = named("order", "T1")
    order.quantity = quantity
    let claimant = Claimant(order: order, proven: VerifiedTransactions([record]), proofIds: ["T1"])
    let secure = SecureOwner(claimant, own: [record.purchaseKey], rules: ShopFixture().world.rules)
    #expect((secure == nil) == (quantity > 1))
  }

  @Test("A payment is final by default")
  func paymentsAreFinalByDefault() {
    #expect(Judgement(judging: OrderFacts(order: unnamed("order")), rules: ShopFixture().world.rules).isPaymentFinal)
    #expect(Judgement(reporting: .broken("bad")).isPaymentFinal)
  }

  private func unnamed(_ id: Identifier, after span: Span = .hours(0)) -> Order {
    Order(
      orderId: id, userId: Identifier("user of \(id)"), productId: "gems.100", amount: .of(990), status: .verified,
      createdAt: noon + span)
  }

  private func named(_ id: Identifier, _ transactionId: Identifier, after span: Span = .hours(0)) -> Order {
    var order = unnamed(id, after: span)
    order.transactionId = transactionId
    return order
  }
}

extension ShopFixture {
  /// A production purchase at the fixture's time, with changes.
  fileprivate func paid(
    _ id: Identifier, _ change: (inout TransactionRecord.Contents) -> Void = { _ in }
  ) -> TransactionRecord {
    var contents = TransactionRecord.Contents(environment: .production, transactionId: id, productId: "gems.100")
    contents.bundleId = ShopFixture.bundle
    contents.purchaseDate = time
    change(&contents)
    return TransactionRecord(contents)
  }
}
