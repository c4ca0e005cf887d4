import Reconciliation
import TestSupport

/// A world with few IDs and many faults: claim conflicts, forged proofs, missing answers, and times close to every
/// limit. Apple's statements about one transaction never contradict each other, nor do the refunds of a purchase and of
/// its restores.
struct RandomWorld: Sendable {
  var world: World
  /// Transactions known from notifications, without any receipt or look-up.
  private var swept: Set<TransactionKey> = []

  var claimants: [Claimant] { world.claimants }

  static let rules: Rules = {
    var rules = Rules(
      asOf: ShopFixture.asOf, bundleIds: [ShopFixture.bundle], lookbackStart: ShopFixture.asOf - .days(120))
    rules.testUsers = ["tester"]
    return rules
  }()

  static func make(using random: inout SeededGenerator, prefix: String = "") -> RandomWorld {
    var made = RandomWorld(world: World(rules: rules))
    if random.oneIn(2) {
      made.world.rules.bundleIds.append(second)
      // Apple sends notifications of these apps, but they are not read yet.
      for app in made.world.rules.bundleIds { made.world.rules.salesKnownUntil[app] = ShopFixture.asOf - .days(140) }
    }
    if random.oneIn(3) { made.world.rules.people = People(aliases: [("ann", "bob")]) }
    if random.oneIn(2) {
      made.world.products = [.init(productId: "gems", type: random.pick(.nonConsumable, .consumable))]
    }
    let apps = made.world.rules
    var transactions = (0..<random.number(0...6)).map { record("T\($0)", prefix, using: &random) }
    for number in 0..<random.number(1...6) {
      let named = random.pick(nil, nil, transactions.randomElement(using: &random)?.transactionId, "unknown")
      made.world.orders.append(
        row(Identifier(prefix + "o\(number)"), named: named.map { Identifier($0.text) }, apps, using: &random))
    }
    for number in 0..<random.number(0...8) {
      // Tables share IDs.
      made.addReceipt(Identifier(prefix + random.pick("o", "r") + "\(number)"), of: transactions, using: &random)
    }
    for number in 0..<random.number(0...6) {
      made.world.deliveries.append(
        delivery(
          Identifier(prefix + random.pick("o", "r", "d") + "\(number)"), for: made.someOrderId(using: &random),
          using: &random))
    }
    for transaction in transactions where random.oneIn(4) { made.swept.insert(transaction.key) }
    made.addLookups(knowing: transactions, using: &random)
    for number in 0..<random.number(0...2) {
      transactions.append(made.addSale(number, prefix, using: &random))
    }
    for place in transactions.indices where transactions[place].restoresAnotherID {
      let originalId = transactions[place].originalTransactionId
      if let refund = transactions.first(where: { $0.transactionId == originalId })?.revocation,
        transactions[place].revocation != nil
      {
        transactions[place].revocation = refund
      }
    }
    made.world.transactions = transactions
    made.forgetUnknown()
    return made
  }

  /// The world without some of Apple's answers, and the orders whose own answers are missing.
  func withholding(using random: inout SeededGenerator) -> (world: World, silenced: Set<Identifier>) {
    var copy = self
    var silenced: Set<Identifier> = []
    func silence() -> ProofState {
      random.oneIn(2) ? .neverChecked : .unanswered(random.pick(.unreachable, .rateLimited, .appleError, nil))
    }
    for index in copy.world.receipts.indices where random.oneIn(2) && copy.world.receipts[index].defect == nil {
      copy.world.receipts[index].state = silence()
      copy.world.contained[copy.world.receipts[index].receiptId] = nil
      if let orderId = copy.world.receipts[index].orderId { silenced.insert(orderId) }
    }
    for orderId in copy.world.lookups.keys.sorted() where random.oneIn(2) {
      copy.world.lookups[orderId] = silence()
      silenced.insert(orderId)
    }
    copy.forgetUnknown()
    return (copy.world, silenced)
  }

