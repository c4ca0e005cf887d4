import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Matching of orders and transactions.
@Suite struct MatchingTests {
  @Test("The nearest order that states the ID owns the purchase, then the smaller order ID")
  func named() {
    var scene = ShopFixture()
    scene.transaction("T1")
    for (id, minutes) in [("o3", 0), ("o2", 1), ("o1", 1), ("o9", 0)] as [(String, Int64)] {
      scene.order(id) { order in
        order.transactionId = "T1"
        order.createdAt = ordered + .minutes(minutes)
      }
    }
    #expect(scene.world.ownedBy("o3") == ["T1"])
    for id in ["o1", "o2", "o9"] as [Identifier] {
      #expect(scene.world.ownedBy(id) == [])
      #expect(scene.world.matchedFacts().orders[id]?.claims.lost.map(\.ownerOrderId) == ["o3"])
    }
  }

  @Test("An order for another product does not keep others from the purchase")
  func refusedDoesNotOwn() {
    var scene = ShopFixture()
    scene.transaction("T1")
    scene.order("early") { order in
      order.transactionId = "T1"
      order.productId = "gems.500"
      order.createdAt = ordered - .hours(1)
    }
    scene.order("late") { $0.transactionId = "T1" }
    #expect(scene.world.ownedBy("late") == ["T1"])
  }

  @Test("A stated ID of another product takes nothing from an order whose receipt contains the purchase")
  func refusedNameYields() {
    for (product, user) in [("gems.500", "stranger"), ("gems.500", "user"), (nil, nil)] as [(Identifier?, String?)] {
      var scene = ShopFixture()
      let record = scene.transaction("T1")
      let order = scene.order { $0.transactionId = "T9" }
      scene.receipt(for: order, .verified(.app), containing: [record])
      scene.world.lookups["order"] = .notFound()
      scene.delivery(of: order)
      if let product, let user {
        let refused = scene.order("refused", by: user) { other in
          other.transactionId = "T1"
          other.productId = product
        }
        scene.world.lookups[refused.orderId] = .verified(nil)
      }
      #expect(scene.world.ownedBy("order") == ["T1"])
      #expect(scene.world.audited().judgements["order"]?.disposition == .settled)
      let found = scene.world.findingNames.filter { $0.hasSuffix("on T1") || $0.hasSuffix("on order") }
      #expect(found == ["transaction_id_mismatch on order"])
    }
  }

  @Test("Orders without a stated ID share a receipt so that the most orders are paid")
  func mostPairs() {
    var scene = ShopFixture()
    let first = scene.transaction("T1")
    let second = scene.transaction("T2") { $0.purchaseDate = ordered + .hours(10) }
    scene.receipt("r1", for: scene.order("o1"), .verified(.app), containing: [first, second])
    scene.receipt(
      "r2", for: scene.order("o2") { $0.createdAt = ordered - .hours(1) }, .verified(.app), containing: [first])
    #expect(scene.world.ownedBy("o1") == ["T2"])
    #expect(scene.world.ownedBy("o2") == ["T1"])
  }

  @Test("At equal distance the smaller order ID gets the smaller transaction ID")
  func ties() {
    var scene = ShopFixture()
    let records = ["T2", "T1"].map { scene.transaction($0) }
    for id in ["o2", "o1"] { scene.receipt("r" + id, for: scene.order(id), .verified(.app), containing: records) }
    #expect(scene.world.ownedBy("o1") == ["T1"])
    #expect(scene.world.ownedBy("o2") == ["T2"])
  }

  @Test("A production purchase is preferred to a sandbox purchase")
  func productionFirst() {
    var scene = ShopFixture()
    let order = scene.order()
    let sandbox = scene.transaction("T1") { $0.environment = .sandbox }
    scene.receipt("r1", for: order, .verified(.app), containing: [sandbox])
    scene.receipt(
      "r2", for: order, .verified(.app), containing: [scene.transaction("T2") { $0.purchaseDate = ordered + .days(2) }])
    #expect(scene.world.ownedBy("order") == ["T2"])
  }

