/// What an order says to the tie-out once it is judged: what the shop counts as paid, and what Apple may count besides.
public struct JudgedOrder: Hashable, Sendable {
  /// nil: the only configured app.
  public var bundleId: String?
  public var productId: Identifier
  public var quantity: Int32
  public var amount: Money
  /// When the shop believed that it was paid; where it never did, when it was placed.
  public var bookedAt: Instant
  /// Whether the shop counts it as paid. What was bought where no money moves is none of it.
  public var isBooked: Bool
  /// Whether its payment is neither confirmed nor refuted: Apple may have counted units of it that nobody here knows.
  public var isAwaited: Bool
  /// The renewals of subscriptions in production that it owns.
  public var renewals: [Identifier]

  public init(
    bundleId: String? = nil, productId: Identifier, quantity: Int32 = 1, amount: Money, bookedAt: Instant,
    isBooked: Bool, isAwaited: Bool = false, renewals: [Identifier] = []
  ) {
    self.bundleId = bundleId
    self.productId = productId
    self.quantity = quantity
    self.amount = amount
    self.bookedAt = bookedAt
    self.isBooked = isBooked
    self.isAwaited = isAwaited
    self.renewals = renewals
  }

  /// - Returns: nil for a row that breaks the contract, which counts for nothing.
  public init?(_ judgement: Judgement) {
    guard case .valid(let order) = judgement.row, let verdict = judgement.verdict else { return nil }
    // Whatever owns a transaction in production is paid or reversed, and counted here by that.
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
