import Reconciliation

/// The orders that one account token or subscription could link to transactions, by kind and time.
struct LinkableOrders {
  /// Orders of one product, in the order of time. A transaction is linked to a range of them.
  private struct Kind {
    var orders: [LinkableOrder]
    /// The place of the orders among the timelines of ``ConflictGroups``; nil: they are few.
    var timeline: Int?
  }

  /// A transaction that is linked to fewer orders lists them.
  static let least = 32

  private var kinds: [Kind] = []
  private let firstUser: Identifier?

  /// - Parameter contests: gets the orders of a token as timelines if they are many.
  init(_ orders: [LinkableOrder], contests: ConflictGroups? = nil) {
    firstUser = orders.lazy.map(\.userId).min()
    let sorted = orders.sorted { left, right in
      if left.productId != right.productId { return left.productId < right.productId }
      if left.isStatedIDContained != right.isStatedIDContained { return right.isStatedIDContained }
      return (left.createdAt, left.orderId) < (right.createdAt, right.orderId)
    }
    for order in sorted {
      if let last = kinds.last?.orders.last, last.productId == order.productId,
        last.isStatedIDContained == order.isStatedIDContained
      {
        kinds[kinds.count - 1].orders.append(order)
      } else {
        kinds.append(Kind(orders: [order]))
      }
    }
    guard let contests else { return }
    for place in kinds.indices where kinds[place].orders.count >= Self.least {
      kinds[place].timeline = contests.addTimeline(kinds[place].orders.map(\.orderId))
    }
  }

  /// Links orders to the transaction.
  ///
  /// If an order that its token links refers to it, its token links no order whose receipts contain the ID that the
  /// order states. Such an order has a purchase of its own, and without this rule the purchases of its account would
  /// nearly all be contested. Of a purchase with several IDs such orders are kept apart, until all its IDs are known.
  func link(_ transaction: inout ContestedTransaction, by link: UnprovenLink, rules: Rules) {
    transaction.userId = transaction.userId ?? firstUser
    let dates = transaction.record.possibleSaleDates
    // The transaction ID of a bundle is one of the purchase's own, which links at any time.
    let isStated = transaction.record.bundleTransactionId.map { link == .subscription($0) } ?? false
    var (further, ofAccount): ([Identifier], [Identifier]) = ([], [])
    for kind in kinds {
      let first = kind.orders[0]
      guard transaction.record.isPurchase(of: first.productId) else { continue }
      switch link {
      case .token where transaction.isWithToken && first.isStatedIDContained: continue
      case .token, .subscription: break
      }
      let ranges =
        isStated
        ? [0..<kind.orders.count]
        : dates.map { sold in
          let start = kind.orders.partitioningIndex { $0.createdAt >= sold - rules.matchWindow }
          return start..<kind.orders.partitioningIndex { $0.createdAt > sold + rules.matchWindow }
        }
      for range in ranges {
        if case .token = link, first.isStatedIDContained, transaction.sharesPurchase {
          ofAccount += kind.orders[range].lazy.map(\.orderId)
        } else if let timeline = kind.timeline, range.count >= Self.least, ranges.count == 1,
          !transaction.sharesPurchase
        {
          transaction.linked.append(TimelineRange(timeline: timeline, places: range))
        } else {
          further += kind.orders[range].lazy.map(\.orderId)
        }
      }
    }
    if !further.isEmpty { transaction.claimants = Set(transaction.claimants).union(further).sorted() }
    transaction.accountOrders += ofAccount
  }
}
