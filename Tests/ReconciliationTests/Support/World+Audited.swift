import Reconciliation

/// The reference audit of a world, to compare faster ways with.
///
/// It groups the records by order, matches all claims at once, judges every order, and then derives the findings
/// without an order.
extension World {
  /// The results of the audit.
  struct Outcome: Sendable {
    /// By order id.
    var judgements: [Identifier: Judgement] = [:]
    /// All findings, in the order of their stable ids.
    var findings: [Finding] = []
    var totals = Totals()
  }

  func audited() -> Outcome {
    var world = self
    world.rules.catalogue = products.map { Catalogue($0) }
    return world.auditedAlone()
  }

  private func auditedAlone() -> Outcome {
    let facts = matchedFacts()
    var outcome = Outcome()
    var repeated = RepeatedPurchases(rules: rules)
    for row in orders {
      outcome.totals.read(row)
      let judgement =
        switch row {
        case .bad(let bad): Judgement(reporting: bad)
        case .valid(let order):
          Judgement(judging: facts.orders[order.orderId] ?? OrderFacts(order: order), rules: rules)
        }
      outcome.totals.add(judgement)
      outcome.findings += judgement.findings
      repeated.take(judgement)
      outcome.judgements[row.orderId] = judgement
    }
    outcome.findings += repeated.findings()
    let served = Set(
      facts.orders.filter { outcome.judgements[$0.key]?.deliveredAt != nil }
        .flatMap { $0.value.claims.owned.compactMap(\.subscriptionKey) })
    outcome.findings += findingsWithoutOrder(claimed: facts.claimed, served: served)
    var stakes = SharedStakes(rules: rules)
    for finding in outcome.findings { stakes.add(payment: finding) }
    for finding in outcome.findings { stakes.add(order: finding) }
    let carried = stakes.carriedPayments()
    for index in outcome.findings.indices where carried.contains(outcome.findings[index].identity) {
      outcome.findings[index].atStake = nil
    }
    outcome.findings.sort { Identifier($0.identity) < Identifier($1.identity) }
    return outcome
  }

  /// The facts of every valid order, claims matched over all of them, and which transactions are no orphans.
  func matchedFacts() -> (orders: [Identifier: OrderFacts], claimed: Set<TransactionKey>) {
    let deliveriesByOrder = Dictionary(grouping: deliveries, by: \.orderId)
    let receiptsByOrder = Dictionary(grouping: receipts, by: \.orderId)
    let recordsByKey = Dictionary(knownTransactions().map { ($0.key, $0) }) { first, _ in first }
    let recordsById = Dictionary(grouping: recordsByKey.values, by: \.transactionId)
    let references = WorldReferences(self, recordsByKey.values)
    var facts: [Identifier: OrderFacts] = [:]
    for case .valid(let order) in orders {
      let own = receiptsByOrder[order.orderId] ?? []
      let keys = Set(own.filter { $0.isGenuine }.flatMap { contained[$0.receiptId] ?? [] })
      facts[order.orderId] = OrderFacts(
        order: order, deliveries: deliveriesByOrder[order.orderId] ?? [], receipts: own,
        lookup: lookups[order.orderId], proven: keys.compactMap { recordsByKey[$0] },
        known: (order.transactionId.flatMap { recordsById[$0] } ?? [])
          + references.linkedWithoutReceipt(to: order))
      let (awaiting, answered) = (
        own.filter { $0.isGenuine && $0.state.awaitsDetails }, own.filter { !$0.state.awaitsDetails }
      )
      facts[order.orderId]?.awaited = Set(awaiting.flatMap { contained[$0.receiptId] ?? [] }).subtracting(
        answered.filter { $0.isGenuine }.flatMap { contained[$0.receiptId] ?? [] })
    }
    let unansweredOrders = unansweredOrders()
    for (orderId, one) in facts {
      let person = rules.people.person(one.order.userId)
      facts[orderId]?.unansweredOrders = unansweredOrders[person] ?? []
    }
    let matching = Matching(
      of: facts.values.map { $0.claimant(rules) },
      awaitedRefunds: facts.values.reduce(into: []) { $0.formUnion($1.awaitedRefunds(rules)) }, rules: rules)
    let usersByToken = self.usersByToken()
    let neighbors = neighbors(facts, matching)
    for (orderId, claims) in matching.claims {
      facts[orderId]?.claims = claims
      guard let one = facts[orderId] else { continue }
      if let neighbors = one.ownedSubscription.flatMap({ neighbors[$0]?[orderId] }) { facts[orderId]?.take(neighbors) }
      guard one.needsAccountTokenUser, case .stated(.some(let token)) = one.comparable?.appAccountToken else {
        continue
      }
      let users = usersByToken[token.lowercased()] ?? []
      facts[orderId]?.accountTokenUser =
        users.filter { rules.people.isSame($0, one.order.userId) }.min() ?? users.min()
    }
    return (facts, matching.claimed.union(recordsByKey.values.filter { matching.isClaimed($0) }.map(\.key)))
  }

