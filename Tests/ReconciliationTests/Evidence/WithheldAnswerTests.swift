import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// A missing answer never makes an order unpaid.
@Suite struct WithheldAnswerTests {
  @Test("Withholding Apple's answers never makes an order unpaid", arguments: Effort.blocks)
  func withheld(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<250 {
      let random = RandomWorld.make(using: &generator)
      let (silent, silenced) = random.withholding(using: &generator)
      let before = random.world.audited().judgements
      for (orderId, judgement) in silent.audited().judgements {
        guard case .unpaid(let reason, _) = judgement.verdict, before[orderId]?.verdict?.name != "unpaid",
          // A test purchase of a test user costs no money, whichever order owns it.
          judgement.disposition != .sandbox
        else { continue }
        // Its own proofs are answered. Another customer's evidence, about the stated ID or the token, had paid it.
        let hasLostRecord =
          random.world.namesKnown(orderId) && !silent.namesKnown(orderId)
          || random.world.hasPurchase(announcedFor: orderId, unlike: silent)
        #expect(hasLostRecord && !silenced.contains(orderId), "\(orderId) \(reason), world \(number)")
      }
    }
  }

  @Test(
    "Without any one answer, or a part of it, no accusing finding is added",
    arguments: Effort.blocks)
  func oneWithheld(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<250 {
      let random = RandomWorld.make(using: &generator)
      let facts = random.world.matchedFacts().orders
      let before = random.world.audited()
      let said = Set(before.findings.map(\.identity))
      for withheld in random.withholdingOne(using: &generator) {
        for finding in withheld.world.audited().findings
        where finding.kind.has(.accusesCustomer) && !said.contains(finding.identity) {
          #expect(
            withheld.concerns(finding, facts, random.world.rules.people)
              || random.world.hasPurchase(announcedFor: finding.orderId, unlike: withheld.world),
            "\(finding.kind) on \(finding.subject.id) without \(withheld.what), world \(number): \(finding.reason)")
        }
      }
    }
  }

  @Test(
    "Without any one answer, or a part of it, no job gets an additional action",
    arguments: Effort.blocks)
  func oneWithheldForJobs(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<250 {
      let random = RandomWorld.make(using: &generator)
      let facts = random.world.matchedFacts().orders
      let before = random.world.audited()
      let done = Set(before.findings.map { SubjectAction($0) })
      for withheld in random.withholdingOne(using: &generator) {
        for finding in withheld.world.audited().findings
        where finding.action != .look && !done.contains(SubjectAction(finding)) {
          #expect(
            withheld.concerns(finding, facts, random.world.rules.people, isAnyKind: true)
              || random.world.hasPurchase(announcedFor: finding.orderId, unlike: withheld.world),
            "\(finding.action) for \(finding.kind) on \(finding.subject.id) without \(withheld.what), world \(number)")
        }
      }
    }
  }

  /// The action of a job on an order or a transaction.
  private struct SubjectAction: Hashable {
    var subject: Subject
    var action: FindingAction

    init(_ finding: Finding) { (subject, action) = (finding.subject, finding.action) }
  }

  @Test("Random worlds contain every accusing finding, and each depends on an answer")
  func everyAccusation() {
    var generator = SeededGenerator(seed: 1)
    var (found, gone): ([FindingKind: Int], [FindingKind: Int]) = ([:], [:])
    var worlds = (all: 0, withheld: 0)
    for _ in 0..<500 * Effort.factor {
      let random = RandomWorld.make(using: &generator)
      worlds.all += 1
      let said = random.world.audited().findings.filter { $0.kind.has(.accusesCustomer) }
      for finding in said { found[finding.kind, default: 0] += 1 }
      var left: Set<FindingKind> = []
      for withheld in random.withholdingOne(using: &generator) {
        worlds.withheld += 1
        let still = Set(withheld.world.audited().findings.map(\.identity))
        left.formUnion(said.filter { !still.contains($0.identity) }.map(\.kind))
      }
      for kind in left { gone[kind, default: 0] += 1 }
    }
    let accusing = FindingKind.allCases.filter { $0.has(.accusesCustomer) }
    for kind in accusing { #expect((found[kind] ?? 0) > 0 && (gone[kind] ?? 0) > 0, "\(kind)") }
    let counts = accusing.map { "\($0)=\(found[$0] ?? 0)/\(gone[$0] ?? 0)" }
    print("worlds=\(worlds.all) withheld=\(worlds.withheld) \(counts.joined(separator: " "))")
  }

  @Test("An unreadable receipt accuses no order whose stated ID can be looked up", arguments: Effort.blocks)
  func damaged(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<250 {
      let random = RandomWorld.make(using: &generator)
      let before = random.world.audited()
      for (orderId, world) in random.damagingOne() {
        let said = Set(before.judgements[orderId]?.findings.map(\.kind) ?? [])
        for finding in world.audited().judgements[orderId]?.findings ?? [] where finding.kind.accuses {
          #expect(said.contains(finding.kind), "\(finding.kind) on \(orderId), world \(number): \(finding.reason)")
        }
      }
    }
  }

  @Test("Without any answer only orders without evidence are unpaid", arguments: Effort.blocks)
  func allWithheld(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for _ in 0..<250 {
      var world = RandomWorld.make(using: &generator).world
      world.transactions = []
      world.contained = [:]
      for index in world.receipts.indices { world.receipts[index].state = .unanswered(.unreachable) }
      for orderId in world.lookups.keys { world.lookups[orderId] = .unanswered(.unreachable) }
      for facts in world.matchedFacts().orders.values {
        let verdict = facts.verdict(rules: world.rules, isExplaining: false).verdict
        guard case .unpaid(let reason, _) = verdict else { continue }
        #expect(reason == .noEvidence || reason == .neverPaid)
        #expect(facts.order.transactionId == nil && facts.receipts.allSatisfy { $0.defect != nil })
      }
    }
  }

  @Test("Another night without Apple adds no delivered_not_paid finding", arguments: Effort.blocks)
  func anotherNight(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<250 {
      var world = RandomWorld.make(using: &generator).world
      let before = world.audited().judgements
      world.rules.asOf = world.rules.asOf + .hours(24)
      for index in world.receipts.indices where world.receipts[index].state.outcome == .pending {
        world.receipts[index].state = .unanswered(.unreachable)
      }
      for (orderId, judgement) in world.audited().judgements where judgement.disposition == .deliveredNotPaid {
        let reason = judgement.verdict?.reason
        let needsNoApple = reason == .noEvidence || reason == .neverPaid
        #expect(needsNoApple || before[orderId]?.disposition == .deliveredNotPaid, "\(orderId), world \(number)")
      }
    }
  }

  @Test("More evidence never makes a paid order unpaid", arguments: Effort.blocks)
  func moreEvidence(block: UInt64) {
    var generator = SeededGenerator(seed: block)
    for number in 0..<250 {
      // A single order, because other orders' proofs may show that the payment is theirs.
      var world = RandomWorld.make(using: &generator).world
      world.orders = Array(world.orders.prefix(1))
      world.receipts.removeAll { $0.orderId != world.orders[0].orderId }
      guard case .paid = world.audited().judgements[world.orders[0].orderId]?.verdict else { continue }
      var more = RandomWorld.make(using: &generator, prefix: "more/").world
      for index in more.receipts.indices { more.receipts[index].orderId = world.orders[0].orderId }
      // Beside a look-up alone, a payload with another ID than the stated one refutes the claim.
      let isOnLookup = world.receipts.allSatisfy { world.contained[$0.receiptId]?.isEmpty ?? true }
      if isOnLookup { more.receipts.removeAll { $0.state.signedTransactionId != nil } }
      // A stated ID with rejected proofs only is no claim.
      let hasOwn = world.receipts.contains { $0.defect == nil && $0.state.outcome != .rejected }
      if !hasOwn { more.receipts.removeAll { $0.state.outcome == .rejected } }
      world.receipts += more.receipts
      world.contained.merge(more.contained) { first, _ in first }
      world.transactions += more.transactions
      let after = world.audited().judgements[world.orders[0].orderId]
      #expect(after?.verdict?.name == "paid", "world \(number)")
    }
  }

  @Test("Older facts never make a paid order unpaid")
  func olderFacts() {
    let old = ShopFixture.asOf - .days(9)
    for revocation: Statement<Revocation?> in [.absent, .stated(nil), .stated(Revocation(date: old))] {
      var newest = TransactionFact(
        environment: .production, transactionId: "T1", productId: "gems.100", channel: .serverApi,
        signedDate: ShopFixture.asOf)
      newest.bundleId = ShopFixture.bundle
      newest.revocation = .stated(nil)
      var older = newest
      older.channel = .offline
      older.signedDate = old
      older.revocation = revocation
      var scene = ShopFixture()
      scene.paidOrder()
      scene.world.transactions = [TransactionRecord.folding([older, newest])].compactMap { $0 }
      #expect(scene.world.audited().judgements["order"]?.payment == "paid")
    }
  }
}

