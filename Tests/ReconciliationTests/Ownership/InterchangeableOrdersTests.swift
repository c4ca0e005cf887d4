import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Many orders of one person that receipts or an account token link to ranges of purchases: matched without pairs.
@Suite struct InterchangeableOrdersTests {
  @Test("Interchangeable orders own and lose what matching pair by pair gives them", arguments: Effort.blocks)
  func asInGeneral(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var (byList, byToken, withGoods) = (0, 0, 0)
    for number in 0..<30 {
      let bot = Bot.random(using: &random)
      let (asCrowd, inGeneral) = (bot.matching(), bot.matching(with: Bot.stranger))
      var claims = inGeneral.claims
      claims[Bot.stranger.orderId] = nil
      #expect(asCrowd.claims == claims, "\(block), \(number)")
      #expect(asCrowd.claimed == inGeneral.claimed, "\(block), \(number)")
      guard asCrowd.crowd != nil, !inGeneral.claimed.isEmpty else { continue }
      if bot.isLinkedByToken { byToken += 1 } else { byList += 1 }
      if !bot.goods.isEmpty { withGoods += 1 }
    }
    #expect(byList > 2 && byToken > 2 && withGoods > 2, "\(byList), \(byToken), \(withGoods)")
  }

  @Test("With proofs and stated IDs, orders own and lose what matching in pairs gives them", arguments: Effort.blocks)
  func setApart(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var (decided, lost) = (0, 0)
    for number in 0..<60 {
      var bot = Bot.random(using: &random)
      bot.setApart(using: &random)
      let (asCrowd, inGeneral) = (bot.matching(), bot.matching(with: Bot.stranger))
      var claims = inGeneral.claims
      claims[Bot.stranger.orderId] = nil
      #expect(asCrowd.claims == claims, "\(block), \(number)")
      #expect(asCrowd.claimed == inGeneral.claimed, "\(block), \(number)")
      guard asCrowd.crowd != nil else { continue }
      let owning = bot.apart.filter { !(claims[$0]?.owned.isEmpty ?? true) }
      decided += owning.count
      lost += bot.apart.count - owning.count
    }
    #expect(decided > 50 && lost > 0, "\(decided), \(lost)")
  }

  @Test("Steps grow with the orders where one order, or each, has a proof or a stated ID", arguments: [400, 5_000])
  func stepsOfOrdersSetApart(count: Int) throws {
    for isEach in [false, true] {
      for isProof in [false, true] {
        var bot = Bot(orders: count, purchases: count, pace: .minutes(1))
        for place in bot.orders.indices.dropFirst(2) where isEach || place == 7 {
          let id = bot.records[place - 2].transactionId
          if isProof { bot.proofs[bot.orders[place].orderId] = id } else { bot.orders[place].transactionId = id }
        }
        let steps = try #require(bot.crowd()?.steps)
        #expect(steps < 150 * count, "\(Double(steps) / Double(count)) an order")
      }
    }
  }

  @Test("Few orders own the best of all assignments, tried one by one", arguments: Effort.blocks)
  func asTriedOneByOne(block: UInt64) {
    var random = SeededGenerator(seed: block)
    var tried = 0
    for number in 0..<300 {
      let bot = Bot.random(orders: 1...5, purchases: 0...5, using: &random)
      guard let crowd = bot.crowd(least: 1) else { continue }
      tried += 1
      var owners: [Identifier: Identifier] = [:]
      for sale in crowd.sales where !sale.isFurther {
        owners[sale.transaction.transactionId] = sale.owner.map { bot.sorted[$0].order.orderId }
      }
      let (inOrder, most) = (bot.bestOwners(inOrder: true), bot.bestOwners(inOrder: false))
      if inOrder.count == most.count {
        #expect(owners == inOrder, "\(block), \(number)")
      } else {
        // Pairs cross only so that there are more of them.
        #expect(owners.count == most.count, "\(block), \(number)")
        #expect(Set(inOrder.values).isSubset(of: Set(owners.values)), "\(block), \(number)")
      }
    }
    #expect(tried > 100)
  }

  @Test("Steps grow with the orders where one receipt and an account token link all", arguments: [400, 2_000, 5_000])
  func stepsByToken(count: Int) throws {
    for (purchases, pace) in [(count, Span.minutes(1)), (count - 2, .minutes(1)), (count, .hours(1))] {
      var bot = Bot(orders: count, purchases: purchases, pace: pace)
      bot.linkByToken(receiptsOf: [bot.orders[7].orderId])
      let steps = try #require(bot.crowd()?.steps)
      #expect(steps < 150 * count, "\(Double(steps) / Double(count)) an order")
    }
  }

