/// A kind of finding, or refunds, with a much larger share of orders than in earlier nights.
/// It is reported and does not hold the night.
public struct UnusualShare: Hashable, Sendable {
  public enum Subject: Hashable, Sendable {
    case kind(FindingKind)
    case refunds

    public var code: String {
      switch self {
      case .kind(let kind): kind.rawValue
      case .refunds: "refunds"
      }
    }

    public static let all = FindingKind.allCases.map { Subject.kind($0) } + [.refunds]
  }

  public struct EarlierNights: Hashable, Sendable {
    public var nights: Int
    public var orders: Int
    /// Orders with a finding of a kind, payments and deliveries without an order, and refunds, by ``Subject/code``.
    public var counts: [String: Int]

    public init(nights: Int, orders: Int, counts: [String: Int]) {
      (self.nights, self.orders, self.counts) = (nights, orders, counts)
    }
  }

  public var subject: Subject
  /// Orders of the period with the finding, or the number of payments, deliveries or refunds.
  public var count: Int
  public var orders: Int
  public var countBefore: Int
  public var ordersBefore: Int
  public var nights: Int

  /// Returns subjects with over a tenth of the orders, at least five, and three times the earlier share.
  /// At least two earlier nights are needed. A period without orders has no shares.
  public static func all(_ totals: Totals, since precedent: EarlierNights) -> [UnusualShare] {
    guard precedent.nights >= 2, precedent.orders > 0, totals.ordersRead > 0 else { return [] }
    return Subject.all.compactMap { subject in
      let count =
        switch subject {
        case .kind(let kind): totals.ordersByKind[kind.index]
        case .refunds: totals.refunds
        }
      let before = precedent.counts[subject.code] ?? 0
      guard count >= 5, count * 10 > totals.ordersRead, count * precedent.orders >= 3 * before * totals.ordersRead
      else { return nil }
      return UnusualShare(
        subject: subject, count: count, orders: totals.ordersRead, countBefore: before, ordersBefore: precedent.orders,
        nights: precedent.nights)
    }
  }
}
