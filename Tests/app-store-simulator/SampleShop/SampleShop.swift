import Reconciliation
import SampleShops

/// A whole shop: the scenarios of `SampleShops` among ordinary sales and subscriptions.
struct SampleShop {
  /// The minimum for all scenarios.
  static let fewestOrders = 500
  /// At least the time that a subscription needs to lapse, at most the audit's lookback.
  static let possibleDays = 56...110

  let timeline: Timeline
  private(set) var known: KnownShop
  private(set) var customers: Customers
  private(set) var names: [Identifier: String] = [:]
  var reported: [Identifier: [String: Any]] = [:]
  var reportRows: [[String: String]] = []
  var hasQuiz = false
  private var random: SampleRandom
  private var stories = 0
  private var serial: Int64 = 0
  /// Receipts of regular customers, and purchases that stay in app receipts, by position of the customer.
  private var regular: [(user: Int, receipt: Receipt)] = []
  private var permanent: [Int: [TransactionRecord]] = [:]

  init(orders: Int, seed: UInt64, timeline: Timeline) {
    self.timeline = timeline
    random = SampleRandom(seed: seed)
    customers = Customers(count: max(800, orders * 4 / 25), &random)
    known = KnownShop(asOf: timeline.asOf)
    let lastDay = timeline.midnight(1)
    for scenario in Scenario.all(.verifyReceipt) {
      for _ in 0..<max(1, (scenario.count * orders + 2_500) / 5_000) { add(scenario, at: timeline.instant(&random)) }
      for _ in 0..<scenario.onLastDay { add(scenario, at: lastDay + .minutes(Int64(random.number(0...14 * 60)))) }
    }
    for _ in 0..<(orders / 28) { add(.subscription, of: SampleProduct.vip, at: timeline.instant(&random)) }
    let sinceMidnight = Int((timeline.asOf - timeline.lastMidnight).wholeSeconds) / 60
    for _ in 0..<(orders / 600) {
      sellHonestly(at: timeline.lastMidnight + .minutes(Int64(random.number(0...sinceMidnight - 65))))
    }
    while known.world.orders.count < orders { sellHonestly(at: timeline.instant(&random)) }
    listPurchases()
  }

  // MARK: - Scenarios

  mutating func story(
    at time: Instant, channel: ScenarioFixture.Channel = .verifyReceipt, currency: String? = nil
  ) -> ScenarioFixture {
    stories += 1
    return ScenarioFixture(
      prefix: "\(stories)/", seed: random.next(), channel: channel, asOf: timeline.asOf, time: time, currency: currency)
  }

  private mutating func add(_ scenario: Scenario, at time: Instant) {
    var story = story(at: time)
    scenario.build(&story)
    add(story, by: [:])
  }

  private mutating func add(_ scenario: Scenario, of ware: SampleProduct, quantity: Int32 = 1, at time: Instant) {
    var story = story(at: time)
    story.sells(ware, quantity: quantity)
    scenario.build(&story)
    let user = customers.buyer(of: ware, story.scene.amount.currency.code, &random)
    add(story, by: [story.scene.id("user"): user])
    for receipt in story.scene.world.receipts where receipt.state.kind == .app { regular.append((user, receipt)) }
    if ware.type != .consumable { permanent[user, default: []] += story.scene.world.transactions }
  }

  private mutating func sellHonestly(at time: Instant) {
    let ware =
      switch random.fraction() {
      case ..<0.38: SampleProduct.gems[0]
      case ..<0.62: SampleProduct.gems[1]
      case ..<0.76: SampleProduct.gems[2]
      case ..<0.82: SampleProduct.chest
      case ..<0.96: random.pick(among: SampleProduct.heroes)
      default: SampleProduct.seasonPass
      }
    let isMany = ware.type == .consumable && random.fraction() < 0.12
    add(.honest, of: ware, quantity: isMany ? Int32(random.number(2...5)) : 1, at: time)
  }