  @Test("Where each receipt lists what there is so far, steps grow with the orders as well", arguments: [100, 400])
  func growing(count: Int) throws {
    for (purchases, pace) in [(count - 2, Span.minutes(5)), (count, .hours(1)), (count + 2, .minutes(40))] {
      var bot = Bot(orders: count, purchases: purchases, pace: pace)
      bot.listed = bot.orders.indices.map { min($0 + 3, purchases) }
      let steps = try #require(bot.crowd()?.steps)
      // Beside the purchases that the receipts list.
      let listed = bot.listed.map { $0.reduce(0, +) } ?? 0
      #expect(steps - listed < 150 * count, "\(Double(steps - listed) / Double(count)) an order")
    }
  }

  @Test("Steps grow with the orders, whether they come in one burst or over months", arguments: [400, 2_000, 5_000])
  func steps(count: Int) throws {
    for pace in [Span(microseconds: 40_000_000), .hours(1)] {
      let bot = Bot(orders: count, purchases: count - 2, pace: pace)
      let steps = try #require(bot.crowd()?.steps)
      #expect(steps < 150 * count, "\(Double(steps) / Double(count)) an order")
    }
  }

  @Test("Orders of two products, people or tokens, or with an undecided ID or proof, are not interchangeable")
  func mixed() {
    func isInterchangeable(_ change: (inout Bot) -> Void) -> Bool {
      var bot = Bot(orders: 40, purchases: 40, pace: .minutes(5))
      change(&bot)
      return bot.crowd() != nil
    }
    #expect(isInterchangeable { _ in })
    #expect(isInterchangeable { bot in for place in bot.orders.indices { bot.orders[place].appAccountToken = nil } })
    #expect(!isInterchangeable { $0.orders[7].productId = "coins" })
    #expect(!isInterchangeable { $0.orders[7].userId = "stranger" })
    #expect(!isInterchangeable { $0.orders[7].transactionId = "T1001" })
    #expect(!isInterchangeable { $0.orders[7].appAccountToken = nil })
    #expect(!isInterchangeable { $0.records[3].environment = .sandbox })
    #expect(isInterchangeable { $0.proofs[$0.orders[7].orderId] = $0.records[3].transactionId })
    #expect(isInterchangeable { $0.orders[7].transactionId = $0.records[5].transactionId })
    #expect(!isInterchangeable { $0.orders[7].transactionId = $0.records[3].transactionId })
    #expect(
      !isInterchangeable { bot in
        for place in [7, 9] { bot.proofs[bot.orders[place].orderId] = bot.records[3].transactionId }
      })
  }
}

/// A user with many orders. One receipt, one for each order, or an account token links them to purchases.
private struct Bot {
  /// An order that has nothing to do with theirs, but that it names something: so they are no crowd.
  static let stranger: Order = {
    var order = Order(
      orderId: "s1", userId: "stranger", productId: "coins", amount: .of(990), status: .verified,
      createdAt: asOf)
    order.transactionId = "unheard of"
    return order
  }()

  var orders: [Order]
  /// In time.
  var records: [TransactionRecord]
  /// By order, how many of the records its receipt lists; nil: all of them share one list.
  var listed: [Int]?
  /// True if the account token links all orders to the records with it, and only some orders have receipts.
  var isLinkedByToken = false
  /// The orders with receipts if the token links all orders.
  var receipts: Set<Identifier> = []
  /// Orders with goods; the others have none.
  var goods: Set<Identifier> = []
  /// Transactions that a signed proof of an order contains.
  var proofs: [Identifier: Identifier] = [:]
  /// How much beyond the window lists reach.
  var slack = Span.hours(0)
  /// Orders with a further receipt that is not answered.
  var open: Set<Identifier> = []
  let rules = ShopFixture().world.rules