  @Test("A live purchase is preferred to a refunded one")
  func liveFirst() {
    var scene = ShopFixture()
    let order = scene.order { $0.transactionId = "T1" }
    let refunded = scene.transaction("T1") { $0.revocation = Revocation(date: ShopFixture.asOf) }
    scene.receipt(for: order, .verified(.app), containing: [refunded, scene.transaction("T2")])
    #expect(scene.world.ownedBy("order") == ["T2"])
  }

  @Test("Transaction IDs are unique within an environment only")
  func environments() {
    var scene = ShopFixture()
    scene.transaction("T1") { $0.environment = .sandbox }
    scene.transaction("T1")
    scene.order { $0.transactionId = "T1" }
    let facts = scene.world.matchedFacts()
    #expect(facts.orders["order"]?.claims.owned.map(\.environment) == [.production])
    #expect(facts.claimed == [TransactionKey(environment: .production, transactionId: "T1")])
  }

  @Test("A stated ID means the transaction in the order's own proof, not one of another environment")
  func provenEnvironment() {
    var scene = ShopFixture()
    let sandbox = scene.transaction("T1") { $0.environment = .sandbox }
    scene.transaction("T1")
    let order = scene.order { $0.transactionId = "T1" }
    scene.receipt(for: order, .verified(.signed), containing: [sandbox])
    let facts = scene.world.matchedFacts()
    #expect(facts.orders["order"]?.claims.owned.map(\.environment) == [.sandbox])
    #expect(facts.claimed == [TransactionKey(environment: .sandbox, transactionId: "T1")])
  }

  @Test("Lost transactions are listed by ID, whatever the order of input")
  func lostInOrder() {
    var scene = ShopFixture()
    let records = ["T2", "T1", "T3"].map { scene.transaction($0) }
    let owners = records.map { record in
      Claimant(
        order: scene.order("owner of " + record.transactionId.text) { $0.transactionId = record.transactionId },
        proven: VerifiedTransactions([record]))
    }
    let loser = Claimant(
      order: scene.order("loser") { $0.createdAt = ordered + .hours(1) }, proven: VerifiedTransactions(records))
    let matching = Matching(of: owners + [loser], rules: scene.world.rules)
    #expect(matching.claims["loser"]?.lost.map(\.transaction.transactionId) == ["T1", "T2", "T3"])
  }

  @Test("A transaction never has two owners, and input order changes nothing", arguments: Effort.blocks)
  func random(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for _ in 0..<150 {
      let claimants = RandomWorld.make(using: &random).claimants
      let rules = RandomWorld.rules
      let matching = Matching(of: claimants, rules: rules)
      let owned = matching.claims.values.flatMap { $0.owned.map(\.purchaseKey) }
      #expect(Set(owned).count == owned.count)
      #expect(matching.claimed.isSuperset(of: matching.claims.values.flatMap { $0.owned.map(\.key) }))
      for claims in matching.claims.values {
        #expect(matching.claimed.isSuperset(of: claims.lost.map(\.transaction.key)))
        #expect(Set(owned).isSuperset(of: claims.lost.map(\.transaction.purchaseKey)))
      }
      let handedInAnew = claimants.shuffled(using: &random).map { claimant in
        Claimant(
          order: claimant.order, proven: VerifiedTransactions(claimant.proven.shuffled(using: &random)),
          known: VerifiedTransactions(claimant.known.shuffled(using: &random)), signedIds: claimant.signedIds,
          proofIds: claimant.proofIds, proofValidity: claimant.proofValidity, isOpen: claimant.isOpen,
          isStatedIDUnknown: claimant.isStatedIDUnknown, hasGoods: claimant.hasGoods)
      }
      let again = Matching(of: handedInAnew, rules: rules)
      #expect(again.claims == matching.claims)
      #expect(again.claimed == matching.claimed)
    }
  }

  @Test("An order that shares nothing is decided alone as it is among others", arguments: Effort.blocks)
  func alone(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for _ in 0..<100 {
      let rules = RandomWorld.rules
      // Each order comes from its own world, so that the orders share nothing.
      let claimants = (0..<6).compactMap { RandomWorld.make(using: &random, prefix: "\($0)/").claimants.first }
      let together = Matching(of: claimants, rules: rules)
      for claimant in claimants {
        #expect(Matching.uncontested(claimant, rules: rules) == together.claims[claimant.order.orderId])
      }
    }
  }