extension World {
  /// True if the order's account token or stated subscription links it to a purchase that the other world lacks, in an
  /// app without notifications.
  ///
  /// Such a purchase is known from a receipt of another order only. An order cannot wait for those. Some periods of
  /// these worlds go back to a transaction that is no period, for which no order waits either.
  fileprivate func hasPurchase(announcedFor orderId: Identifier?, unlike other: World) -> Bool {
    for case .valid(let order) in orders where order.orderId == orderId {
      let isAnnounced = rules.salesKnownUntil[rules.bundleId(of: order)] != nil
      let isSubscription = other.transactions.contains { $0.expiresDate != nil && $0.isOf(order.transactionId) }
      let known = Set(other.transactions.map(\.key))
      return transactions.contains { purchase in
        let isOfSubscription = purchase.expiresDate != nil && purchase.originalTransactionId == order.transactionId
        return !known.contains(purchase.key)
          && (isOfSubscription && !(isAnnounced && isSubscription)
            || !isAnnounced && AccountToken.relation(of: order, to: purchase) == .same)
      }
    }
    return false
  }

  /// True if the transaction that the order states is known.
  fileprivate func namesKnown(_ orderId: Identifier) -> Bool {
    for case .valid(let order) in orders where order.orderId == orderId {
      return transactions.contains { $0.transactionId == order.transactionId }
    }
    return false
  }
}

