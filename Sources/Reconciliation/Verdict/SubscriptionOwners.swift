/// A period of a subscription in production that an order owns.
public struct OwnedPeriod: Hashable, Sendable {
  /// The original transaction ID.
  public var subscription: Identifier
  public var orderId: Identifier
  public var userId: Identifier
  /// The beginning of the period.
  public var date: Instant
  /// The time between the beginning of the period and the creation of the order.
  public var distance: Span
  /// False while a missing answer could change what the order owns.
  public var isFinal: Bool

  public init(
    subscription: Identifier, orderId: Identifier, userId: Identifier, date: Instant, distance: Span,
    isFinal: Bool = true
  ) {
    (self.subscription, self.orderId, self.userId) = (subscription, orderId, userId)
    (self.date, self.distance, self.isFinal) = (date, distance, isFinal)
  }

  /// nil: the purchase is no period of a subscription in production, or has no date.
  public init?(_ purchase: TransactionRecord, ownedBy order: Order, isFinal: Bool) {
    guard let subscription = purchase.productionSubscription, let date = purchase.saleDate else { return nil }
    self.init(
      subscription: subscription, orderId: order.orderId, userId: order.userId, date: date,
      distance: order.distance(to: purchase), isFinal: isFinal)
  }
}

/// The orders beside one order of a subscription.
public struct SubscriptionNeighbors: Hashable, Sendable {
  /// The user of the one other person whose orders own earlier periods; nil: none, several, the order's own person owns
  /// the earliest, or a missing answer could give an earlier period to another order.
  public var earlierUser: Identifier?
  /// True if another order owns a later period.
  public var hasLaterOrder: Bool

  public init(earlierUser: Identifier?, hasLaterOrder: Bool) {
    (self.earlierUser, self.hasLaterOrder) = (earlierUser, hasLaterOrder)
  }
}

/// The owners of one subscription's periods. An order counts for the nearest of the periods that it owns.
public struct SubscriptionOwners: Sendable {
  /// By order; orders without a neighbor at another period are left out.
  public private(set) var neighbors: [Identifier: SubscriptionNeighbors] = [:]

  public init(_ periods: some Sequence<OwnedPeriod>, people: People) {
    var nearest: [Identifier: OwnedPeriod] = [:]
    for period in periods {
      let known = nearest[period.orderId]
      if let known, (known.distance, known.date) <= (period.distance, period.date) { continue }
      nearest[period.orderId] = period
    }
    let sorted = nearest.values.sorted { ($0.date, $0.orderId) < ($1.date, $1.orderId) }
    guard let first = sorted.first?.date, let last = sorted.last?.date, first < last else { return }
    let firstPeople = Set(sorted.lazy.prefix { $0.date == first }.map { people.person($0.userId) })
    // By person, the smallest user with an order of an earlier period.
    var earlier: [Identifier: Identifier] = [:]
    var areEarlierFinal = true
    var place = sorted.startIndex
    while place < sorted.endIndex {
      let end = sorted[place...].firstIndex { $0.date > sorted[place].date } ?? sorted.endIndex
      for period in sorted[place..<end] {
        let own = people.person(period.userId)
        let isOfOneOther = earlier.count == (earlier[own] == nil ? 1 : 2) && !firstPeople.contains(own)
        neighbors[period.orderId] = SubscriptionNeighbors(
          earlierUser: isOfOneOther && areEarlierFinal ? earlier.first { $0.key != own }?.value : nil,
          hasLaterOrder: period.date < last)
      }
      for period in sorted[place..<end] {
        areEarlierFinal = areEarlierFinal && period.isFinal
        let person = people.person(period.userId)
        earlier[person] = earlier[person].map { min($0, period.userId) } ?? period.userId
      }
      place = end
    }
  }
}

extension OrderFacts {
  /// The subscription of the owned purchase, by its original transaction ID.
  public var ownedSubscription: Identifier? { comparable?.productionSubscription }

  /// Notes the other orders of the owned subscription. With the order's own account token no one else is its subscriber.
  public mutating func take(_ neighbors: SubscriptionNeighbors) {
    hasLaterOrder = neighbors.hasLaterOrder
    if let comparable, AccountToken.relation(of: order, to: comparable) != .same { subscriber = neighbors.earlierUser }
  }
}