  /// By original transaction ID and order, the other owners of the subscription's periods.
  private func neighbors(
    _ facts: [Identifier: OrderFacts], _ matching: Matching
  ) -> [Identifier: [Identifier: SubscriptionNeighbors]] {
    let periods = matching.claims.flatMap { orderId, claims in
      claims.owned.compactMap { period in
        facts[orderId].flatMap { OwnedPeriod(period, ownedBy: $0.order, isFinal: claims.isFinal) }
      }
    }
    return Dictionary(grouping: periods, by: \.subscription)
      .mapValues { SubscriptionOwners($0, people: rules.people).neighbors }
  }

  /// The orders as claimants, in the order of their rows.
  var claimants: [Claimant] {
    let facts = matchedFacts().orders
    return orders.compactMap { facts[$0.orderId]?.claimant(rules) }
  }

  /// Orders by person, with a receipt whose missing answer may reveal a payment.
  private func unansweredOrders() -> [Identifier: [UnansweredOrder]] {
    let valid = Dictionary(
      orders.compactMap { row -> (Identifier, Order)? in
        if case .valid(let order) = row { (order.orderId, order) } else { nil }
      }
    ) { first, _ in first }
    var orders: [Identifier: [UnansweredOrder]] = [:]
    for receipt in receipts where receipt.defect == nil && receipt.state.mayMovePayment(rules) {
      guard let order = receipt.orderId.flatMap({ valid[$0] }) else { continue }
      for person in Set([receipt.userId, order.userId].compactMap { $0.map(rules.people.person) }) {
        orders[person, default: []].append(UnansweredOrder(order, isUnread: receipt.state.isUnread))
      }
    }
    return orders
  }

  /// The records, each with the newest expiry among all periods of its subscription.
  private func knownTransactions() -> [TransactionRecord] {
    func subscription(_ record: TransactionRecord) -> TransactionKey {
      TransactionKey(
        environment: record.environment, transactionId: record.originalTransactionId ?? record.transactionId)
    }
    var newest: [TransactionKey: Instant] = [:]
    for record in transactions {
      guard let expiry = record.subscriptionExpiresDate ?? record.expiresDate else { continue }
      newest[subscription(record)] = max(newest[subscription(record)] ?? expiry, expiry)
    }
    return TransactionRecord.foldingPurchases(
      transactions.map { record in
        var record = record
        record.subscriptionExpiresDate = newest[subscription(record)]
        return record
      })
  }

  /// The users for whom the shop has an account token on file, by the token in lower case.
  private func usersByToken() -> [String: Set<Identifier>] {
    var users: [String: Set<Identifier>] = [:]
    for case .valid(let order) in orders {
      if let token = order.appAccountToken { users[token.lowercased(), default: []].insert(order.userId) }
    }
    return users
  }

  /// Transactions that are known from unanswered receipts only, so that Apple has stated no details.
  func awaitingDetails() -> Set<TransactionKey> {
    var awaiting: Set<TransactionKey> = []
    var answered: Set<TransactionKey> = []
    for receipt in receipts where receipt.defect == nil {
      let keys = contained[receipt.receiptId] ?? []
      if receipt.state.awaitsDetails { awaiting.formUnion(keys) } else { answered.formUnion(keys) }
    }
    let byId = Dictionary(grouping: transactions, by: \.transactionId)
    for case .valid(let order) in orders where lookups[order.orderId]?.outcome == .verified {
      answered.formUnion(order.transactionId.flatMap { byId[$0] }?.map(\.key) ?? [])
    }
    return awaiting.subtracting(answered)
  }

  private func findingsWithoutOrder(claimed: Set<TransactionKey>, served: Set<PurchaseKey>) -> [Finding] {
    let valid = Set(orders.compactMap { row in if case .valid(let order) = row { order.orderId } else { nil } })
    let known = Set(orders.map(\.orderId))
    var found: [Finding] = []
    // Senders are indexed by transaction, because a large world has many of both.
    var senders: [TransactionKey: Receipt] = [:]
    for receipt in receipts where receipt.defect == nil {
      for key in contained[receipt.receiptId] ?? [] where senders[key].map({ receipt.receiptId < $0.receiptId }) ?? true
      {
        senders[key] = receipt
      }
    }
    let listed = awaitingDetails()
    for transaction in knownTransactions() where !claimed.contains(transaction.key) {
      if listed.contains(transaction.key), !transaction.isRevocationKnown { continue }
      if transaction.isReversed, !(transaction.subscriptionKey.map(served.contains) ?? false) { continue }
      let sender = senders[transaction.key]
      let finding = OrphanFindings.finding(
        on: transaction, userId: sender?.userId, receiptId: sender?.receiptId, rules: rules)
      if let finding { found.append(finding) }
    }
    for delivery in deliveries where delivery.orderId.map({ !valid.contains($0) }) ?? true {
      // A delivery of an order row that breaks the contract is no orphan. Its own defect is still reported.
      let isOrphan = delivery.orderId.map { !known.contains($0) } ?? true
      if isOrphan || delivery.defect != nil, let finding = OrphanFindings.finding(on: delivery, rules: rules) {
        found.append(finding)
      }
    }
    for receipt in receipts where receipt.orderId.map({ !valid.contains($0) }) ?? true {
      let isOrphan = receipt.orderId.map { !known.contains($0) } ?? true
      if isOrphan || receipt.defect != nil { found += OrphanFindings.findings(on: receipt, rules: rules) }
    }
    return found
  }
}

