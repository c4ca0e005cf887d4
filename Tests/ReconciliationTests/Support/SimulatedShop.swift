import Reconciliation
import TestSupport

/// A shop and Apple's records at several nights, derived from the known state at the last night.
struct SimulatedShop {
  let known: KnownShop
  /// The nights in ascending order. In the last one, the shop is in its known state.
  let nights: [Instant]
  /// Receipts that arrived later than their date, with the time of arrival.
  private var arrivals: [Identifier: Instant] = [:]
  /// Transactions that Apple knows only some time after the purchase.
  private var learnt: [TransactionKey: Instant] = [:]
  /// Faults in order rows, each with the time of its correction.
  private var mistakes: [Identifier: (mistake: Mistake, end: Instant)] = [:]

  private enum Mistake: CaseIterable {
    case amount, quantity, user, transaction

    func make(in order: inout Order) {
      switch self {
      case .amount: order.amount = Money(minorUnits: order.amount.minorUnits * 2 + 1, currency: order.amount.currency)
      case .quantity: order.quantity += 1
      case .user: order.userId = Identifier("guest of \(order.orderId.text)")
      case .transaction: order.transactionId = nil
      }
    }
  }

  /// - Parameter scenarios: The scenarios to draw from.
  init(seed: UInt64, scenarios: [Scenario] = Scenario.all, stories: ClosedRange<Int> = 2...10) {
    var random = SeededGenerator(seed: seed)
    let chosen = (0..<random.number(stories)).compactMap { _ in scenarios.randomElement(using: &random) }
    known = KnownShop(scenarios: chosen, seed: random.next())
    // A check that failed the night before is due in the last night.
    let latest = ShopFixture.asOf - .hours(21)
    // Two nights soon after an order, or one at any time.
    let times = known.world.orders.map(\.createdAt)
    let earlier = (1..<random.number(2...8)).flatMap { _ -> [Instant] in
      guard random.oneIn(2), let time = times.randomElement(using: &random) else {
        return [latest - .minutes(Int64(random.oneIn(3) ? random.number(0...600) : random.number(0...20_000)))]
      }
      let soon = time + .minutes(Int64(random.number(10...1_500)))
      return [soon, soon + .minutes(Int64(random.number(1_200...2_000)))]
    }.filter { $0 <= latest }
    // Some nights are repeated by hand.
    let again = earlier.filter { _ in random.oneIn(3) }.map { $0 + .minutes(Int64(random.number(1...300))) }
    nights = Set(earlier + again.filter { $0 <= latest }).sorted() + [ShopFixture.asOf]
    for receipt in known.world.receipts where random.oneIn(4) {
      arrivals[receipt.receiptId] = receipt.receivedAt + .minutes(Int64(random.number(1...3_000)))
    }
    // Apple knows every transaction that it has signed.
    let signed = Set(known.world.contained.values.joined())
    for record in known.world.transactions where !signed.contains(record.key) && random.oneIn(3) {
      learnt[record.key] = record.purchaseDate.map { $0 + .minutes(Int64(random.number(30...1_200))) }
    }
    for case .valid(let order) in known.world.orders where random.oneIn(8) {
      let end = min(ShopFixture.asOf, order.createdAt + .minutes(Int64(random.number(60...20_000))))
      mistakes[order.orderId] = Mistake.allCases.randomElement(using: &random).map { ($0, end) }
    }
  }

  /// Orders whose proofs arrived late.
  private var waitingForProofs: Set<Identifier> {
    Set(known.world.receipts.filter { arrivals[$0.receiptId] != nil }.compactMap(\.orderId))
  }

  /// True if the known truth accuses the subject, or its row was wrong at the night, or its proofs came late.
  func isAccusable(_ subject: Identifier, at night: Instant) -> Bool {
    if let mistake = mistakes[subject], night < mistake.end { return true }
    return waitingForProofs.contains(subject) || known.findings.contains { $0.kind.accuses && $0.subject == subject }
  }

