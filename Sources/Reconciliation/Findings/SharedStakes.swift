/// Accused orders, and the orphan payments that would pay them. Both have one amount at risk, which the order carries.
public struct SharedStakes {
  private struct Sale: Hashable {
    var person: Identifier
    var bundleId: String?
    var productId: Identifier
    var amount: Money
  }

  private let rules: Rules
  /// By sale, the date of each orphan payment, by the identity of its finding.
  private var payments: [Sale: [String: Instant]] = [:]
  private var orders: [Sale: [Instant]] = [:]

  public init(rules: Rules) { self.rules = rules }

  public var isEmpty: Bool { payments.isEmpty }

  public mutating func add(payment finding: Finding) {
    guard finding.kind == .orphanPayment, let sale = sale(of: finding) else { return }
    payments[sale, default: [:]][finding.identity] = finding.occurredAt
  }

  /// Adds the finding of an order, after all payments.
  public mutating func add(order finding: Finding) {
    guard finding.kind.has(.mayBePaidByOrphan), let date = finding.orderedAt, let sale = sale(of: finding),
      payments[sale] != nil
    else { return }
    orders[sale, default: []].append(date)
  }

  private func sale(of finding: Finding) -> Sale? {
    guard let userId = finding.userId, let productId = finding.productId, let amount = finding.atStake else {
      return nil
    }
    return Sale(
      person: rules.people.person(userId), bundleId: finding.bundleId, productId: productId, amount: amount)
  }

  /// The identities of the payments whose amount an order carries. Each order carries that of one payment.
  public func carriedPayments() -> Set<String> {
    var carried: Set<String> = []
    for (sale, payments) in payments {
      var orders = (orders[sale] ?? []).sorted()[...]
      for (identity, date) in payments.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
        orders = orders.drop { $0 < date - rules.matchWindow }
        guard let order = orders.first, order <= date + rules.matchWindow else { continue }
        orders.removeFirst()
        carried.insert(identity)
      }
    }
    return carried
  }
}
