/// A kind of finding, or refunds, on a much larger share of the period's orders than in the nights before.
///
/// It holds no night, and is reported beside it.
public struct UnusualShare: Hashable, Sendable {
  /// What there is more of.
  public enum Subject: Hashable, Sendable {
    case kind(FindingKind)
    case refunds

    /// The code in the database and in metrics.
    public var code: String {
      switch self {
      case .kind(let kind): kind.rawValue
      case .refunds: "refunds"
      }
    }

    public static let all = FindingKind.allCases.map { Subject.kind($0) } + [.refunds]
  }

  /// The nights before, added up.
  public struct Precedent: Hashable, Sendable {
    public var nights: Int
    /// Orders of their periods.
    public var orders: Int
    /// Orders that had a finding of a kind, and refunds, by ``Subject/code``.
    public var counts: [String: Int]

    public init(nights: Int, orders: Int, counts: [String: Int]) {
      self.nights = nights
      self.orders = orders
      self.counts = counts
    }
  }

  public var subject: Subject
  /// Orders of the period that have it; of refunds their number.
  public var count: Int
  /// Orders of the period.
  public var orders: Int
  /// The same in the nights before.
  public var countBefore: Int
  public var ordersBefore: Int
  public var nights: Int

  /// Everything unusual: on more than a tenth of the orders, on five at least, and on three times the share of the nights
  /// before, of which there are two at least.
  public static func all(_ totals: Totals, since precedent: Precedent) -> [UnusualShare] {
    guard precedent.nights >= 2, precedent.orders > 0 else { return [] }
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