  /// Worlds that each lack one of Apple's answers, or a part of one.
  func withholdingOne(using random: inout SeededGenerator) -> [WorldWithoutAnswer] {
    var worlds: [WorldWithoutAnswer] = []
    func add(_ what: String, of users: [Identifier?], _ change: (inout RandomWorld) -> Void) {
      var copy = self
      change(&copy)
      copy.forgetUnknown()
      worlds.append(WorldWithoutAnswer(what: what, users: Set(users.compactMap { $0 }), world: copy.world))
    }
    var users: [Identifier: Identifier] = [:]
    for case .valid(let order) in world.orders { users[order.orderId] = order.userId }
    for (index, receipt) in world.receipts.enumerated() where receipt.defect == nil {
      let owner = [receipt.userId, receipt.orderId.flatMap { users[$0] }]
      let reason = random.pick(PaymentReason.unreachable, .rateLimited, .appleError, .systemic)
      add("receipt \(receipt.receiptId)", of: owner) { copy in
        copy.world.receipts[index].state = .unanswered(reason)
        copy.world.contained[receipt.receiptId] = nil
      }
      guard receipt.state.outcome == .verified, (world.contained[receipt.receiptId]?.count ?? 0) > 0 else { continue }
      add("part of receipt \(receipt.receiptId)", of: owner) { copy in
        copy.world.receipts[index].state = .unanswered(reason)
        if receipt.state.signedTransactionId != nil {
          copy.world.receipts[index].state.signedTransactionId = receipt.state.signedTransactionId
          copy.world.receipts[index].state.environment = receipt.state.environment
        } else if let one = copy.world.contained[receipt.receiptId]?.min() {
          copy.world.contained[receipt.receiptId]?.remove(one)
        }
      }
    }
    for orderId in world.lookups.keys.sorted() {
      add("look-up of \(orderId)", of: [users[orderId]]) { $0.world.lookups[orderId] = .unanswered(.unreachable) }
    }
    if !swept.isEmpty { add("the sweep", of: []) { $0.swept = [] } }
    for (index, record) in world.transactions.enumerated() where record.subscriptionStatus != nil {
      add("status of \(record.transactionId)", of: []) { $0.world.transactions[index].subscriptionStatus = nil }
    }
    return worlds
  }

  /// A world that lacks an answer.
  struct WorldWithoutAnswer {
    var what: String
    /// The users whose answer is missing.
    var users: Set<Identifier>
    var world: World
  }

  /// The world with a second transaction ID for each period that has an ID of its own. Some receipts contain, and some
  /// orders state, the second ID; nil: there is no such period.
  func splittingPeriods(using random: inout SeededGenerator) -> World? {
    var copy = world
    for record in world.transactions where record.expiresDate != nil && record.webOrderLineItemId != nil {
      var second = record
      // The next ID in order, so that ties between purchases stay.
      second.transactionId = Identifier(record.transactionId.text + "+")
      second.originalTransactionId = record.originalTransactionId ?? record.transactionId
      copy.transactions.append(second)
      for place in copy.receipts.indices where random.oneIn(2) {
        let receiptId = copy.receipts[place].receiptId
        guard copy.contained[receiptId]?.remove(record.key) != nil else { continue }
        copy.contained[receiptId]?.insert(second.key)
        if copy.receipts[place].state.signedTransactionId == record.transactionId {
          copy.receipts[place].state.signedTransactionId = second.transactionId
        }
      }
      copy.orders = copy.orders.map { row in
        // An order that states the original ID may mean a later period, too; with a second ID it does not.
        guard case .valid(var order) = row, order.transactionId == record.transactionId, random.oneIn(2),
          record.originalTransactionId != record.transactionId
        else { return row }
        order.transactionId = second.transactionId
        return .valid(order)
      }
    }
    return copy.transactions.count > world.transactions.count ? copy : nil
  }

  private init(world: World) { self.world = world }

  /// Removes the transactions without evidence.
  private mutating func forgetUnknown() {
    var known = swept.union(world.contained.values.joined())
    for case .valid(let order) in world.orders where world.lookups[order.orderId]?.outcome == .verified {
      known.formUnion(world.transactions.filter { $0.transactionId == order.transactionId }.map(\.key))
    }
    world.transactions.removeAll { !known.contains($0.key) }
  }

