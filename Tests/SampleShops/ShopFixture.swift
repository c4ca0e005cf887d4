import Reconciliation

/// A small part of a shop with IDs of its own, built step by step.
///
/// Defaults: one unit for 9.90 USD, ordered and paid two days before the audit, delivered a minute later.
package struct ShopFixture: Sendable {
  /// Prepended to every ID, so that scenes can be combined.
  package let prefix: String
  package var world: World
  package var time: Instant
  package var product: Identifier = "gems.100"
  package var quantity: Int32 = 1
  /// For the whole quantity.
  package var amount: Money

  package static let asOf = Instant(seconds: 1_795_132_800)
  package static let bundle = "com.example.game"
  /// An app that is not audited.
  package static let otherBundle = "com.example.cards"

  package init(prefix: String = "", time: Instant? = nil, asOf: Instant = ShopFixture.asOf) {
    self.prefix = prefix
    self.time = time ?? asOf - .days(4)
    amount = .of(990)
    world = World(rules: Rules(asOf: asOf, bundleIds: [Self.bundle], lookbackStart: asOf - .days(120)))
  }

  package func id(_ text: String) -> Identifier { Identifier(prefix + text) }

  /// Adds a `verified` order with its proofs, the look-up of its stated ID, and its goods.
  ///
  /// - Parameters:
  ///   - hours: The time of the order, after the scene's time.
  ///   - proofs: Receipts of the order, called `r1`, `r2` and so on. Those of other orders than `order` are named after it.
  @discardableResult
  package mutating func order(
    _ text: String = "order", by user: String = "user", stating transactionId: Identifier? = nil, hours: Int64 = 0,
    with proofs: Proof..., lookup: ProofState? = nil, isServed: Bool = false,
    _ change: (inout Order) -> Void = { _ in }
  ) -> Order {
    var order = Order(
      orderId: id(text), userId: id(user), productId: product, quantity: quantity, amount: amount, status: .verified,
      createdAt: time + .hours(hours))
    order.transactionId = transactionId
    change(&order)
    world.orders.append(.valid(order))
    let name = text == "order" ? "" : text + "-"
    for (place, proof) in proofs.enumerated() {
      receipt("\(name)r\(place + 1)", for: order, proof.state, containing: proof.contained, proof.change)
    }
    if let lookup { world.lookups[order.orderId] = lookup }
    if isServed { delivery("\(name)delivery", of: order) }
    return order
  }

  /// Adds a production purchase of the scene's product, known from Apple.
  @discardableResult
  package mutating func transaction(
    _ text: String = "T1", _ change: (inout TransactionRecord) -> Void = { _ in }
  ) -> TransactionRecord {
    var record = TransactionRecord(environment: .production, transactionId: id(text), productId: product)
    record.bundleId = Self.bundle
    record.quantity = quantity
    record.purchaseDate = time
    record.originalTransactionId = id(text)
    record.priceMilliunits = amount.milliunits
    record.currency = amount.currency.code
    // Expired, so that only what a scene adds keeps a subscription active.
    record.subscriptionStatus = .expired
    record.channel = .serverApi
    record.signedDate = world.rules.asOf - .hours(1)
    record.revocationStatedDate = record.signedDate
    change(&record)
    record.originalPurchaseDate = record.originalPurchaseDate ?? record.purchaseDate
    world.transactions.append(record)
    return record
  }

  @discardableResult
  package mutating func receipt(
    _ text: String = "receipt", for order: Order?, _ state: ProofState, containing: [TransactionRecord] = [],
    _ change: (inout Receipt) -> Void = { _ in }
  ) -> Receipt {
    var receipt = Receipt(
      receiptId: id(text), orderId: order?.orderId, userId: order?.userId ?? id("user"), receivedAt: time, state: state)
    if let first = containing.first {
      receipt.state.environment = first.environment
      receipt.state.bundleId = first.bundleId
      receipt.state.containedCount = Int32(containing.count)
    }
    change(&receipt)
    world.receipts.append(receipt)
    world.contained[receipt.receiptId] = Set(containing.map(\.key))
    return receipt
  }

  /// Adds a verified signed transaction of one purchase.
  package mutating func signedProof(_ text: String = "receipt", for order: Order?, of record: TransactionRecord) {
    receipt(text, for: order, .verified(.signed, id: record.transactionId), containing: [record])
  }

  @discardableResult
  package mutating func delivery(
    _ text: String = "delivery", of order: Order, _ change: (inout Delivery) -> Void = { _ in }
  ) -> Delivery {
    var delivery = Delivery(
      deliveryId: id(text), orderId: order.orderId, userId: order.userId, productId: order.productId,
      quantity: Int64(order.quantity), deliveredAt: order.createdAt + .minutes(1))
    change(&delivery)
    world.deliveries.append(delivery)
    return delivery
  }

  /// Adds an order that states its transaction, confirmed by look-up; without receipt and delivery.
  @discardableResult
  package mutating func paidOrder(
    _ order: (inout Order) -> Void = { _ in }, transaction: (inout TransactionRecord) -> Void = { _ in }
  ) -> Order {
    let asOf = world.rules.asOf
    let record = self.transaction("T1") { record in
      record.checkedAt = asOf
      transaction(&record)
    }
    return self.order(stating: record.transactionId, lookup: .verified(nil), order)
  }

  /// Adds a paid order and its goods.
  @discardableResult
  package mutating func sale(
    _ order: (inout Order) -> Void = { _ in }, bought: (inout TransactionRecord) -> Void = { _ in },
    goods: (inout Delivery) -> Void = { _ in }
  ) -> Order {
    let made = paidOrder(order, transaction: bought)
    delivery(of: made, goods)
    return made
  }

  /// A receipt that is sent for an order: the state of its check, and the transactions in it.
  package struct Proof {
    package let state: ProofState
    package let contained: [TransactionRecord]
    package let change: (inout Receipt) -> Void

    package init(
      _ state: ProofState, of contained: [TransactionRecord] = [],
      _ change: @escaping (inout Receipt) -> Void = { _ in }
    ) {
      (self.state, self.contained, self.change) = (state, contained, change)
    }

    package static func signed(_ record: TransactionRecord) -> Proof {
      Proof(.verified(.signed, id: record.transactionId), of: [record])
    }

    /// A verified app receipt.
    package static func list(_ records: TransactionRecord...) -> Proof { Proof(.verified(.app), of: records) }

    /// A verified app receipt without purchases.
    package static func empty(_ bundleId: String) -> Proof {
      Proof(.verified(.app)) { $0.state.bundleId = bundleId }
    }

    package static var forged: Proof { Proof(.rejected(.signatureInvalid)) }
    package static var unreadable: Proof { Proof(.rejected(.malformed)) }
    package static var unanswered: Proof { Proof(.unanswered(.unreachable)) }
  }
}

