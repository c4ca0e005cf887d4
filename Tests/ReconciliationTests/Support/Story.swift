import Reconciliation
import TestSupport

/// A scene that knows the truth about itself: what happened, and exactly what the audit has to say about it.
struct Story: Sendable {
  /// A finding as people see it: its kind and what it stands on.
  struct Expected: Hashable, Sendable {
    var kind: FindingKind
    var subject: Identifier
  }

  var scene: Scene
  var random: SeededGenerator
  private(set) var dispositions: [Identifier: Disposition] = [:]
  private(set) var findings: Set<Expected> = []

  /// An ordinary day of an ordinary product, drawn at random.
  init(prefix: String, seed: UInt64) {
    random = SeededGenerator(seed: seed)
    scene = Scene(prefix: prefix, time: Scene.asOf - .minutes(Int64(random.number(3 * 60...100 * 24 * 60))))
    scene.product = random.pick("gems.100", "sword", "noads")
    scene.world.products = ["gems.100", "sword", "noads", "another"].map { .init(productId: $0, type: .consumable) }
    scene.amount = random.pick(.of(990), .of(99), .of(300, "JPY"), .of(1_250, "KWD"), .of(4_999, "EUR"))
  }

  /// What an order comes to: its disposition, and every finding on it.
  mutating func expect(_ order: Order, _ disposition: Disposition, _ kinds: FindingKind...) {
    dispositions[order.orderId] = disposition
    for kind in kinds { findings.insert(Expected(kind: kind, subject: order.orderId)) }
  }

  /// A finding on something that is no order.
  mutating func expect(_ kind: FindingKind, on subject: Identifier) {
    findings.insert(Expected(kind: kind, subject: subject))
  }

  /// One of the ways in which a payment becomes known.
  private enum Way: CaseIterable {
    case namedAndLookedUp, namedInSignedProof, namedInAppReceipt, namedAndSwept
    case signedProof, appReceipt, offline

    var isNamed: Bool {
      switch self {
      case .namedAndLookedUp, .namedInSignedProof, .namedInAppReceipt, .namedAndSwept: true
      case .signedProof, .appReceipt, .offline: false
      }
    }
  }

  /// An order and its payment, proven in one way or another.
  ///
  /// - Parameter mustName: whether the order has to name its transaction for the payment to be found.
  mutating func buy(
    _ text: String = "", by user: String = "user", mustName: Bool = false,
    order change: (inout Order) -> Void = { _ in }, transaction: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    let ways = Way.allCases.filter { $0.isNamed || !mustName }
    let way = ways[random.number(0...(ways.count - 1))]
    let record = scene.transaction("T" + text, transaction)
    let made = scene.order("order" + text, by: user) { made in
      made.transactionId = way.isNamed ? record.transactionId : nil
      change(&made)
    }
    let receipt = "receipt" + text
    switch way {
    case .namedAndLookedUp: scene.world.lookups[made.orderId] = .verified(nil)
    case .namedInSignedProof, .signedProof: scene.signedProof(receipt, for: made, of: record)
    case .namedInAppReceipt, .appReceipt: scene.receipt(receipt, for: made, .verified(.app), bringing: [record])
    case .namedAndSwept: scene.receipt(receipt, for: made, .verified(.app)) { $0.state.bundleId = record.bundleId }
    case .offline:
      scene.receipt(receipt, for: made, .unanswered(.unreachable), bringing: [record]) {
        $0.state.signedTransactionId = record.transactionId
      }
    }
    if random.oneIn(5) {
      // The same proof once more, or a restore on another device: nothing new.
      scene.receipt("again" + text, for: random.oneIn(2) ? made : nil, .verified(.app), bringing: [record])
    }
    return made
  }

  /// An order that was paid and delivered as it should be.
  mutating func sell(
    _ text: String = "", by user: String = "user", mustName: Bool = false,
    order change: (inout Order) -> Void = { _ in }, transaction: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    let made = buy(text, by: user, mustName: mustName, order: change, transaction: transaction)
    scene.delivery("delivery" + text, of: made)
    return made
  }

  /// A time after the order and before the audit.
  mutating func later(than order: Order) -> Instant {
    let span = Int((Scene.asOf - order.createdAt).microseconds)
    return order.createdAt + Span(microseconds: Int64(random.number(span / 4...span / 2)))
  }
}

/// A kind of thing that happens in shops.
struct Scenario: Sendable {
  let name: String
  let tell: @Sendable (inout Story) -> Void

  init(_ name: String, _ tell: @escaping @Sendable (inout Story) -> Void) {
    self.name = name
    self.tell = tell
  }

  static let all = ordinary + payments + claims + refunds + records + sales + strays
}
