/// The number of paid orders, and the number paid implausibly long after they were placed.
public struct PaymentTimes: Hashable, Sendable {
  /// Longer than parents take to approve a purchase, as a rule.
  private static let longest = Span.days(3)

  public struct LatePayment: Hashable, Sendable {
    public var orderId: Identifier
    public var createdAt: Instant
    public var paidAt: Instant

    public init(orderId: Identifier, createdAt: Instant, paidAt: Instant) {
      (self.orderId, self.createdAt, self.paidAt) = (orderId, createdAt, paidAt)
    }
  }

  public private(set) var orders = 0
  public private(set) var late = 0
  /// Up to three late ones.
  public private(set) var examples: [LatePayment] = []

  public init(orders: Int = 0, late: Int = 0, examples: [LatePayment] = []) {
    (self.orders, self.late, self.examples) = (orders, late, Array(examples.prefix(3)))
  }

  public mutating func add(_ paidAt: Instant, after createdAt: Instant, _ orderId: () -> Identifier) {
    orders += 1
    if paidAt - createdAt <= Self.longest { return }
    late += 1
    if examples.count < 3 {
      examples.append(LatePayment(orderId: orderId(), createdAt: createdAt, paidAt: paidAt))
    }
  }

  public mutating func join(_ other: PaymentTimes) {
    self = PaymentTimes(
      orders: orders + other.orders, late: late + other.late,
      examples: (examples + other.examples).sorted { $0.orderId < $1.orderId })
  }
}
