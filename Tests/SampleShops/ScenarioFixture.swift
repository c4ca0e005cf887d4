import Reconciliation

/// A scene with the expected result of its audit.
package struct ScenarioFixture: Sendable {
  package struct Expected: Hashable, Sendable {
    package var kind: FindingKind
    package var subject: Identifier

    package init(kind: FindingKind, subject: Identifier) { (self.kind, self.subject) = (kind, subject) }
  }

  /// The only Apple API that is used.
  package enum Channel: Sendable { case serverApi, verifyReceipt }

  package var scene: ShopFixture
  package var random: SampleRandom
  /// nil: every fact can become known.
  let channel: Channel?
  package private(set) var dispositions: [Identifier: Disposition] = [:]
  package private(set) var findings: Set<Expected> = []

  /// A random product on a random day, unless `time` and `currency` are given.
  package init(
    prefix: String, seed: UInt64, channel: Channel? = nil, asOf: Instant = ShopFixture.asOf, time: Instant? = nil,
    currency: String? = nil
  ) {
    random = SampleRandom(seed: seed)
    self.channel = channel
    // Half a minute away from the limits, which are whole hours.
    let drawn = asOf - .minutes(Int64(random.number(3 * 60...100 * 24 * 60))) - .seconds(30)
    scene = ShopFixture(prefix: prefix, time: time ?? drawn, asOf: asOf)
    scene.amount = .of(0, currency ?? SampleProduct.currency(&random))
    sells(random.pick(among: SampleProduct.gems))
  }

  package var asOf: Instant { scene.world.rules.asOf }

  package mutating func sells(_ ware: SampleProduct, quantity: Int32 = 1) {
    let price = ware.price(scene.amount.currency.code)
    (scene.product, scene.quantity) = (ware.productId, quantity)
    scene.amount = Money(minorUnits: price.minorUnits * Int64(quantity), currency: price.currency)
  }

  // MARK: - Expectations

  /// Expects a disposition of an order, and all findings on it.
  package mutating func expect(_ order: Order, _ disposition: Disposition, _ kinds: FindingKind...) {
    dispositions[order.orderId] = disposition
    for kind in kinds { expect(kind, on: order.orderId) }
  }

  mutating func expect(_ kinds: [FindingKind], on subject: Identifier) {
    for kind in kinds { expect(kind, on: subject) }
  }

  package mutating func expectUnconfirmed(_ order: Order) {
    expect(order, .unconfirmed)
    if asOf - order.createdAt > .hours(48) { expect(.stuckUnconfirmed, on: order.orderId) }
  }

  package mutating func expect(_ kind: FindingKind, on subject: Identifier) {
    findings.insert(Expected(kind: kind, subject: subject))
  }

  /// A user's orders of one subscription have one finding.
  package mutating func expectLapse(of transaction: String, servedTo user: String = "user") {
    expect(.lapsedStillServed, on: Identifier("\(scene.id(transaction).text) \(scene.id(user).text)"))
  }

  // MARK: - Events

  /// A way in which a payment becomes known.
  private enum Way: CaseIterable {
    case namedAndLookedUp, namedInSignedProof, namedInAppReceipt, namedAndSwept
    case signedProof, appReceipt, offline

    var isNamed: Bool {
      switch self {
      case .namedAndLookedUp, .namedInSignedProof, .namedInAppReceipt, .namedAndSwept: true
      case .signedProof, .appReceipt, .offline: false
      }
    }

    static func all(_ channel: Channel?, tellsAll: Bool) -> [Way] {
      switch channel {
      case .verifyReceipt:
        Array(repeating: .namedInAppReceipt, count: 16) + [.appReceipt]
          + (tellsAll ? [] : [.namedInSignedProof, .namedInSignedProof, .signedProof])
      // A purchase checked only offline may have been refunded since.
      case .serverApi, nil: tellsAll ? allCases.filter { $0 != .offline } : allCases
      }
    }
  }

  /// Adds an order and its payment, proven in a random way. `mustName`: the order must state its transaction.
  /// `tellsAll`: no old receipts of one purchase, which contain less.
  package mutating func buy(
    _ text: String = "", by user: String = "user", mustName: Bool = false, tellsAll: Bool = false,
    order change: (inout Order) -> Void = { _ in }, transaction: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    let way = random.pick(
      among: Way.all(channel, tellsAll: tellsAll).filter { $0.isNamed || !mustName })
    let paidAt = moments(5...40)
    let record = scene.transaction("T" + text) { record in
      record.purchaseDate = paidAt
      transaction(&record)
    }
    let made = scene.order("order" + text, by: user) { made in
      made.transactionId = way.isNamed ? record.transactionId : nil
      made.verifiedAt = paidAt + .seconds(2)
      change(&made)
      switch made.status {
      case .pending, .failed, .cancelled: made.verifiedAt = nil
      case .verified, .refunded: break
      }
    }
    let receipt = "receipt" + text
    let time = scene.time
    defer { scene.time = time }
    scene.time = paidAt
    switch way {
    case .namedAndLookedUp: scene.world.lookups[made.orderId] = .verified(nil)
    case .namedInSignedProof, .signedProof: scene.signedProof(receipt, for: made, of: record)
    case .namedInAppReceipt, .appReceipt: scene.receipt(receipt, for: made, .verified(.app), containing: [record])
    case .namedAndSwept: scene.receipt(receipt, for: made, .verified(.app)) { $0.state.bundleId = record.bundleId }
    case .offline:
      scene.receipt(receipt, for: made, .unanswered(.unreachable), containing: [record]) {
        ($0.state.kind, $0.state.signedTransactionId) = (.signed, record.transactionId)
      }
    }
    if random.oneIn(channel == .verifyReceipt ? 50 : 5) {
      // A repeated proof, or a restore on another device: adds no fact.
      scene.receipt("again" + text, for: random.oneIn(2) ? made : nil, .verified(.app), containing: [record])
    }
    return made
  }

  @discardableResult
  package mutating func sell(
    _ text: String = "", by user: String = "user", mustName: Bool = false, tellsAll: Bool = false,
    order change: (inout Order) -> Void = { _ in }, transaction: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    let made = buy(
      text, by: user, mustName: mustName, tellsAll: tellsAll, order: change, transaction: transaction)
    deliver("delivery" + text, of: made)
    return made
  }

  mutating func deliver(
    _ text: String = "delivery", of order: Order, _ change: (inout Delivery) -> Void = { _ in }
  ) {
    let deliveredAt = min(order.createdAt + (moments(45...120) - scene.time), asOf)
    scene.delivery(text, of: order) { delivery in
      delivery.deliveredAt = deliveredAt
      change(&delivery)
    }
  }

  /// A full refund after `time`.
  mutating func refunding(since time: Instant) -> Revocation { Revocation(date: later(than: time), reason: 0) }

  private mutating func moments(_ seconds: ClosedRange<Int>) -> Instant {
    let milliseconds = random.number(seconds.lowerBound * 1_000...seconds.upperBound * 1_000)
    return scene.time + Span(microseconds: Int64(milliseconds) * 1_000)
  }

  mutating func later(than time: Instant) -> Instant {
    let span = Int((asOf - time).microseconds)
    if span > Int(Span.days(2).microseconds), random.oneIn(6) {
      return asOf - .minutes(Int64(random.number(200...1_500)))
    }
    return Instant(milliseconds: (time + Span(microseconds: Int64(random.number(span / 4...span / 2)))).milliseconds)
  }

  // MARK: - Apple

  mutating func silence() -> ProofState {
    let reason = random.pick(PaymentReason.unreachable, .rateLimited, .appleError, .noRoots)
    return .unanswered(channel == .verifyReceipt ? .appleError : reason)
  }

  mutating func token(_ first: String) -> String {
    let digits = String(random.next(), radix: 16)
    return "\(first)0000000-0000-4000-8000-\(digits)"
  }
}

package struct Scenario: Sendable {
  package let name: String
  /// The number among 5,000 orders.
  package let count: Int
  /// The additional number on the last business day, so that one night's report contains some.
  package let onLastDay: Int
  package let impossible: [ScenarioFixture.Channel: String]
  package let build: @Sendable (inout ScenarioFixture) -> Void

  package init(
    _ name: String, _ count: Int = 3, onLastDay: Int = 0, impossible: [ScenarioFixture.Channel: String] = [:],
    _ build: @escaping @Sendable (inout ScenarioFixture) -> Void
  ) {
    (self.name, self.count, self.onLastDay, self.impossible) = (name, count, onLastDay, impossible)
    self.build = build
  }

  package static let all = ordinary + payments + claims + refunds + records + sales + strays + purchases + afterwards

  package static func all(_ channel: ScenarioFixture.Channel) -> [Scenario] {
    all.filter { $0.impossible[channel] == nil }
  }
}
