/// What claiming has come to for one order.
package struct OrderClaims: Hashable, Sendable {
  /// Transactions that this order owns, the one that its verdict rests on first.
  package var owned: [TransactionRecord] = []
  /// Transactions that it claims and that other orders own.
  package var lost: [LostClaim] = []
  private var obstacle: Obstacle?

  /// What stands in the way of a claim. Indirect, because few orders meet one and all would carry room for it.
  private indirect enum Obstacle: Hashable, Sendable {
    case refused(RefusedClaim)
    case contradictory(TransactionRecord)
  }

  package init() {}

  /// The named transaction that cannot pay this order, and why.
  package var refused: RefusedClaim? {
    get { if case .refused(let claim) = obstacle { claim } else { nil } }
    set { obstacle = newValue.map { .refused($0) } }
  }

  /// The claimed transaction about which the records contradict each other.
  package var contradictory: TransactionRecord? {
    get { if case .contradictory(let transaction) = obstacle { transaction } else { nil } }
    set { obstacle = newValue.map { .contradictory($0) } }
  }

  /// Those of its own that stand.
  var liveOwned: [TransactionRecord] { owned.allSatisfy { $0.isLive } ? owned : owned.filter { $0.isLive } }

  /// A live payment outweighs one that Apple took back.
  fileprivate mutating func putLiveFirst() {
    if owned.count > 1 { owned = owned.filter(\.isLive) + owned.filter { !$0.isLive } }
  }
}

/// A claim that another order's claim came before.
package struct LostClaim: Hashable, Sendable {
  package var transaction: TransactionRecord
  package var ownerOrderId: Identifier
  package var ownerUserId: Identifier
  /// Whether no answer that is missing could still give it to this order: an order that competes for it has none open.
  package var isFinal: Bool

  package init(transaction: TransactionRecord, ownerOrderId: Identifier, ownerUserId: Identifier, isFinal: Bool) {
    self.transaction = transaction
    self.ownerOrderId = ownerOrderId
    self.ownerUserId = ownerUserId
    self.isFinal = isFinal
  }
}

/// A named claim that its own transaction refutes.
package struct RefusedClaim: Hashable, Sendable {
  package var transaction: TransactionRecord
  package var reason: PaymentReason

  package init(transaction: TransactionRecord, reason: PaymentReason) {
    self.transaction = transaction
    self.reason = reason
  }
}