extension ProofState {
  package static func verified(_ kind: ReceiptKind?, id: Identifier? = nil) -> ProofState {
    var state = ProofState(.verified, nil)
    state.kind = kind
    state.signedTransactionId = id
    return state
  }

  package static func rejected(_ reason: PaymentReason) -> ProofState { ProofState(.rejected, reason) }
  package static func unanswered(_ reason: PaymentReason?) -> ProofState { ProofState(.unanswered, reason) }
  package static func review(_ reason: PaymentReason) -> ProofState { ProofState(.review, reason) }

  package static func notFound(at instant: Instant = ShopFixture.asOf) -> ProofState {
    var state = ProofState(.notFound, nil)
    state.answeredAt = instant
    return state
  }

  private init(_ outcome: CheckOutcome, _ reason: PaymentReason?) {
    self.init()
    self.outcome = outcome
    self.reason = reason
    attempts = 1
    lastAttempt = ShopFixture.asOf
    answeredAt = outcome == .unanswered ? nil : ShopFixture.asOf
  }
}

extension BadOrder {
  /// An order of 9.999 USD.
  package static func broken(_ orderId: Identifier, transactionId: Identifier? = "T1") -> BadOrder {
    BadOrder(
      orderId: orderId, userId: "user", bundleId: nil, productId: "gems.100", quantity: 1, amountText: "9.999",
      currencyText: "USD", statusText: "verified", transactionId: transactionId, createdAt: ShopFixture.asOf - .days(4),
      defect: "amount 9.999 has more decimals than USD")
  }
}

extension Span {
  package static let microsecond = Span(microseconds: 1)
}