  /// Adds to each app receipt the permanent purchases made before it.
  private mutating func listPurchases() {
    for (user, receipt) in regular {
      let listed = permanent[user, default: []].filter { $0.purchaseDate.map { $0 <= receipt.receivedAt } ?? false }
      known.world.contained[receipt.receiptId, default: []].formUnion(listed.map(\.key))
    }
  }

  // MARK: - Realistic names

  /// Adds a scenario with realistic IDs, names and tokens.
  ///
  /// - Parameter users: positions of customers, by scenario ID; other people get no further scenarios.
  mutating func add(_ story: ScenarioFixture, by users: [Identifier: Int]) {
    var (story, users) = (story, users)
    var world: SampleShops.World {
      get { story.scene.world }
      set { story.scene.world = newValue }
    }
    let people = world.orders.map(\.userId) + world.receipts.compactMap(\.userId) + world.deliveries.map(\.userId)
    for id in people where users[id] == nil {
      let isTester = world.rules.testUsers.contains(id)
      users[id] = customers.someone(story.scene.amount.currency.code, isTester: isTester, &random)
    }
    for (id, user) in users { names[id] = customers.all[user].userId }
    for row in world.orders { names[row.orderId] = orderId(at: row.createdAt) }
    for delivery in world.deliveries {
      names[delivery.deliveryId] = String(500_000_000_000_000_000 + next() * 41)
      if let id = delivery.orderId, names[id] == nil { names[id] = orderId(at: delivery.deliveredAt) }
    }
    for receipt in world.receipts { names[receipt.receiptId] = String(30_000_000_000_000_000 + next() * 37) }
    for record in world.transactions + world.unseen {
      for id in [record.transactionId, record.originalTransactionId].compactMap(\.self) { nameTransaction(id) }
    }
    for index in world.orders.indices {
      guard case .valid(var order) = world.orders[index] else { continue }
      if let id = order.transactionId { nameTransaction(id) }
      order.appAccountToken = users[order.userId].map { customers.all[$0].accountToken }
      world.orders[index] = .valid(order)
    }
    let buyer = people.first.flatMap { users[$0] }
    for index in world.transactions.indices where world.transactions[index].ownership != .familyShared {
      world.transactions[index].appAccountToken = .stated(buyer.map { customers.all[$0].accountToken })
    }
    for index in world.receipts.indices where world.receipts[index].claimedEnvironment == nil {
      world.receipts[index].claimedEnvironment = (world.receipts[index].state.environment ?? .production).rawValue
    }
    known.add(story)
  }

  func name(_ id: Identifier) -> String { names[id] ?? id.text }

  /// The tables, sorted by ID, so that the order of creation is not visible.
  func tables(payloads: [Identifier: String]) -> [ShopTable] {
    var world = known.world
    for index in world.orders.indices where hasQuiz {
      switch world.orders[index] {
      case .valid(var order):
        order.bundleId = order.bundleId ?? ShopFixture.bundle
        world.orders[index] = .valid(order)
      case .bad(var order):
        order.bundleId = ShopFixture.bundle
        world.orders[index] = .bad(order)
      }
    }
    world.orders.sort { name($0.orderId) < name($1.orderId) }
    world.receipts.sort { name($0.receiptId) < name($1.receiptId) }
    world.deliveries.sort { name($0.deliveryId) < name($1.deliveryId) }
    return world.tables(payloads: payloads, name: name)
  }

  private mutating func next() -> Int64 {
    serial += 1
    return serial
  }

  /// IDs of 16 to 19 digits, which spreadsheets round. Half-way through, the shop changes from day plus serial number
  /// to a timestamp with a serial number in the last 22 bits.
  private mutating func orderId(at instant: Instant) -> String {
    guard instant < timeline.midnight(timeline.days / 2) else {
      return String(instant.milliseconds << 22 | next() & 0x3F_FFFF)
    }
    let number = String(next())
    return instant.day.filter { $0 != "-" } + String(repeating: "0", count: max(0, 8 - number.count)) + number
  }

  private mutating func nameTransaction(_ id: Identifier) {
    guard names[id] == nil else { return }
    names[id] = String(2_000_000_500_000_000 + next() * 7_919 + Int64(random.number(0...7_000)))
  }
}