  @Test(
    "The best order that would have a purchase has it, and no order lacks a free one, if any matching is so",
    arguments: Effort.blocks)
  func stable(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var (compared, alone, unstable) = (0, 0, 0)
    for number in 0..<400 {
      let made = RandomWorld.make(using: &random)
      let rules = made.world.rules
      let claimants = number.isMultiple(of: 2) ? made.claimants : fewPurchases(using: &random)
      let matching = Matching(of: claimants, rules: rules)
      if matching.pairsInTime { continue }
      if !matching.isStable(matching.matched, rules) {
        unstable += 1
        #expect(!matching.hasStableMatching(rules), "\(block), \(number)")
      }
      for (purchase, links) in matching.linksByPurchase {
        let willing = matching.willing(links, to: purchase, matching.matched)
        if willing.isEmpty { alone += 1 }
        if willing.count > 1 { compared += 1 }
      }
    }
    #expect(compared > 50 && alone > 5 && unstable < 4, "\(compared), \(alone), \(unstable)")
  }

  @Test(
    "A further order moves no payment out of the window, unless it alone has the token", arguments: Effort.blocks)
  func outsideTakesNothing(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var (kept, linkedOutside) = (0, 0)
    for number in 0..<150 {
      let claimants =
        number.isMultiple(of: 2) ? RandomWorld.make(using: &random).claimants : fewPurchases(using: &random)
      let rules = number.isMultiple(of: 2) ? RandomWorld.rules : ShopFixture().world.rules
      let all = Matching(of: claimants, rules: rules)
      for further in claimants.map(\.order.orderId) {
        let before = Matching(of: claimants.filter { $0.order.orderId != further }, rules: rules)
        for (purchase, owner) in before.owners {
          guard let old = before.link(of: owner, to: purchase), old.rank.isInWindow else { continue }
          kept += 1
          // With another owned purchase, an order may have no units left for a refunded one.
          if all.owners[purchase] == nil, old.transaction.isReversed,
            before.matched[owner]?.transaction.purchaseKey != purchase
          {
            continue
          }
          guard let newOwner = all.owners[purchase], let new = all.link(of: newOwner, to: purchase) else {
            Issue.record("\(block), \(number): \(purchase) has no owner with \(further)")
            continue
          }
          let isAlone = new.rank.token == .same && old.rank.token != .same
          // A second charge pays nothing, so that another order of the person may own the purchase.
          let wasSecondCharge = before.matched[owner]?.transaction.purchaseKey != purchase
          let users = (before.claimants[owner].order.userId, all.claimants[newOwner].order.userId)
          let isOwn = wasSecondCharge && rules.people.isSame(users.0, users.1)
          #expect(new.rank.isInWindow || isAlone || isOwn, "\(block), \(number): \(further)")
        }
        guard let place = all.claimants.firstIndex(where: { $0.order.orderId == further }) else { continue }
        linkedOutside += all.links[place].count { !$0.rank.isInWindow }
      }
    }
    #expect(kept > 100 && linkedOutside > 10, "\(kept), \(linkedOutside)")
  }

  @Test("Of several restores, the one with the order's token is the purchase, then the nearest one")
  func restoredTwice() {
    for (token, expected) in [("A", "T2"), (nil, "T3")] as [(String?, Identifier)] {
      var scene = ShopFixture()
      let time = scene.time
      var restores: [TransactionRecord] = []
      for (id, isOwn, hours) in [("T1", false, 3), ("T2", true, 5), ("T3", false, 1)] as [(String, Bool, Int64)] {
        restores.append(
          scene.transaction(id) { record in
            record.originalTransactionId = "T0"
            record.originalPurchaseDate = time + .hours(hours)
            if isOwn { record.appAccountToken = .stated("A") }
          })
      }
      let order = scene.order { $0.appAccountToken = token }
      scene.receipt(for: order, .verified(.app), containing: restores)
      #expect(scene.world.ownedBy("order") == [expected])
      let claimant = scene.world.claimants[0]
      #expect(Matching.uncontested(claimant, rules: scene.world.rules).owned.map(\.transactionId) == [expected])
    }
  }

