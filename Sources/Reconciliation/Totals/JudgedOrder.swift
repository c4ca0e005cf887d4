/// The data of a judged order that the tie-out compares with Apple's reports.
public struct JudgedOrder: Hashable, Sendable {
  public var bundleId: String?
  public var productId: Identifier
  public var quantity: Int32
  public var amount: Money
  /// When the shop believed that the order was paid, else its creation.
  public var bookedAt: Instant
  /// True if the shop counts the order as paid. Test purchases and free orders do not count.
  public var isBooked: Bool
  /// True if the payment is unconfirmed: Apple may have counted units that are unknown here.
  public var isAwaited: Bool
  public var renewals: [Identifier]

  public init(
    bundleId: String? = nil, productId: Identifier, quantity: Int32 = 1, amount: Money, bookedAt: Instant,
    isBooked: Bool, isAwaited: Bool = false, renewals: [Identifier] = []
  ) {
    (self.bundleId, self.productId, self.quantity, self.amount) = (bundleId, productId, quantity, amount)
    (self.bookedAt, self.isBooked, self.isAwaited, self.renewals) = (bookedAt, isBooked, isAwaited, renewals)
  }

  public init?(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row, let verdict = judgement.verdict else { return nil }
    // An order that owns a production transaction is paid or reversed.
    let isAwaited =
      switch verdict {
      case .unconfirmed: true
      case .paid, .reversed, .unpaid, .nothingToPay: false
      }
    self.init(
      bundleId: order.bundleId, productId: order.productId, quantity: order.quantity, amount: order.amount,
      bookedAt: order.verifiedAt ?? order.createdAt,
      isBooked: order.status == .verified && verdict != .nothingToPay
        && (judgement.environment ?? .production) == .production,
      isAwaited: isAwaited, renewals: judgement.renewals)
  }
}
