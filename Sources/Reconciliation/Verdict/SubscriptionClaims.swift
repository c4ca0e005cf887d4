/// An order's claim on a period of a subscription.
public struct PeriodClaim: Hashable, Sendable {
  public var orderId: Identifier
  public var userId: Identifier
  /// The beginning of the period.
  public var date: Instant
  /// The time between the beginning of the period and the creation of the order.
  public var distance: Span
  /// True if the order states the original ID near or after the end of the first period, for a later one that begins at
  /// `date` or up to two windows after it. A claim on a period itself has a smaller distance and counts before it.
  public var isApproximate: Bool

  public init(orderId: Identifier, userId: Identifier, date: Instant, distance: Span, isApproximate: Bool = false) {
    (self.orderId, self.userId, self.date, self.distance) = (orderId, userId, date, distance)
    self.isApproximate = isApproximate
  }

  /// The claim of an order that refers to a period; nil: the transaction is no period of the ordered product in
  /// production, or has no date.
  public init?(
    on period: TransactionRecord, product: Identifier, orderId: Identifier, userId: Identifier, createdAt: Instant,
    rules: Rules
  ) {
    guard period.expiresDate != nil, period.environment == .production, period.isPurchase(of: product),
      let date = period.saleDate
    else { return nil }
    self.init(orderId: orderId, userId: userId, date: date, distance: (date - createdAt).magnitude)
    let isFirst = period.originalTransactionId == period.transactionId
    // The order of a renewal may precede the end of the first period by as much as its link allows.
    if isFirst, distance > rules.matchWindow, period.expiresDate.map({ $0 - rules.matchWindow <= createdAt }) ?? false {
      (self.date, isApproximate) = (createdAt - rules.matchWindow, true)
    }
  }
}

/// The orders beside one order of a subscription.
public struct SubscriptionNeighbors: Hashable, Sendable {
  /// The user of the one other person whose orders claim earlier periods; nil: none, several, or the order's own person
  /// claims the earliest.
  public var earlierUser: Identifier?
  /// True if another order claims a later period.
  public var hasLaterOrder: Bool

  public init(earlierUser: Identifier?, hasLaterOrder: Bool) {
    (self.earlierUser, self.hasLaterOrder) = (earlierUser, hasLaterOrder)
  }
}

/// The orders of one subscription. An order counts for the nearest of the periods that it claims.
public struct SubscriptionClaims: Sendable {
  /// By order; orders without a neighbor at another period are left out.
  public private(set) var neighbors: [Identifier: SubscriptionNeighbors] = [:]

  public init(_ claims: some Sequence<PeriodClaim>, people: People) {
    var nearest: [Identifier: PeriodClaim] = [:]
    for claim in claims {
      if let known = nearest[claim.orderId], (known.distance, known.date) <= (claim.distance, claim.date) { continue }
      nearest[claim.orderId] = claim
    }
    let sorted = nearest.values.sorted { ($0.date, $0.orderId) < ($1.date, $1.orderId) }
    guard let first = sorted.first?.date, let last = sorted.last?.date, first < last else { return }
    let firstPeople = Set(sorted.lazy.prefix { $0.date == first }.map { people.person($0.userId) })
    // By person, the smallest user with an order of an earlier period.
    var earlier: [Identifier: Identifier] = [:]
    var place = sorted.startIndex
    while place < sorted.endIndex {
      let end = sorted[place...].firstIndex { $0.date > sorted[place].date } ?? sorted.endIndex
      for claim in sorted[place..<end] {
        let own = people.person(claim.userId)
        let isOfOneOther = earlier.count == (earlier[own] == nil ? 1 : 2) && !firstPeople.contains(own)
        neighbors[claim.orderId] = SubscriptionNeighbors(
          earlierUser: isOfOneOther ? earlier.first { $0.key != own }?.value : nil, hasLaterOrder: claim.date < last)
      }
      // An approximate claim may be on the same period as a later one.
      for claim in sorted[place..<end] where !claim.isApproximate {
        let person = people.person(claim.userId)
        earlier[person] = earlier[person].map { min($0, claim.userId) } ?? claim.userId
      }
      place = end
    }
  }
}

extension OrderFacts {
  /// The subscription of the owned purchase, by its original transaction ID.
  public var ownedSubscription: Identifier? {
    comparable.flatMap { $0.expiresDate == nil ? nil : $0.originalTransactionId }
  }

  /// Notes the other orders of the owned subscription. With the order's own account token no one else is its subscriber.
  public mutating func take(_ neighbors: SubscriptionNeighbors) {
    hasLaterOrder = neighbors.hasLaterOrder
    if let comparable, AccountToken.relation(of: order, to: comparable) != .same { subscriber = neighbors.earlierUser }
  }
}