/// The links of orders to transactions without a receipt, by index, because worlds can be large.
private struct WorldReferences {
  private let rules: Rules
  private var recordsByToken: [String: [TransactionRecord]] = [:]
  /// Subscription periods, by original transaction ID and by the ID of the period.
  private var periodsById: [Identifier: [TransactionRecord]] = [:]
  private var statingOrders: [Identifier: [Order]] = [:]
  /// Orders for which a receipt with the transaction was sent.
  private var sendingOrders: [TransactionKey: [Order]] = [:]
  private var proofs: [Identifier: Set<TransactionKey>] = [:]
  /// Orders that a receipt with a purchase was sent for.
  private var ordersWithPurchases: Set<Identifier> = []

  init(_ world: World, _ records: some Sequence<TransactionRecord>) {
    rules = world.rules
    for record in records {
      if case .stated(.some(let token)) = record.appAccountToken {
        recordsByToken[AccountToken.spelling(token), default: []].append(record)
      }
      guard record.expiresDate != nil else { continue }
      for id in Set([record.originalTransactionId, record.webOrderLineItemId].compactMap(\.self)) {
        periodsById[id, default: []].append(record)
      }
    }
    var orders: [Identifier: Order] = [:]
    for case .valid(let order) in world.orders {
      orders[order.orderId] = order
      if let id = order.transactionId { statingOrders[id, default: []].append(order) }
    }
    for receipt in world.receipts {
      let contained = world.contained[receipt.receiptId] ?? []
      if let orderId = receipt.orderId, !contained.isEmpty { ordersWithPurchases.insert(orderId) }
      guard receipt.defect == nil, let order = receipt.orderId.flatMap({ orders[$0] }) else { continue }
      for key in contained { sendingOrders[key, default: []].append(order) }
      if receipt.state.kind != .app, receipt.isGenuine { proofs[order.orderId, default: []].formUnion(contained) }
    }
  }

  /// Transactions that an order's account token, or the subscription that it states, links to it.
  func linkedWithoutReceipt(to order: Order) -> [TransactionRecord] {
    let ofToken = order.appAccountToken.flatMap { recordsByToken[AccountToken.spelling($0)] } ?? []
    let ofSubscription = order.transactionId.flatMap { periodsById[$0] } ?? []
    var seen: Set<TransactionKey> = []
    return (ofToken + ofSubscription).filter { record in
      guard seen.insert(record.key).inserted, let sold = record.saleDate, !record.isContradictory,
        !record.isFamilyShared, record.isPurchase(of: order.productId),
        (sold - order.createdAt).magnitude <= rules.matchWindow
      else { return false }
      // An order with purchases leaves the transaction to an order of the account that refers to it.
      if case .stated(.some(let token)) = record.appAccountToken, !record.isLaterPeriod, hasToken(order, token),
        !ordersWithPurchases.contains(order.orderId)
          || !referring(to: record.keys).contains(where: { hasToken($0, token) })
      {
        return true
      }
      guard record.expiresDate != nil, let id = order.transactionId,
        !record.keys.contains(where: { $0.transactionId == id })
      else { return false }
      return record.isReferred(by: id) && !isProvenInWindow(record)
    }
  }

  private func hasToken(_ order: Order, _ token: String) -> Bool {
    order.appAccountToken.map { AccountToken.isSame($0, token) == true } ?? false
  }

  /// True if the only order that refers to the transaction has a verified proof of it, and was created near it.
  private func isProvenInWindow(_ record: TransactionRecord) -> Bool {
    let orders = referring(to: [record.key])
    guard Set(orders.map(\.orderId)).count == 1, let order = orders.first, let sold = record.saleDate,
      (sold - order.createdAt).magnitude <= rules.matchWindow
    else { return false }
    if case .stated(.some(let token)) = record.appAccountToken, !hasToken(order, token) { return false }
    return proofs[order.orderId]?.contains(record.key) ?? false
  }

  /// Orders that state one of the transactions, or that a receipt with one was sent for.
  private func referring(to keys: [TransactionKey]) -> [Order] {
    keys.flatMap { (statingOrders[$0.transactionId] ?? []) + (sendingOrders[$0] ?? []) }
  }
}

extension Receipt {
  /// True if the receipt's row is valid and its proof is neither rejected nor unproven.
  fileprivate var isGenuine: Bool { defect == nil && state.isProof }
}