  /// For each order whose stated transaction is unknown without its receipts: worlds with one of its unrejected
  /// receipts unreadable, and one with all of them unreadable.
  func damagingOne() -> [(orderId: Identifier, world: World)] {
    world.orders.flatMap { row -> [(orderId: Identifier, world: World)] in
      guard case .valid(let order) = row, order.transactionId != nil else { return [] }
      switch world.lookups[order.orderId]?.outcome {
      case .verified, .notFound: return []
      case .pending, .rejected, .unanswered, .review, nil: break
      }
      let own = world.receipts.indices.filter { world.receipts[$0].orderId == order.orderId }
      let sound = own.filter { world.receipts[$0].defect == nil && world.receipts[$0].state.outcome != .rejected }
      return (sound.map { [$0] } + [sound]).compactMap { damaged in
        var copy = self
        for index in damaged {
          copy.world.receipts[index].state = .rejected(.malformed)
          copy.world.contained[world.receipts[index].receiptId] = nil
        }
        copy.forgetUnknown()
        let isKnown = copy.world.transactions.contains { $0.transactionId == order.transactionId }
        return damaged.isEmpty || isKnown ? nil : (order.orderId, copy.world)
      }
    }
  }

  private func someOrderId(using random: inout SeededGenerator) -> Identifier? {
    random.oneIn(10) ? random.pick(nil, "missing") : world.orders.randomElement(using: &random)?.orderId
  }

  /// A time at the edge of a limit, give or take a microsecond.
  private static func time(using random: inout SeededGenerator) -> Instant {
    let edges: [Span] = [.hours(1), .hours(24), .hours(48), .hours(72), .days(2), .days(16), .days(130), .minutes(-10)]
    let edge = edges.randomElement(using: &random) ?? .hours(1)
    return ShopFixture.asOf - edge + Span(microseconds: Int64(random.number(-1...1)))
  }

  private static let second = "com.example.second"

  private static func record(
    _ id: String, _ prefix: String, using random: inout SeededGenerator
  ) -> TransactionRecord {
    var record = TransactionRecord(
      environment: random.pick(.production, .production, .production, .production, .sandbox, .xcode),
      transactionId: Identifier(prefix + id), productId: random.pick("gems", "gems", "gems", "coins"))
    record.originalTransactionId = random.oneIn(8) ? Identifier(prefix + "T0") : record.transactionId
    record.bundleId = random.oneIn(8) ? random.pick(nil, "com.example.other", second, second) : ShopFixture.bundle
    record.quantity = random.pick(nil, 1, 1, 2)
    record.purchaseDate = random.oneIn(12) ? nil : time(using: &random)
    record.originalPurchaseDate = random.oneIn(8) ? time(using: &random) : record.purchaseDate
    record.isRenewal = random.pick(nil, false, false, true)
    record.expiresDate = random.oneIn(6) ? time(using: &random) : nil
    // Old receipts have no ID of the period.
    if record.expiresDate != nil, id != "T1" { record.webOrderLineItemId = Identifier(prefix + "W" + id) }
    record.ownership = random.pick(nil, .purchased, .purchased, .purchased, .purchased, .familyShared)
    record.priceMilliunits = random.pick(nil, 9_900, 9_900, 4_900)
    record.currency = random.pick(nil, "USD", "USD", "EUR")
    record.hasOffer = random.pick(nil, false, true)
    record.appAccountToken = random.pick(.absent, .stated(nil), .stated("A"), .stated("b"))
    record.revocationStatedDate = random.oneIn(2) ? record.signedDate : nil
    record.subscriptionStatus = random.pick(nil, .active, .expired, .billingRetry)
    record.firstSignedDate = time(using: &random)
    switch random.number(0...5) {
    case 0: record.revocation = Revocation(date: time(using: &random))
    case 1: record.revocation = Revocation(date: time(using: &random), percentage: 50_000, type: "REFUND_PRORATED")
    case 2: record.revocationWithdrawnDate = time(using: &random)
    default: break
    }
    // A refund, or its withdrawal, is a statement about revocation.
    if record.revocation != nil || record.revocationWithdrawnDate != nil {
      record.revocationStatedDate = record.signedDate
    }
    return record
  }

