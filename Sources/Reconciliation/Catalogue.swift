/// What the shop sells, from the relation `products`.
public struct Catalogue: Hashable, Sendable {
  public struct Product: Hashable, Sendable {
    public var productId: Identifier
    /// Apple's word; nil for one that is not Apple's.
    public var type: ProductType?
    public var name: String?
    /// When it went on sale; nil: always was.
    public var soldFrom: Instant?
    /// The first instant at which it was not on sale any more; nil: still is.
    public var soldUntil: Instant?

    public init(
      productId: Identifier, type: ProductType? = nil, name: String? = nil, soldFrom: Instant? = nil,
      soldUntil: Instant? = nil
    ) {
      self.productId = productId
      self.type = type
      self.name = name
      self.soldFrom = soldFrom
      self.soldUntil = soldUntil
    }

    /// Whether it could be bought at that time.
    public func isOnSale(at instant: Instant) -> Bool {
      soldFrom.map { $0 <= instant } ?? true && soldUntil.map { instant < $0 } ?? true
    }
  }

  private var products: [Identifier: [Product]] = [:]

  /// - Parameter products: rows in any order. A product of several rows is on sale whenever one of them says so.
  public init(_ products: some Sequence<Product>) {
    for product in products { self.products[product.productId, default: []].append(product) }
  }

  /// Its rows, in no order.
  public var rows: [Product] { products.values.flatMap(\.self) }

  public func knows(_ productId: Identifier) -> Bool { products[productId] != nil }

  /// Whether the product could be bought at that time; nil for one that is not in the catalogue.
  public func isOnSale(_ productId: Identifier, at instant: Instant) -> Bool? {
    products[productId]?.contains { $0.isOnSale(at: instant) }
  }

  /// Whether who bought it once has it for ever.
  public func isNonConsumable(_ productId: Identifier) -> Bool {
    products[productId]?.contains { $0.type == .nonConsumable } ?? false
  }
}

/// Non-consumables that one person paid for twice. What is paid once gives access for ever.
///
/// Memory grows with the payments of non-consumables, not with orders.
public struct RepeatedPurchases: Sendable {
  private struct Sale: Hashable {
    var person: Identifier
    var productId: Identifier
    var bundleId: String
  }

  private struct Payment: Comparable {
    var date: Instant
    var orderId: Identifier

    static func < (left: Payment, right: Payment) -> Bool { (left.date, left.orderId) < (right.date, right.orderId) }
  }

  private let rules: Rules
  /// The earliest payment so far.
  private var first: [Sale: Finding] = [:]
  /// All others.
  private var further: [Finding] = []

  public init(rules: Rules) { self.rules = rules }

  /// Takes a judged order. The order in which they come plays no part. What may turn out to be another's payment, or not the
  /// only one that the order could have, says nothing about who bought twice.
  public mutating func take(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row, case .paid(let transaction) = judgement.verdict,
      judgement.isPaymentFinal, rules.catalogue?.isNonConsumable(order.productId) ?? false
    else { return }
    var finding = Finding(kind: .boughtTwice, subject: .order(order.orderId), reason: "")
    finding.orderId = order.orderId
    finding.userId = order.userId
    finding.productId = order.productId
    finding.transactionId = transaction.transactionId
    finding.environment = transaction.environment
    finding.bundleId = rules.bundleId(of: order)
    finding.amount = order.amount
    finding.occurredAt = transaction.saleDate ?? order.createdAt
    finding.paidAt = judgement.paidAt
    finding.deliveredAt = judgement.deliveredAt
    finding.evidenceCheckedAt = transaction.checkedAt
    take(finding)
  }

  /// Every payment that was taken, as what would stand on it if it were not the first.
  public var taken: [Finding] { Array(first.values) + further }

  /// Takes a payment as ``taken`` gives it.
  public mutating func take(_ paid: Finding) {
    let sale = sale(of: paid)
    guard let known = first[sale] else {
      first[sale] = paid
      return
    }
    let isEarlier = payment(of: paid) < payment(of: known)
    if isEarlier { first[sale] = paid }
    further.append(isEarlier ? known : paid)
  }

  /// Takes the orders that another one has taken.
  public mutating func join(_ other: RepeatedPurchases) {
    for paid in other.taken { take(paid) }
  }

  private func sale(of paid: Finding) -> Sale {
    Sale(person: rules.people.person(paid.userId ?? ""), productId: paid.productId ?? "", bundleId: paid.bundleId ?? "")
  }

  private func payment(of paid: Finding) -> Payment {
    Payment(date: paid.occurredAt ?? rules.asOf, orderId: paid.orderId ?? "")
  }

  /// What stands on every payment but the first, by order id.
  public func findings() -> [Finding] {
    further.map { finding in
      var finding = finding
      let sale = sale(of: finding)
      let orderId = first[sale]?.orderId ?? ""
      finding.reason = "The same person paid for \(sale.productId) before, with order \(orderId)."
      return finding
    }.sorted { $0.subject < $1.subject }
  }
}
