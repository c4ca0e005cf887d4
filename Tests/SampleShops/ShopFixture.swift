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

  /// Adds a `verified` order that states no transaction.
  @discardableResult
  package mutating func order(
    _ text: String = "order", by user: String = "user", _ change: (inout Order) -> Void = { _ in }
  ) -> Order {
    var order = Order(
      orderId: id(text), userId: id(user), productId: product, quantity: quantity, amount: amount, status: .verified,
      createdAt: time)
    change(&order)
    world.orders.append(.valid(order))
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
    let made = self.order { made in
      made.transactionId = record.transactionId
      order(&made)
    }
    world.lookups[made.orderId] = .verified(nil)
    return made
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