  @Test("Of two equally near periods of the stated subscription, the smaller ID is claimed")
  func periodsAsNear() {
    for ids in [["T2", "T3"], ["T3", "T2"]] {
      var scene = ShopFixture()
      let time = scene.time
      let periods = zip(ids, [-5, 5] as [Int64]).map { id, hours in
        scene.transaction(id) { record in
          record.originalTransactionId = "T1"
          record.purchaseDate = time + .hours(hours)
          record.expiresDate = time + .days(30)
        }
      }
      let order = scene.order { $0.transactionId = "T1" }
      scene.receipt(for: order, .verified(.app), containing: periods)
      #expect(scene.world.ownedBy("order")?.first == "T2", "\(ids)")
    }
  }

  @Test("Many orders of one user, each with a receipt of all purchases, are paid in order", arguments: [30, 250])
  func manyOrders(count: Int) {
    var scene = ShopFixture()
    let records = (0..<count).map { number in
      scene.transaction("T\(1_000 + number)") { $0.purchaseDate = ordered + .minutes(Int64(number) * 7) }
    }
    let list = VerifiedTransactions(records)
    let claimants = (0..<(count + 5)).map { number in
      Claimant(
        order: scene.order("o\(1_000 + number)") { $0.createdAt = ordered + .minutes(Int64(number) * 7 - 1) },
        proven: list)
    }
    let claims = Matching(of: claimants, rules: scene.world.rules).claims
    for number in 0..<count {
      #expect(claims[Identifier("o\(1_000 + number)")]?.owned.map(\.transactionId) == [records[number].transactionId])
      #expect(claims[Identifier("o\(1_000 + number)")]?.lost == [])
    }
    for number in count..<(count + 5) {
      let own = claims[Identifier("o\(1_000 + number)")]
      #expect(own?.owned == [])
      #expect(own?.lost.count == 8 && own?.lost.allSatisfy(\.isFinal) == true)
    }
  }

  @Test("A shortened list of lost transactions keeps one that is not final")
  func lostForNow() {
    var scene = ShopFixture()
    let loser = scene.order("loser", by: "ann") { $0.createdAt = ordered + .hours(2) }
    var contained: [TransactionRecord] = []
    for number in 1...9 {
      let record = scene.transaction("T\(number)") { record in
        record.purchaseDate = ordered
        record.environment = number == 9 ? .sandbox : .production
      }
      contained.append(record)
      let owner = scene.order("owner\(number)", by: "user\(number)") { $0.createdAt = ordered }
      scene.receipt("r\(number)", for: owner, .verified(.app), containing: [record])
      // Without this answer, T9 may belong to the owner or to the loser.
      if number == 9 { scene.receipt("open", for: owner, .unanswered(.unreachable)) }
    }
    scene.receipt("r10", for: loser, .verified(.app), containing: contained)
    let lost = scene.world.matchedFacts().orders["loser"]?.claims.lost
    #expect(lost?.map(\.transaction.transactionId.text) == ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T9"])
    #expect(lost?.map(\.isFinal) == Array(repeating: true, count: 7) + [false])
  }

  /// Orders inside and outside the window of one to three purchases.
  private func fewPurchases(using random: inout SeededGenerator) -> [Claimant] {
    let records = (0..<random.number(1...3)).map { number in
      var record = TransactionRecord.Contents(
        environment: .production, transactionId: Identifier("T\(number)"), productId: "gems.100")
      (record.bundleId, record.quantity) = (ShopFixture.bundle, random.pick(nil, 1, 2))
      record.purchaseDate = ordered + .hours(Int64(random.pick(0, 1, 5)))
      record.appAccountToken = random.pick(.absent, .absent, .stated("a"), .stated("b"))
      return TransactionRecord(record)
    }
    return (0..<random.number(2...4)).map { number in
      var order = Order(
        orderId: Identifier("o\(number)"), userId: random.pick("ann", "ann", "bob"), productId: "gems.100",
        quantity: random.pick(1, 1, 2), amount: .of(990), status: .verified,
        createdAt: ordered + .hours(Int64(random.pick(-90, -1, 0, 2, 80, 90))))
      order.appAccountToken = random.pick(nil, nil, "a", "b")
      let one = records[random.number(0...records.count - 1)]
      if random.oneIn(2) { order.transactionId = one.transactionId }
      let list = random.oneIn(2) ? records : []
      return Claimant(
        order: order, proven: VerifiedTransactions(list), known: VerifiedTransactions(list.isEmpty ? [one] : []),
        proofIds: random.oneIn(3) ? [one.transactionId] : [], hasGoods: random.oneIn(2))
    }
  }