/// Who owns which transaction. A transaction has at most one owner.
package struct Settlement: Sendable {
  package private(set) var claims: [Identifier: OrderClaims] = [:]
  /// Every transaction that some order claims, names or owns: none of these is an orphan.
  package private(set) var claimed: Set<TransactionKey> = []

  private let rules: Rules
  private var claimants: [Claimant]
  /// Owner by transaction, as an index into `claimants`.
  private var owners: [TransactionKey: Int] = [:]
  /// Every transaction that some order names.
  private var named: Set<TransactionKey> = []
  /// Transactions whose owner may change when a missing answer comes.
  private var provisional: Set<TransactionKey> = []

  /// Settles all claims of these orders. The order of input plays no part.
  ///
  /// Named claims first, the earliest order owning; then the one-to-one assignment of orders that name none; then further
  /// live transactions that an order's own receipts bring and that nobody else claims.
  package init(settling input: consuming [Claimant], rules: Rules) {
    self.rules = rules
    claimants = input
    claimants.sort { ($0.order.createdAt, $0.order.orderId) < ($1.order.createdAt, $1.order.orderId) }
    for claimant in claimants { claims[claimant.order.orderId] = OrderClaims() }
    settleNamed()
    settleUnnamed(in: .production)
    settleUnnamed(in: .sandbox)
    settleFurther()
    for orderId in claims.keys { claims[orderId]?.putLiveFirst() }
    // What settling needed is not kept for the whole night.
    claimants = []
    owners = [:]
    named = []
    provisional = []
  }

  /// The claims of an order whose transactions nobody else names or brings: the same as settling it alone, at a fraction
  /// of the cost.
  package static func alone(_ claimant: Claimant, rules: Rules) -> OrderClaims {
    var own = OrderClaims()
    if claimant.brought.isEmpty { return own }
    // All that it brings is nearly always the one that it owns, and what is handed on as it is costs nothing.
    func only(_ place: Int) -> [TransactionRecord] {
      claimant.brought.count == 1 ? claimant.brought : [claimant.brought[place]]
    }
    let named = claimant.namedPlace
    if let named {
      switch claimant.standing(named: claimant.brought[named], rules: rules) {
      case .eligible: own.owned = only(named)
      case .refused(let reason): own.refused = RefusedClaim(transaction: claimant.brought[named], reason: reason)
      case .contradictory: own.contradictory = claimant.brought[named]
      }
    } else if claimant.order.transactionId == nil {
      let nearest =
        claimant.nearestPlace(in: .production, rules: rules) ?? claimant.nearestPlace(in: .sandbox, rules: rules)
      if let nearest { own.owned = only(nearest) }
    }
    if claimant.brought.count == 1, !own.owned.isEmpty || named != nil { return own }
    guard own.refused == nil, own.contradictory == nil, !claimant.contradictsOwnPayload else { return own }
    let first = own.owned.first?.key
    for further in claimant.brought where further.isLive && further.key != first {
      if claimant.claimsUnnamed(further, rules: rules) { own.owned.append(further) }
    }
    own.putLiveFirst()
    return own
  }

  private mutating func settleNamed() {
    for (index, claimant) in claimants.enumerated() {
      guard let named = claimant.named else { continue }
      let orderId = claimant.order.orderId
      claimed.insert(named.key)
      self.named.insert(named.key)
      switch claimant.standing(named: named, rules: rules) {
      case .eligible:
        if let owner = owners[named.key] {
          let claim = lost(named, to: owner)
          claims[orderId]?.lost.append(claim)
        } else {
          own(named, by: index)
          if claimant.isOpen { provisional.insert(named.key) }
        }
      case .refused(let reason):
        claims[orderId]?.refused = RefusedClaim(transaction: named, reason: reason)
      case .contradictory:
        claims[orderId]?.contradictory = named
      }
    }
  }

  private mutating func settleUnnamed(in environment: AppleEnvironment) {
    var candidates: [(index: Int, transaction: TransactionRecord)] = []
    for (index, claimant) in claimants.enumerated() where claimant.order.transactionId == nil {
      let orderId = claimant.order.orderId
      guard claims[orderId]?.owned.isEmpty == true else { continue }
      for transaction in claimant.brought where transaction.environment == environment {
        guard claimant.claimsUnnamed(transaction, rules: rules) else { continue }
        claimed.insert(transaction.key)
        candidates.append((index, transaction))
      }
    }
    let open = candidates.filter { owners[$0.transaction.key] == nil }
    for component in Settlement.components(open.map { ($0.index, $0.transaction.key) }) {
      let members = component.map { open[$0] }
      let orders = Set(members.map(\.index)).sorted { claimants[$0].order.orderId < claimants[$1].order.orderId }
      let transactions = Dictionary(
        members.map { ($0.transaction.key, $0.transaction) }, uniquingKeysWith: { one, _ in one })
      let keys = transactions.keys.sorted()
      if orders.contains(where: { claimants[$0].isOpen }) { provisional.formUnion(keys) }
      let orderRank = Dictionary(uniqueKeysWithValues: orders.enumerated().map { ($1, $0) })
      let keyRank = Dictionary(uniqueKeysWithValues: keys.enumerated().map { ($1, $0) })
      var edges: Set<Assignment.Edge> = []
      for (index, transaction) in members {
        guard let order = orderRank[index], let rank = keyRank[transaction.key], let date = transaction.purchaseDate
        else { continue }
        let distance = (date - claimants[index].order.createdAt).magnitude.microseconds
        edges.insert(Assignment.Edge(order: order, transaction: rank, distance: distance))
      }
      let partners = Assignment.solve(
        orderCount: orders.count, transactionCount: keys.count, edges: Array(edges))
      for (rank, partner) in partners.enumerated() {
        if let partner, let transaction = transactions[keys[partner]] { own(transaction, by: orders[rank]) }
      }
    }
    for (index, transaction) in candidates {
      if let owner = owners[transaction.key], owner != index {
        let claim = lost(transaction, to: owner)
        claims[claimants[index].order.orderId]?.lost.append(claim)
      }
    }
  }

  /// A live transaction that is left over belongs to the order that alone brings it, or else to the nearest one: it was
  /// paid, and somebody paid twice.
  private mutating func settleFurther() {
    var wanted: [TransactionKey: (index: Int, distance: Span, transaction: TransactionRecord)] = [:]
    for (index, claimant) in claimants.enumerated() {
      let orderClaims = claims[claimant.order.orderId]
      guard orderClaims?.refused == nil, orderClaims?.contradictory == nil, !claimant.contradictsOwnPayload
      else { continue }
      for transaction in claimant.brought
      where transaction.isLive && owners[transaction.key] == nil && !named.contains(transaction.key) {
        guard claimant.claimsUnnamed(transaction, rules: rules), let date = transaction.purchaseDate else { continue }
        let distance = (date - claimant.order.createdAt).magnitude
        // Claimants come by age and id, so a tie stays with the earlier order.
        if let nearest = wanted[transaction.key], nearest.distance <= distance { continue }
        wanted[transaction.key] = (index, distance, transaction)
      }
    }
    for (key, claim) in wanted.sorted(by: { $0.key < $1.key }) {
      claimed.insert(key)
      own(claim.transaction, by: claim.index)
    }
  }

  private mutating func own(_ transaction: TransactionRecord, by index: Int) {
    owners[transaction.key] = index
    claims[claimants[index].order.orderId]?.owned.append(transaction)
  }

  private func lost(_ transaction: TransactionRecord, to owner: Int) -> LostClaim {
    LostClaim(
      transaction: transaction, ownerOrderId: claimants[owner].order.orderId,
      ownerUserId: claimants[owner].order.userId, isFinal: !provisional.contains(transaction.key))
  }

  /// Groups of edges that share orders or transactions, as indices into the input: claims in one depend on none in another.
  package static func components(_ edges: [(order: Int, key: TransactionKey)]) -> [[Int]] {
    var parents = Array(edges.indices)
    func root(_ start: Int) -> Int {
      var node = start
      while parents[node] != node {
        parents[node] = parents[parents[node]]
        node = parents[node]
      }
      return node
    }
    var firstByOrder: [Int: Int] = [:]
    var firstByKey: [TransactionKey: Int] = [:]
    for (index, edge) in edges.enumerated() {
      for first in [firstByOrder[edge.order], firstByKey[edge.key]].compactMap({ $0 }) {
        parents[root(index)] = root(first)
      }
      firstByOrder[edge.order] = firstByOrder[edge.order] ?? index
      firstByKey[edge.key] = firstByKey[edge.key] ?? index
    }
    return Dictionary(grouping: edges.indices, by: root).values.sorted { $0[0] < $1[0] }
  }
}