extension RandomWorld.WorldWithoutAnswer {
  /// True if the finding compares an order with a payment that the missing answer could move to another order.
  /// A finding about an unpaid order compares none.
  ///
  /// Any receipt of any customer could contain the payment, or another one that its order prefers. Until that answer, a
  /// payment in the order's own verified proof counts: an order waits for its own person's receipts, not for all.
  ///
  /// - Parameter facts: The facts by order, in the world with the answer.
  fileprivate func concerns(
    _ finding: Finding, _ facts: [Identifier: OrderFacts], _ people: People, isAnyKind: Bool = false
  ) -> Bool {
    guard isAnyKind || !finding.kind.has(.mayBePaidByOrphan), let environment = finding.environment,
      let transactionId = finding.transactionId
    else { return false }
    var reached: Set<TransactionKey> = [TransactionKey(environment: environment, transactionId: transactionId)]
    func keys(_ facts: OrderFacts) -> Set<TransactionKey> {
      let records = facts.proven + facts.known + facts.claims.owned
      return Set(
        records.flatMap(\.keys)
          + records.map { TransactionKey(environment: $0.environment, transactionId: $0.purchaseKey.transactionId) })
    }
    // Orders that share purchases are matched together, so that one order's result moves the others.
    var left = Array(facts.values)
    while let place = left.firstIndex(where: { !keys($0).isDisjoint(with: reached) }) {
      let other = left.remove(at: place)
      if users.contains(where: { people.isSame($0, other.order.userId) }), other.order.orderId != finding.orderId {
        return true
      }
      reached.formUnion(keys(other))
    }
    return false
  }
}
