import Reconciliation
import TestSupport

/// A shop with few users and products and many claim conflicts: orders state shared transaction IDs, receipts contain
/// other users' purchases, proofs are forged, unanswered or missing.
struct CrowdedShop: Sendable {
  static let asOf = ShopFixture.asOf
  static let bundle = ShopFixture.bundle
  /// The other app of a wide shop.
  static let second = "com.example.second"

  let orderIds: [String]
  /// Receipts, each in the final state of its check.
  private(set) var world = World(rules: ShopFixture().world.rules)
  /// Apple's facts about the transactions in each receipt, by receipt ID.
  private(set) var facts: [Identifier: [TransactionFact]] = [:]
  private let prefix: String
  let isWide: Bool
  private let seed: UInt64
  private var random: SeededGenerator

  /// - Parameters:
  ///   - prefix: The prefix of all IDs.
  ///   - isWide: True for a shop with two apps, rows without an app, restores, unreadable payloads, and IDs that
  ///     orders, receipts and deliveries share.
  init(seed: UInt64, prefix: String = "", isWide: Bool = false) {
    self.seed = seed
    self.prefix = prefix
    self.isWide = isWide
    random = SeededGenerator(seed: seed)
    orderIds = (0..<60).map { prefix + "order-\($0)" }
    world.rules.testUsers = [Identifier(prefix + "user-0")]
    for id in orderIds { world.orders.append(order(id)) }
    for number in 0..<60 { world.deliveries.append(delivery(isWide ? "order-\(number)" : "d\(number)")) }
    for number in 0..<90 { addReceipt(number) }
  }

  private func id(_ text: String) -> Identifier { Identifier(prefix + text) }

  private mutating func order(_ id: String) -> OrderRow {
    let named = random.oneIn(2) ? nil : self.id("t\(random.number(0...11))")
    let (user, product, quantity) = (user(), Self.product(&random), random.pick(1, 1, 1, 2) as Int32)
    let amount: Money? = random.pick(.of(990), .of(990), .of(99), nil)
    let status: OrderStatus = random.pick(.pending, .verified, .verified, .failed, .cancelled, .refunded)
    let (token, created) = (random.pick(nil, nil, "aaaa-1", "bbbb-2"), Self.time(&random))
    // With two configured apps, a row without a bundle ID belongs to no app.
    let bundle: String? = isWide && !random.oneIn(10) ? random.oneIn(9) ? Self.second : Self.bundle : nil
    guard let amount else {
      var bad = BadOrder.broken(Identifier(id))
      (bad.userId, bad.productId, bad.quantity) = (user, product, Int64(quantity))
      (bad.bundleId, bad.createdAt) = (bundle, created)
      return .bad(bad)
    }
    var order = Order(
      orderId: Identifier(id), userId: user, productId: product, quantity: quantity, amount: amount, status: status,
      createdAt: created)
    (order.transactionId, order.appAccountToken, order.bundleId) = (named, token, bundle)
    return .valid(order)
  }

  private mutating func delivery(_ id: String) -> Delivery {
    let (delivered, isRevoked) = (Self.time(&random), random.oneIn(6))
    let order = random.oneIn(20) ? nil : orderIds.randomElement(using: &random)
    return Delivery(
      deliveryId: self.id(id), orderId: order.map { Identifier($0) }, userId: user(), productId: Self.product(&random),
      quantity: random.pick(1, 1, 1, 2, 0), deliveredAt: delivered, revokedAt: isRevoked ? delivered + .hours(2) : nil)
  }

  private mutating func addReceipt(_ number: Int) {
    let order = random.oneIn(12) ? nil : orderIds.randomElement(using: &random)
    var receipt = Receipt(
      receiptId: id(isWide ? "order-\(number)" : "r\(number)"), orderId: order.map { Identifier($0) }, userId: user(),
      claimedEnvironment: random.pick(nil, "Production", "Sandbox"), receivedAt: Self.time(&random),
      state: .verified(.app))
    (receipt.state.environment, receipt.state.bundleId) = (.production, Self.bundle)
    var contained: [TransactionFact] = []
    switch random.number(0...23) {
    case 0: receipt.state = .neverChecked
    case 1: receipt.state = .rejected(isWide ? random.pick(.signatureInvalid, .malformed) : .signatureInvalid)
    case 2: receipt.state = .unanswered(.unreachable)
    case 3: break
    case 4...9:
      let known = fact(transaction(of: number))
      contained = [known]
      receipt.state.kind = .signed
      receipt.state.signedTransactionId = Identifier(known.transactionId)
      receipt.state.environment = known.environment
    default:
      let ids = (0..<random.number(1...4)).map { _ in transaction(of: number) }
      contained = Set(ids).sorted().map { fact($0) }
    }
    receipt.state.containedCount = Int32(contained.count)
    world.receipts.append(receipt)
    facts[receipt.receiptId] = contained
  }

  /// A transaction ID of this receipt alone, or one that many receipts share.
  private mutating func transaction(of number: Int) -> String {
    prefix + (random.oneIn(2) ? "t\(1_000 + number)" : "t\(random.number(0...69))")
  }

  /// The fact depends on the seed and the ID only, so that every receipt gets the same answer.
  private func fact(_ id: String) -> TransactionFact {
    let number = UInt64(id.dropFirst(prefix.count + 1)) ?? 0
    var own = SeededGenerator(seed: number &+ seed &* (isWide ? 10_007 : 0))
    var fact = TransactionFact(
      environment: own.oneIn(5) ? .sandbox : .production, transactionId: id, productId: Self.product(&own).text,
      channel: own.pick(.verifyReceipt, .serverApi), signedDate: Self.asOf - .hours(1))
    fact.bundleId = own.oneIn(15) ? (isWide ? Self.second : "com.example.other") : Self.bundle
    fact.quantity = own.pick(1, 1, 2)
    fact.purchaseDate = Self.time(&own)
    fact.originalPurchaseDate = fact.purchaseDate
    fact.isRenewal = own.oneIn(10)
    fact.ownership = own.oneIn(15) ? .familyShared : .purchased
    fact.appAccountToken = own.pick(.absent, .absent, .stated("AAAA1"), .stated("bbbb-2"))
    fact.revocation = .stated(own.oneIn(5) ? Revocation(date: Self.time(&own)) : nil)
    // A restore: a new transaction ID for an earlier purchase.
    if isWide, own.oneIn(8) {
      fact.isRenewal = nil
      fact.originalTransactionId = prefix + "t\(own.number(0...11))"
      fact.originalPurchaseDate = Self.time(&own) - .days(own.pick(0, 9))
    }
    return fact
  }

  /// A user of 25: enough users that some have no open receipt, because a comparison needs final results.
  private mutating func user() -> Identifier { id("user-\(random.number(0...24))") }

  private static func product(_ random: inout SeededGenerator) -> Identifier { random.pick("gems", "gems", "coins") }

  private static func time(_ random: inout SeededGenerator) -> Instant {
    asOf - .minutes(Int64(random.number(10...6 * 24 * 60)))
  }
}