  init(orders orderCount: Int, purchases: Int, pace: Span) {
    let start = asOf - .days(100)
    orders = (0..<orderCount).map { number in
      var order = Order(
        orderId: Identifier("o\(10_000 + number)"), userId: "bot", productId: "gems.100", amount: .of(990),
        status: .verified, createdAt: start + Span(microseconds: pace.microseconds * Int64(number)))
      order.appAccountToken = number.isMultiple(of: 2) ? "AB-1" : "ab1"
      return order
    }
    records = (0..<purchases).map { number in
      // A purchase is made while the next order or two are under way.
      let date = start + Span(microseconds: pace.microseconds * Int64(number) + pace.microseconds * 7 / 4)
      return Bot.record(number, at: date)
    }
  }

  private static func record(_ number: Int, at date: Instant) -> TransactionRecord {
    var contents = TransactionRecord.Contents(
      environment: .production, transactionId: Identifier("T\(10_000 + number)"), productId: "gems.100")
    contents.bundleId = ShopFixture.bundle
    contents.purchaseDate = date
    return TransactionRecord(contents)
  }

  mutating func linkByToken(receiptsOf orderIds: Set<Identifier>) {
    (isLinkedByToken, receipts) = (true, orderIds)
    for place in records.indices { records[place].appAccountToken = .stated("ab-1") }
  }

  static func random(
    orders: ClosedRange<Int> = 33...60, purchases: ClosedRange<Int> = 0...70, using random: inout SeededGenerator
  ) -> Bot {
    var bot = Bot(orders: random.number(orders), purchases: 0, pace: .hours(0))
    let span = random.pick(30, 600, 20_000)
    // In one stretch of time, or in several that have nothing to do with each other.
    let stretches = random.pick(0, 0, 2, 5)
    // By half days some pairs are exactly as far apart as they may be.
    let step: Int64 = random.pick(1, 1, 720)
    func time() -> Instant {
      asOf - .days(110) + .days(Int64(20 * random.number(0...stretches)))
        + .minutes(Int64(random.number(0...span)) / step * step)
    }
    let isLinkedByToken = random.oneIn(2)
    if !isLinkedByToken, random.oneIn(4) { for place in bot.orders.indices { bot.orders[place].appAccountToken = nil } }
    for place in bot.orders.indices { bot.orders[place].createdAt = time() }
    bot.records = (0..<random.number(purchases)).map { record($0, at: time()) }
    if isLinkedByToken {
      let most = random.pick(0, 1, 3)
      bot.linkByToken(receiptsOf: Set(bot.orders.prefix(most).map(\.orderId)))
      // A token links a gift to no charge.
      if random.oneIn(4) { for place in bot.orders.indices where random.oneIn(6) { bot.orders[place].amount = .of(0) } }
      for place in bot.records.indices where random.oneIn(30) { bot.records[place].priceMilliunits = 990 }
    }
    if random.oneIn(2) { bot.goods = Set(bot.orders.map(\.orderId).filter { _ in !random.oneIn(3) }) }
    for place in bot.records.indices {
      if random.oneIn(9) { bot.records[place].revocation = Revocation(date: asOf) }
      if random.oneIn(9) { bot.records[place].productId = "coins" }
      if random.oneIn(9) {
        let isOther = isLinkedByToken && random.oneIn(9)
        bot.records[place].appAccountToken = isOther ? random.pick(.absent, .stated("b2")) : .stated("ab-1")
      }
      if random.oneIn(12) { bot.records[place].isRenewal = true }
    }
    if random.oneIn(2) {
      bot.records.sort { ($0.saleDate ?? asOf) < ($1.saleDate ?? asOf) }
      bot.listed = bot.orders.map { order in
        let until = order.createdAt + .minutes(Int64(random.number(0...span)))
        let made = bot.records.count { ($0.saleDate ?? asOf) <= until }
        // Most of them list what there was, a few less than that.
        return random.oneIn(60) ? random.number(0...made) : made
      }
      bot.slack = random.pick(.hours(0), .hours(10_000), .hours(-1))
    }
    if random.oneIn(3) {
      for place in bot.orders.indices { bot.orders[place].quantity = random.pick(1, 1, 2) }
      for place in bot.records.indices { bot.records[place].quantity = random.pick(nil, 1, 1, 2) }
    }
    // Ids in another order than times.
    for place in bot.orders.indices where random.oneIn(3) {
      let other = random.number(0...(bot.orders.count - 1))
      let id = bot.orders[place].orderId
      bot.orders[place].orderId = bot.orders[other].orderId
      bot.orders[other].orderId = id
    }
    if random.oneIn(3) { bot.open = Set(bot.orders.map(\.orderId).filter { _ in random.oneIn(12) }) }
    return bot
  }