  /// The purchase of a transaction; nil if its ID belongs to several purchases.
  func sale(behind id: Identifier) -> PurchaseKey? {
    let sales = Set(known.world.transactions.filter { $0.transactionId == id }.map(\.purchaseKey))
    return sales.count == 1 ? sales.first : nil
  }

  /// The shop's tables at a night. A row dated after the last night has a wrong date, and is in the tables of every
  /// night.
  func tables(at night: Instant) -> World {
    func isThere(_ date: Instant) -> Bool { date <= night || date > ShopFixture.asOf }
    var world = World(rules: known.world.rules)
    world.rules.asOf = night
    world.rules.lookbackStart = night - .days(120)
    world.products = known.world.products
    world.customers = known.world.customers
    // Before the last night, such a row does not exist yet, like any other.
    if night == ShopFixture.asOf { world.later = known.world.later }
    world.orders = known.world.orders.compactMap { row in
      guard isThere(row.createdAt) else { return nil }
      guard case .valid(var order) = row else { return row }
      if let (mistake, end) = mistakes[order.orderId], night < end { mistake.make(in: &order) }
      if let verified = order.verifiedAt, !isThere(verified) {
        order.verifiedAt = nil
        order.status = .pending
      }
      if order.status == .refunded { order.refundBookedBy = order.createdAt }
      return .valid(order)
    }
    world.receipts = known.world.receipts.filter {
      isThere(min(ShopFixture.asOf, arrivals[$0.receiptId] ?? $0.receivedAt)) && isThere($0.receivedAt)
    }
    world.deliveries = known.world.deliveries.compactMap { row in
      guard isThere(row.deliveredAt) else { return nil }
      var delivery = row
      if let revoked = row.revokedAt, !isThere(revoked) { delivery.revokedAt = nil }
      return delivery
    }
    return world
  }

  /// Apple's facts about a transaction at a night; none before Apple knows it.
  func facts(about key: TransactionKey, at night: Instant) -> [TransactionFact] {
    guard let record = known.world.transactions.first(where: { $0.key == key }) else { return [] }
    if let purchased = record.purchaseDate, purchased > night { return [] }
    if let learnt = learnt[key], learnt > night, learnt <= ShopFixture.asOf { return [] }
    var fact = TransactionFact(
      environment: record.environment, transactionId: record.transactionId.text, productId: record.productId.text,
      channel: .serverApi, signedDate: night)
    fact.originalTransactionId = record.originalTransactionId?.text
    fact.bundleId = record.bundleId
    fact.quantity = record.quantity
    fact.purchaseDate = record.purchaseDate
    fact.originalPurchaseDate = record.originalPurchaseDate
    fact.expiresDate = record.expiresDate
    fact.priceMilliunits = record.priceMilliunits
    fact.currency = record.currency
    fact.appAccountToken = record.appAccountToken
    fact.ownership = record.ownership
    fact.isRenewal = record.isRenewal
    fact.hasOffer = record.hasOffer
    fact.isUpgraded = record.isUpgraded
    fact.webOrderLineItemId = record.webOrderLineItemId?.text
    fact.details = record.details
    // A subscription with a current period is active.
    let isServed = known.world.transactions.contains { other in
      (other.originalTransactionId ?? other.transactionId) == (record.originalTransactionId ?? record.transactionId)
        && other.purchaseDate.map { $0 <= night } ?? false && other.expiresDate.map { $0 > night } ?? false
    }
    fact.subscriptionStatus = isServed ? .active : record.subscriptionStatus
    fact.revocation = .stated(nil)
    if let revocation = record.revocation, revocation.date <= night { fact.revocation = .stated(revocation) }
    guard let withdrawn = record.revocationWithdrawnDate else { return [fact] }
    // The refund was made three hours before it was withdrawn.
    var refunded = fact
    refunded.signedDate = withdrawn - .hours(3)
    refunded.revocation = .stated(Revocation(date: withdrawn - .hours(3)))
    if refunded.signedDate > night { return [fact] }
    if withdrawn > night {
      fact.revocation = refunded.revocation
      return [fact]
    }
    // The fact has the date of its notification.
    fact.signedDate = withdrawn
    return [refunded, fact]
  }
}
