import TestSupport
import Testing

@testable import Reconciliation
@testable import SampleWorlds

/// Many orders that share one list of purchases, or have one each that grows: decided without pairs, and as in general.
@Suite struct InterchangeableOrdersTests {
  @Test("What a crowd comes to is what matching pair by pair comes to", arguments: Effort.blocks)
  func asInGeneral(block: UInt64) {
    var random = SeededGenerator(seed: block)
    for number in 0..<40 {
      let crowd = Bot.random(using: &random)
      let (asCrowd, inGeneral) = (crowd.matching(), crowd.matching(with: Bot.stranger))
      var claims = inGeneral.claims
      claims[Bot.stranger.orderId] = nil
      #expect(asCrowd.claims == claims, "crowd \(number)")
      #expect(asCrowd.claimed == inGeneral.claimed, "crowd \(number)")
    }
  }

  @Test("Where each receipt lists what there is so far, steps grow with the orders as well", arguments: [100, 400])
  func growing(count: Int) throws {
    for (purchases, pace) in [(count - 2, Span.minutes(5)), (count, .hours(1)), (count + 2, .minutes(40))] {
      var bot = Bot(orders: count, purchases: purchases, pace: pace)
      bot.listed = bot.orders.indices.map { min($0 + 3, purchases) }
      let steps = try #require(bot.crowd?.steps)
      #expect(steps < 150 * count, "\(Double(steps) / Double(count)) an order")
    }
  }

  @Test("Steps grow with the orders, whether they come in one burst or over months", arguments: [400, 2_000, 5_000])
  func steps(count: Int) throws {
    for pace in [Span(microseconds: 40_000_000), .hours(1)] {
      let bot = Bot(orders: count, purchases: count - 2, pace: pace)
      let steps = try #require(bot.crowd?.steps)
      #expect(steps < 150 * count, "\(Double(steps) / Double(count)) an order")
    }
  }

  @Test("Orders that are not of one kind are no crowd")
  func mixed() {
    var bot = Bot(orders: 40, purchases: 40, pace: .minutes(5))
    #expect(bot.crowd != nil)
    bot.orders[7].productId = "coins"
    #expect(bot.crowd == nil)
    bot = Bot(orders: 40, purchases: 40, pace: .minutes(5))
    bot.orders[7].transactionId = "T1001"
    #expect(bot.crowd == nil)
    bot = Bot(orders: 40, purchases: 40, pace: .minutes(5))
    bot.records[3].environment = .sandbox
    #expect(bot.crowd == nil)
    bot = Bot(orders: 40, purchases: 40, pace: .minutes(5))
    for place in bot.orders.indices { bot.orders[place].appAccountToken = nil }
    #expect(bot.crowd != nil)
    bot.orders[7].appAccountToken = "ab1"
    #expect(bot.crowd == nil)
  }
}

/// A user with many orders, and one receipt that lists all purchases or one for each order.
private struct Bot {
  /// An order that has nothing to do with theirs, but that it names something: so they are no crowd.
  static let stranger: Order = {
    var order = Order(
      orderId: "s1", userId: "stranger", productId: "coins", amount: .of(990), status: .verified,
      createdAt: ShopFixture.asOf)
    order.transactionId = "unheard of"
    return order
  }()

  var orders: [Order]
  /// In time.
  var records: [TransactionRecord]
  /// By order, how many of the records its receipt lists; nil: all of them share one list.
  var listed: [Int]?
  /// How much beyond the window lists reach.
  var slack = Span.hours(0)
  /// Orders with a further receipt that is not answered.
  var open: Set<Identifier> = []
  let rules = ShopFixture().world.rules

  init(orders orderCount: Int, purchases: Int, pace: Span) {
    let start = ShopFixture.asOf - .days(100)
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

  static func random(using random: inout SeededGenerator) -> Bot {
    var bot = Bot(orders: random.number(33...60), purchases: 0, pace: .hours(0))
    let span = random.pick(30, 600, 20_000)
    // In one stretch of time, or in several that have nothing to do with each other.
    let stretches = random.pick(0, 0, 2, 5)
    // By half days some pairs are exactly as far apart as they may be.
    let step: Int64 = random.pick(1, 1, 720)
    func time() -> Instant {
      ShopFixture.asOf - .days(110) + .days(Int64(20 * random.number(0...stretches)))
        + .minutes(Int64(random.number(0...span)) / step * step)
    }
    if random.oneIn(4) { for place in bot.orders.indices { bot.orders[place].appAccountToken = nil } }
    for place in bot.orders.indices { bot.orders[place].createdAt = time() }
    bot.records = (0..<random.number(0...70)).map { record($0, at: time()) }
    for place in bot.records.indices {
      if random.oneIn(9) { bot.records[place].revocation = Revocation(date: ShopFixture.asOf) }
      if random.oneIn(9) { bot.records[place].productId = "coins" }
      if random.oneIn(9) { bot.records[place].appAccountToken = .says("ab-1") }
      if random.oneIn(12) { bot.records[place].isRenewal = true }
    }
    if random.oneIn(2) {
      bot.records.sort { ($0.saleDate ?? ShopFixture.asOf) < ($1.saleDate ?? ShopFixture.asOf) }
      bot.listed = bot.orders.map { order in
        let until = order.createdAt + .minutes(Int64(random.number(0...span)))
        let made = bot.records.count { ($0.saleDate ?? ShopFixture.asOf) <= until }
        // Most of them list what there was, a few less than that.
        return random.oneIn(60) ? random.number(0...made) : made
      }
      bot.slack = random.pick(.hours(0), .hours(10_000), .hours(-1))
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

  private var claimants: [Claimant] {
    let shared = VerifiedTransactions(records)
    return orders.enumerated().map { place, order in
      let list = listed.map { VerifiedTransactions(brought(by: order, among: records.prefix($0[place]))) } ?? shared
      return Claimant(order: order, proven: list, isOpen: open.contains(order.orderId))
    }
  }

  /// What an audit hands on: what is too far from the order in time is left out, or a part of it.
  private func brought(by order: Order, among records: ArraySlice<TransactionRecord>) -> [TransactionRecord] {
    let first = order.createdAt - rules.matchWindow - slack
    return records.filter { record in record.saleDate.map { $0 >= first } ?? true }
  }

  func matching(with other: Order? = nil) -> Matching {
    Matching(of: claimants + [other].compactMap { $0 }.map { Claimant(order: $0, proven: .none) }, rules: rules)
  }

  var crowd: InterchangeableOrders? {
    let claimants = claimants.sorted {
      ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId)
    }
    return InterchangeableOrders(
      claimants, Array(repeating: false, count: claimants.count), lostClaimLimit: 8, rules: rules)
  }
}