  /// Orders with a proof or a stated ID.
  var apart: [Identifier] { orders.filter { proofs[$0.orderId] != nil || $0.transactionId != nil }.map(\.orderId) }

  /// Gives some of the orders, or most of them, a proof or a stated ID of a near purchase, or of one of the nearest.
  mutating func setApart(using random: inout SeededGenerator) {
    let (isMost, most) = (random.oneIn(2), random.pick(1, 1, 3))
    let isProof = random.oneIn(2)
    for place in orders.indices where isMost != random.oneIn(10) {
      let createdAt = orders[place].createdAt
      let near = records.filter { ($0.saleDate.map { ($0 - createdAt).magnitude } ?? .days(9)) <= .days(3) }.sorted {
        let distances = [$0, $1].map { (($0.saleDate ?? createdAt) - createdAt).magnitude }
        return (distances[0], $0.transactionId) < (distances[1], $1.transactionId)
      }
      guard !near.isEmpty else { continue }
      let id = near[random.number(0...min(most, near.count) - 1)].transactionId
      if isProof != random.oneIn(9) { proofs[orders[place].orderId] = id } else { orders[place].transactionId = id }
    }
  }

  private var claimants: [Claimant] {
    let shared = VerifiedTransactions(records)
    let withToken = VerifiedTransactions(
      records.filter { AccountToken.relation(of: orders[0], to: $0) == .same })
    return orders.enumerated().map { place, order in
      let list =
        listed.map { VerifiedTransactions(transactionsInWindow(of: order, among: records.prefix($0[place]))) } ?? shared
      return Claimant(
        order: order, proven: isLinkedByToken && !receipts.contains(order.orderId) ? .none : list,
        known: isLinkedByToken ? withToken : .none, proofIds: Set([proofs[order.orderId]].compactMap(\.self)),
        isOpen: open.contains(order.orderId), hasGoods: goods.contains(order.orderId))
    }
  }

  var sorted: [Claimant] {
    claimants.sorted { ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId) }
  }

  /// By transaction, its owner in the best of all assignments: the most pairs, then the most orders with goods, then the
  /// smallest distance, then the earlier purchase for the earlier order.
  func bestOwners(inOrder: Bool) -> [Identifier: Identifier] {
    let sales = records.sorted {
      ($0.saleDate ?? asOf, $0.transactionId) < ($1.saleDate ?? asOf, $1.transactionId)
    }
    let orders = sorted
    var best: (score: [Int64], partners: [Int?])?
    func extend(_ partners: [Int?], _ score: [Int64]) {
      if partners.count == orders.count {
        let ties = partners.map { Int64($0 ?? sales.count) }
        if best.map({ (score + ties).lexicographicallyPrecedes($0.score) }) ?? true { best = (score + ties, partners) }
        return
      }
      let own = orders[partners.count]
      extend(partners + [nil], score)
      for link in own.links(stated: nil, rules: rules) {
        guard let sale = sales.firstIndex(where: { $0.transactionId == link.transaction.transactionId }),
          !partners.contains(sale), !inOrder || partners.allSatisfy({ $0.map { $0 < sale } ?? true })
        else { continue }
        extend(
          partners + [sale],
          [score[0] - 1, score[1] - (own.hasGoods ? 1 : 0), score[2] + link.rank.distance.microseconds])
      }
    }
    extend([], [0, 0, 0])
    let owned = zip(orders, best?.partners ?? []).compactMap { order, sale in
      sale.map { (sales[$0].transactionId, order.order.orderId) }
    }
    return Dictionary(uniqueKeysWithValues: owned)
  }

  /// The transactions that an audit would pass on: those long before the order are left out.
  private func transactionsInWindow(of order: Order, among records: ArraySlice<TransactionRecord>)
    -> [TransactionRecord]
  {
    let first = order.createdAt - rules.matchWindow - slack
    return records.filter { record in record.saleDate.map { $0 >= first } ?? true }
  }

  func matching(with other: Order? = nil) -> Matching {
    Matching(of: claimants + [other].compactMap { $0 }.map { Claimant(order: $0, proven: .none) }, rules: rules)
  }

  func crowd(least: Int = 32) -> InterchangeableOrders? {
    InterchangeableOrders(
      sorted, Array(repeating: false, count: orders.count), lostClaimLimit: 8, least: least, rules: rules)
  }
}