  private static func row(
    _ id: Identifier, named: Identifier?, _ apps: Rules, using random: inout SeededGenerator
  ) -> OrderRow {
    if random.oneIn(15) { return .bad(.broken(id, transactionId: named)) }
    var order = Order(
      orderId: id, userId: random.pick("ann", "bob", "tester"), productId: random.pick("gems", "gems", "gems", "coins"),
      quantity: random.pick(1, 1, 2), amount: random.pick(.of(990), .of(990), .of(0), .of(300, "JPY")),
      status: OrderStatus.allCases.randomElement(using: &random) ?? .pending, createdAt: time(using: &random))
    order.transactionId = named
    order.bundleId = random.pick(nil, nil, ShopFixture.bundle, ShopFixture.bundle, second)
    let isOfKnownApp = order.bundleId.map { apps.bundleIds.contains($0) } ?? (apps.bundleIds.count == 1)
    if !isOfKnownApp { return .bad(.broken(id, transactionId: named)) }
    order.appAccountToken = random.pick(nil, "a", "b")
    order.verifiedAt = random.pick(nil, order.createdAt + .minutes(3))
    return .valid(order)
  }

  private static func delivery(
    _ id: Identifier, for orderId: Identifier?, using random: inout SeededGenerator
  ) -> Delivery {
    Delivery(
      deliveryId: id, orderId: orderId, userId: random.pick("ann", "bob", "tester"), productId: "gems",
      quantity: random.pick(1, 1, 2), deliveredAt: time(using: &random),
      revokedAt: random.oneIn(4) ? time(using: &random) : nil, defect: random.oneIn(15) ? "no such order" : nil)
  }

  private mutating func addReceipt(
    _ id: Identifier, of transactions: [TransactionRecord], using random: inout SeededGenerator
  ) {
    var receipt = Receipt(
      receiptId: id, orderId: someOrderId(using: &random), userId: random.pick("ann", "bob", nil),
      claimedEnvironment: random.pick(nil, "Production", "Sandbox"), receivedAt: ShopFixture.asOf, state: .neverChecked)
    var contained: [TransactionRecord] = []
    let one = transactions.randomElement(using: &random)
    switch random.number(0...9) {
    case 0, 1, 2:
      // An app receipt has one app and one environment.
      contained = transactions.filter { $0.environment == one?.environment && $0.bundleId == one?.bundleId }
      if let one { contained = contained.filter { _ in !random.oneIn(3) } + [one] }
      receipt.state = .verified(.app)
    case 3, 4, 5:
      contained = one.map { [$0] } ?? []
      receipt.state = random.oneIn(3) ? .unanswered(.unreachable) : .verified(.signed)
      receipt.state.signedTransactionId = one?.transactionId
      if one == nil { receipt.state = .verified(.app) }
    case 6: receipt.state = .rejected(random.pick(.signatureInvalid, .malformed, .xcode, .wrongBundle))
    case 7: receipt.state = .notFound(at: min(RandomWorld.time(using: &random), ShopFixture.asOf))
    case 8: receipt.state = .review(random.pick(.accountGone, .contradiction))
    default: receipt.state = random.pick(.neverChecked, .unanswered(.unreachable), .unanswered(.appleError))
    }
    if let first = contained.first {
      receipt.state.environment = first.environment
      receipt.state.bundleId = first.bundleId
      receipt.state.containedCount = Int32(contained.count)
    } else if receipt.state.outcome == .verified {
      receipt.state.bundleId = random.pick(ShopFixture.bundle, "com.example.other")
    }
    if random.oneIn(15) {
      receipt.defect = "no such status"
      contained = []
    }
    world.receipts.append(receipt)
    world.contained[id] = Set(contained.map(\.key))
  }

