import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// Properties that hold in every world, tested with random worlds.
@Suite struct WorldPropertyTests {
  static let worldsPerBlock = 150

  private static let findingsOfDispositions: [Disposition: FindingKind] = [
    .paidNotDelivered: .paidNotDelivered, .partlyDelivered: .partlyDelivered, .deliveredNotPaid: .deliveredNotPaid,
    .refundedStillDelivered: .refundedStillDelivered, .badRow: .badRow,
  ]

  @Test("Dispositions, verdicts, findings and totals agree with each other", arguments: Effort.blocks)
  func agreement(block: UInt64) {
    forEachWorld(block) { random, _ in
      let (world, outcome) = (random.world, random.world.audited())
      #expect(Set(outcome.judgements.keys) == Set(world.orders.map(\.orderId)), "every order has one disposition")
      #expect(outcome.totals.ordersRead == world.orders.count)
      #expect(outcome.totals.ordersByDisposition.reduce(0, +) == world.orders.count)
      #expect(outcome.totals.isBalanced)
      for row in world.orders {
        let isBad = if case .bad = row { true } else { false }
        #expect((outcome.judgements[row.orderId]?.disposition == .badRow) == isBad)
      }
      for judgement in outcome.judgements.values {
        switch judgement.verdict {
        case .unpaid(let reason, _): #expect(reason.provesUnpaid)
        case .unconfirmed(let reason): #expect(!reason.provesUnpaid)
        case .paid(let record): #expect(record.isLive && !record.isFamilyShared && !record.isContradictory)
        case .reversed(let record): #expect(record.environment == .production && record.isReversed)
        case .nothingToPay: #expect(judgement.disposition == .settled || judgement.disposition == .void)
        case .none: #expect(judgement.disposition == .badRow)
        }
        for (disposition, kind) in Self.findingsOfDispositions {
          let stands = judgement.findings.contains { $0.kind == kind && $0.subject == .order(judgement.row.orderId) }
          #expect(stands == (judgement.disposition == disposition), "a disposition has its finding")
        }
        let stakes = judgement.findings.filter { $0.atStake != nil && $0.kind != .chargedTwice }
        #expect(
          stakes.count <= (judgement.disposition == .sandbox ? 0 : 1), "besides charged_twice, one amount at risk")
      }
      let identities = outcome.findings.map(\.identity)
      #expect(Set(identities).count == identities.count, "identities of findings are unique")
      expectNoMoneyIsLost(world, outcome)
    }
  }

  /// A live payment of our app is claimed by an order or has a finding, never both.
  private func expectNoMoneyIsLost(_ world: World, _ outcome: World.Outcome) {
    let claimed = world.matchedFacts().claimed
    let orphans = Set(
      outcome.findings.filter { $0.kind == .orphanPayment || $0.kind == .renewalWithoutOrder }.map(\.subject.id))
    let listed = world.awaitingDetails()
    for record in TransactionRecord.foldingPurchases(world.transactions)
    where record.isLive && record.bundleId == ShopFixture.bundle && record.transactionId == record.smallestId {
      if listed.contains(record.key), !record.isRevocationKnown { continue }
      let isSale = !record.isFamilyShared && !record.isRestore
      guard isSale, let date = record.purchaseDate, date >= world.rules.lookbackStart,
        !world.rules.mayAwaitOrder(since: date)
      else { continue }
      #expect(claimed.isDisjoint(with: record.keys) != orphans.isDisjoint(with: record.keys.map(\.transactionId)))
    }
  }

  @Test("Input order changes no result", arguments: Effort.blocks)
  func shuffled(block: UInt64) {
    forEachWorld(block) { random, generator in
      let outcome = random.world.audited()
      let again = random.world.shuffled(using: &generator).audited()
      #expect(again.findings == outcome.findings)
      #expect(again.text == outcome.text)
      #expect(again.totals.users.mapValues(\.figures) == outcome.totals.users.mapValues(\.figures))
      #expect(again.totals.pricePoints.mapValues(\.figures) == outcome.totals.pricePoints.mapValues(\.figures))
      #expect(again.totals.control == outcome.totals.control)
    }
  }

  @Test("A second transaction ID of a period changes no owner and no verdict", arguments: Effort.blocks)
  func secondIDs(block: UInt64) {
    var tried = 0
    forEachWorld(block) { random, generator in
      guard let split = random.splittingPeriods(using: &generator) else { return }
      tried += 1
      let (before, after) = (random.world.matchedFacts().orders, split.matchedFacts().orders)
      let (judged, again) = (random.world.audited().judgements, split.audited().judgements)
      for (orderId, facts) in before {
        #expect(
          Set(after[orderId]?.claims.owned.map(\.purchaseKey) ?? []) == Set(facts.claims.owned.map(\.purchaseKey)),
          "\(orderId) of block \(block)")
        #expect(again[orderId]?.disposition == judged[orderId]?.disposition, "\(orderId) of block \(block)")
        #expect(again[orderId]?.payment == judged[orderId]?.payment, "\(orderId) of block \(block)")
      }
    }
    #expect(tried > 5)
  }

  @Test("A row that is read and not judged, or judged and not read, unbalances the totals")
  func unbalanced() {
    var scene = ShopFixture()
    scene.delivery(of: scene.paidOrder())
    let outcome = scene.world.audited()
    var unread = outcome.totals
    unread.read(scene.world.orders[0])
    #expect(!unread.isBalanced)
    var unjudged = outcome.totals
    if let judgement = outcome.judgements["order"] { unjudged.add(judgement) }
    #expect(!unjudged.isBalanced)
  }

  @Test("Totals of parts, joined in any order, are those of the whole", arguments: Effort.blocks)
  func joined(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for _ in 0..<50 {
      let outcome = RandomWorld.make(using: &random).world.audited()
      var parts = (0..<3).map { _ in Totals() }
      for judgement in outcome.judgements.values.sorted(by: { $0.row.orderId < $1.row.orderId }) {
        let place = random.number(0...2)
        parts[place].read(judgement.row)
        parts[place].add(judgement)
      }
      var whole = Totals()
      for part in parts.shuffled(using: &random) { whole.join(part) }
      #expect(whole.ordersRead == outcome.totals.ordersRead)
      #expect(whole.ordersByDisposition == outcome.totals.ordersByDisposition)
      #expect(whole.ordersByCurrency == outcome.totals.ordersByCurrency)
      for disposition in Disposition.allCases where disposition != .badRow {
        let counted = whole.ordersByCurrency[disposition.index].sorted.reduce(0) { $0 + $1.value }
        #expect(counted == whole.ordersByDisposition[disposition.index])
      }
      #expect(whole.amountByDisposition == outcome.totals.amountByDisposition)
      #expect(whole.ordered == outcome.totals.ordered && whole.control == outcome.totals.control)
      // Users that a part has handed over count like those that it keeps.
      var handingOver = Totals()
      for place in parts.indices {
        if place > 0 { parts[place].takeUsers { _, _ in } }
        handingOver.join(parts[place])
      }
      #expect(handingOver.control == outcome.totals.control)
    }
  }

  @Test("A totals line keeps exact sums beyond 64 bits when it is added to, stored and joined")
  func wideSums() {
    var random = SeededGenerator(seed: 5)
    let key = Totals.UserKey(userId: "user", currency: Money.of(0).currency)
    for _ in 0..<50 {
      var exact = [Int128](repeating: 0, count: 10)
      var totals = Totals()
      for number in 0..<random.number(1...12) {
        let amount = random.pick(Int64.max, .min, -1, 0, 1, Int64(random.number(-9...9)))
        let order = Order(
          orderId: Identifier("\(number)"), userId: "user", productId: "gems", amount: .of(amount), status: .verified,
          createdAt: asOf)
        var judgement = Judgement(judging: OrderFacts(order: order), rules: RandomWorld.rules)
        judgement.disposition = Disposition.inMoneyTotals[random.number(0...8)]
        totals.add(judgement)
        exact[judgement.disposition.index] += Int128(amount)
        exact[9] += Int128(amount)
      }
      let line = totals.users[key]
      #expect(line.sums == exact && line.ordered == exact[9])
      var sums = exact[...]
      #expect(Totals.Line(orders: line.orders) { sums.removeFirst() } == line)
      totals.join(line, of: key)
      #expect(totals.users[key].sums == exact.map { $0 * 2 } && totals.users[key].orders == line.orders * 2)
    }
  }

  @Test("Totals and control totals equal figures computed by hand")
  func totals() {
    var scene = ShopFixture()
    scene.delivery("d1", of: scene.order("a", by: "ann") { $0.amount = .of(100) })
    scene.order("b", by: "ann") { $0.amount = .of(250) }
    scene.order("c", by: "bob") { $0.amount = .of(300, "JPY") }
    scene.world.orders.append(.bad(.broken("d")))
    let totals = scene.world.audited().totals
    #expect(
      totals.control == [
        ControlTotal(name: "orders read = sum over dispositions", left: "4", right: "4"),
        ControlTotal(name: "ordered JPY = sum over dispositions", left: "300", right: "300"),
        ControlTotal(name: "ordered JPY = sum over users", left: "300", right: "300"),
        ControlTotal(name: "ordered JPY = sum over price points", left: "300", right: "300"),
        ControlTotal(name: "ordered JPY = sum over products", left: "300", right: "300"),
        ControlTotal(name: "ordered USD = sum over dispositions", left: "3.50", right: "3.50"),
        ControlTotal(name: "ordered USD = sum over users", left: "3.50", right: "3.50"),
        ControlTotal(name: "ordered USD = sum over price points", left: "3.50", right: "3.50"),
        ControlTotal(name: "ordered USD = sum over products", left: "3.50", right: "3.50"),
      ])
    #expect(totals.users.count == 2)
    #expect(totals.pricePoints.count == 3)
    #expect(totals.amountByDisposition[Disposition.deliveredNotPaid.index].sorted.map(\.minorUnits) == [100])
  }

  /// Runs a check over the block's worlds.
  private func forEachWorld(_ block: UInt64, _ check: (RandomWorld, inout SeededGenerator) -> Void) {
    var generator = SeededGenerator(seed: block)
    for _ in 0..<Self.worldsPerBlock { check(.make(using: &generator), &generator) }
  }
}

extension Totals {
  /// Whether every control total balances.
  var isBalanced: Bool { control.allSatisfy { $0.isBalanced } }
}

extension World.Outcome {
  /// Every judgement in full, one a line, sorted.
  var text: [String] { judgements.map { "\($0.key) \($0.value)" }.sorted() }
}

extension Totals.Line {
  /// The count, the ordered sum and the sums by disposition.
  fileprivate var figures: [Int128] { [Int128(orders), ordered] + byDisposition }
}