  private let ordered = ShopFixture.asOf - .days(4)
}

extension Matching {
  /// True if several orders of one person have list and token links alone, so that they may be paired in time.
  fileprivate var pairsInTime: Bool {
    let paired = links.indices.filter { index in
      !links[index].isEmpty && links[index].allSatisfy { $0.kind == .list || $0.kind == .token }
    }
    let people = Dictionary(grouping: paired) { rules.people.person(claimants[$0].order.userId) }
    return people.values.contains { $0.count > 1 }
  }

  /// The rank of section 3.2 by its letter: the best order of each person, then the best person.
  fileprivate static func best(of links: [Link], among claimants: [Claimant], _ rules: Rules) -> Link? {
    func isBetter(_ one: Link, _ other: Link, isSamePerson: Bool) -> Bool {
      func rank(_ link: Link) -> [Int64] {
        let order = claimants[link.index].order
        let (token, sold) = (link.rank.token, link.transaction.saleDate ?? order.createdAt)
        return [
          token == .same ? 0 : 1, claimants[link.index].isInWindow(link.transaction, rules: rules) ? 0 : 1,
          token == .other ? 1 : 0, link.kind == .proof ? 0 : 1,
          isSamePerson && !claimants[link.index].hasGoods ? 1 : 0,
          (sold - order.createdAt).magnitude.microseconds, order.createdAt.microseconds,
        ]
      }
      if rank(one) != rank(other) { return rank(one).lexicographicallyPrecedes(rank(other)) }
      return claimants[one.index].order.orderId < claimants[other.index].order.orderId
    }
    let people = Dictionary(grouping: links) { rules.people.person(claimants[$0.index].order.userId) }
    return people.values.compactMap { $0.min { isBetter($0, $1, isSamePerson: true) } }
      .min { isBetter($0, $1, isSamePerson: false) }
  }

  fileprivate var linksByPurchase: [PurchaseKey: [Link]] {
    Dictionary(grouping: links.joined(), by: \.transaction.purchaseKey)
  }

  /// The links of orders that would have a purchase. Orders with a production purchase take no part in the matching of
  /// sandbox purchases.
  fileprivate func willing(_ links: [Link], to purchase: PurchaseKey, _ matched: [Link?]) -> [Link] {
    links.filter { link in
      guard isAdmitted(link) else { return false }
      guard let other = matched[link.index] else { return true }
      if other.transaction.environment != link.transaction.environment {
        return link.transaction.environment == .production
      }
      return other.transaction.purchaseKey == purchase || link.isPreferred(to: other)
    }
  }

  fileprivate func isStable(_ matched: [Link?], _ rules: Rules) -> Bool {
    linksByPurchase.allSatisfy { purchase, links in
      let owner = matched.firstIndex { $0?.transaction.purchaseKey == purchase }
      return owner == Matching.best(of: willing(links, to: purchase, matched), among: claimants, rules)?.index
    }
  }

  /// Tries all matchings.
  fileprivate func hasStableMatching(_ rules: Rules) -> Bool {
    func extend(_ matched: [Link?], taken: Set<PurchaseKey>) -> Bool {
      guard matched.count < links.count else { return isStable(matched, rules) }
      if extend(matched + [nil], taken: taken) { return true }
      return links[matched.count].contains { link in
        let purchase = link.transaction.purchaseKey
        return isAdmitted(link) && !taken.contains(purchase)
          && extend(matched + [link], taken: taken.union([purchase]))
      }
    }
    return extend([], taken: [])
  }

  fileprivate func link(of index: Int, to purchase: PurchaseKey) -> Link? {
    links[index].first { $0.transaction.purchaseKey == purchase }
  }
}

extension World {
  /// The transactions that an order owns, beginning with the one that decides its verdict.
  func ownedBy(_ orderId: Identifier) -> [Identifier]? {
    matchedFacts().orders[orderId]?.claims.owned.map(\.transactionId)
  }
}