  /// Adds a sale with one fault, to a user outside the rest of the world. Findings about such a sale are final; most
  /// other faults are hidden by open questions.
  private mutating func addSale(
    _ number: Int, _ prefix: String, using random: inout SeededGenerator
  ) -> TransactionRecord {
    let bought = ShopFixture.asOf - .days(4)
    let user = Identifier(prefix + random.pick("lone", "lone", "lone\(number)"))
    var record = TransactionRecord.Contents(
      environment: .production, transactionId: Identifier("\(prefix)S\(number)"), productId: "gems")
    (record.bundleId, record.quantity, record.revocationStatedDate) = (ShopFixture.bundle, 1, record.signedDate)
    (record.purchaseDate, record.originalPurchaseDate) = (bought, bought)
    record.originalTransactionId = record.transactionId
    (record.priceMilliunits, record.currency) = (9_900, "USD")
    var order = Order(
      orderId: Identifier("\(prefix)sale\(number)"), userId: user, productId: "gems", amount: .of(990),
      status: .verified, createdAt: bought)
    order.bundleId = ShopFixture.bundle
    var delivery = Delivery(
      deliveryId: order.orderId, orderId: order.orderId, userId: user, productId: "gems", quantity: 1,
      deliveredAt: bought + .minutes(1))
    switch random.number(0...12) {
    case 0, 1:
      record.expiresDate = ShopFixture.asOf - .days(17)
      record.subscriptionStatus = random.pick(nil, .active, .expired, .billingRetry)
    case 2: record.environment = .sandbox
    case 3:
      record.originalTransactionId = Identifier(prefix + "before")
      record.originalPurchaseDate = bought - .days(90)
    case 4: record.quantity = 2
    case 5: record.priceMilliunits = 4_900
    case 6: record.currency = "EUR"
    case 7: record.productId = "coins"
    case 8: record.bundleId = "com.example.other"
    case 9: record.ownership = .familyShared
    case 10: (order.appAccountToken, record.appAccountToken) = ("a", random.pick(.stated(nil), .stated("z")))
    case 11: delivery.deliveredAt = bought - .minutes(30)
    default: (record.purchaseDate, record.originalPurchaseDate) = (bought - .days(9), bought - .days(9))
    }
    let transaction = TransactionRecord(record)
    let proof = random.number(0...2)
    if proof == 0 || random.oneIn(2) { order.transactionId = record.transactionId }
    if proof == 0 {
      world.lookups[order.orderId] = .verified(nil)
    } else {
      var state = ProofState.verified(proof == 1 ? .app : .signed, id: proof == 1 ? nil : record.transactionId)
      (state.environment, state.bundleId, state.containedCount) = (record.environment, record.bundleId, 1)
      world.receipts.append(
        Receipt(
          receiptId: order.orderId, orderId: order.orderId, userId: user, receivedAt: ShopFixture.asOf, state: state))
      world.contained[order.orderId] = [transaction.key]
    }
    world.orders.append(.valid(order))
    // A claim on the same payment, by the same person or by another.
    if random.oneIn(4) {
      order.orderId = Identifier("\(prefix)again\(number)")
      order.userId = random.pick(user, Identifier("\(prefix)other\(number)"))
      (order.transactionId, order.createdAt) = (record.transactionId, order.createdAt + .hours(1))
      world.orders.append(.valid(order))
      world.lookups[order.orderId] = .verified(nil)
      if random.oneIn(2) { delivery.userId = order.userId }
    }
    world.deliveries.append(delivery)
    return transaction
  }

  /// Adds look-ups of stated IDs. Apple knows exactly the given transactions.
  private mutating func addLookups(knowing transactions: [TransactionRecord], using random: inout SeededGenerator) {
    let withReceipt = Set(
      world.receipts.filter { $0.defect == nil && $0.state.outcome != .rejected }.compactMap(\.orderId))
    for case .valid(let order) in world.orders where !withReceipt.contains(order.orderId) || random.oneIn(3) {
      guard let named = order.transactionId else { continue }
      let isKnown = transactions.contains { $0.transactionId == named }
      world.lookups[order.orderId] = random.pick(
        isKnown ? .verified(nil) : .notFound(at: min(RandomWorld.time(using: &random), ShopFixture.asOf)),
        isKnown ? .verified(nil) : .notFound(),
        .neverChecked, .unanswered(.unreachable), .review(.accountGone))
    }
  }
}
