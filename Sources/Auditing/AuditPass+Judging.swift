import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

extension AuditPass {
  /// Judges every order, in the byte order of their ids.
  ///
  /// - Parameters:
  ///   - byOrder: what the transactions' side has told.
  ///   - matched: what matching has come to for those that contest something.
  ///   - open: of whom a receipt is not answered yet.
  func judge(
    _ groups: SpillFile, _ byOrder: SpillSorter, _ matched: SpillSorter, _ connections: borrowing AuditConnections,
    open: OpenPeople
  ) throws {
    let asOf = plan.asOf
    var deliveries = try OrderedStream(
      connections.sales.copyOut(sales.deliveries)
    ) { try sales.delivery($0, asOf: asOf) }
    var contestants = try SpillCursor(matched) { record in
      var reader = RecordReader(record.content)
      return try Matched(from: &reader)
    }
    try byOrder.restart()
    var reading = try GroupReading(groups, byOrder)
    var repeated = RepeatedPurchases(rules: plan.rules)
    var ofOrder: [Delivery] = []
    var count = 0
    while let group = try reading.next() {
      if group.isRepeated {
        try report(repeated: group.row)
        continue
      }
      let orderId = group.row.orderId
      try passDeliveries(before: orderId, &deliveries)
      ofOrder.removeAll(keepingCapacity: true)
      while deliveries.nextKey == orderId, let delivery = try deliveries.next() { ofOrder.append(delivery) }
      let matched = contestants.head?.orderId == orderId ? try contestants.next() : nil
      try judge(group, AuditPass.markingRepeated(ofOrder), reading.transactions, matched, &repeated, open: open)
      count += 1
      if count % 4_096 == 0 {
        progress.advance(by: 4_096)
        try endIfStopped()
      }
    }
    try passDeliveries(before: nil, &deliveries)
    for finding in repeated.findings() where finding.occurredAt.map({ $0 >= plan.rules.lookbackStart }) ?? true {
      try collector.add(finding, subjects: [], plan: plan)
    }
    // What was matched and never met its order would have been judged as if nobody contested it.
    if let left = contestants.head { throw GroupReading.OutOfStep(orderId: left.orderId) }
  }

  private func judge(
    _ group: OrderGroup, _ deliveries: [Delivery], _ transactions: OrderTransactions, _ matched: Matched?,
    _ repeated: inout RepeatedPurchases, open: OpenPeople
  ) throws {
    let isListed = plan.lists(group.row)
    switch group.row {
    case .bad(let bad):
      if plan.judges(bad.createdAt), isListed { try collector.add(Judgement(reporting: bad), subjects: [], plan: plan) }
      guard isListed else { return }
      for delivery in deliveries where delivery.defect != nil {
        try collector.add(Unowned.finding(on: delivery), subjects: [], plan: plan)
      }
      for proof in group.proofs where proof.receipt.defect != nil {
        for finding in Unowned.findings(on: proof.receipt) { try collector.add(finding, subjects: [], plan: plan) }
      }
    case .valid(let order):
      let isJudged = plan.judges(order.createdAt)
      // An older order matters for what happened lately: a refund in the period, a payment nobody claims.
      if !isJudged, transactions.claimable.isEmpty, matched == nil { return }
      if isListed, let lookup = group.lookup, plan.isOutstanding(lookup.state, of: order) {
        collector.countOutstanding(lookup.state)
      }
      let facts = OrderFacts.assembled(
        order, group, deliveries, transactions, matched, rules: plan.rules, open: open)
      let judgement = Judgement(judging: facts, rules: plan.rules)
      repeated.take(judgement)
      // Only what a person must act on at once is explained: it takes judging the order once more.
      let isExplained = isJudged && isListed && judgement.findings.contains { $0.severity == .critical }
      let explanation = isExplained ? Judgement.explained(facts, rules: plan.rules).reasoning.sentences : []
      try report(
        judgement, explanation, of: order, group, transactions, matched, facts.claims,
        isListed: isListed, isJudged: isJudged)
    }
  }

  private func report(
    _ judgement: Judgement, _ explanation: [String], of order: Order, _ group: OrderGroup,
    _ transactions: OrderTransactions,
    _ matched: Matched?, _ claims: OrderClaims, isListed: Bool, isJudged: Bool
  ) throws {
    for record in claims.owned { try collector.note(owner: order.orderId, of: record.key) }
    try collector.addRefunds(of: claims.owned, order: order, judgement: judgement, plan: plan, isListed: isListed)
    if isJudged, isListed {
      var subjects = group.subjects
      // A payment that no proof of its own brought rests on the proof that did.
      for record in claims.owned + claims.lost.map(\.transaction) where !group.brings(record.key) {
        if let other = transactions.newestProofs[record.key] ?? matched?.newestProofs[record.key] {
          subjects.append(other)
        }
      }
      try collector.add(judgement, subjects: subjects, explanation: explanation, plan: plan)
    }
    for record in transactions.claimable {
      if !claims.areAbout(record.key) {
        try addUnclaimed(record, userId: order.userId, newestProof: transactions.newestProofs[record.key])
      }
      if !claims.owned.contains(where: { $0.key == record.key }) {
        try collector.addRefund(of: record, order: nil, judgement: nil, plan: plan)
      }
    }
  }

  private func report(repeated row: OrderRow) throws {
    let bad: BadOrder
    switch row {
    case .bad(let found): bad = found
    case .valid(let order):
      bad = BadOrder(
        orderId: order.orderId, userId: order.userId, bundleId: order.bundleId, productId: order.productId,
        quantity: order.quantity, amountText: order.amount.decimalText, currencyText: order.amount.currency.code,
        statusText: order.status.rawValue, transactionId: order.transactionId, createdAt: order.createdAt,
        defect: "order_id is not unique")
    }
    if plan.judges(bad.createdAt), plan.lists(row) {
      try collector.add(Judgement(reporting: bad), subjects: [], plan: plan)
    }
  }

  /// Handles deliveries whose order does not exist, or that name none.
  private func passDeliveries(before orderId: Identifier?, _ deliveries: inout OrderedStream<Delivery>) throws {
    while !deliveries.isAtEnd {
      if let orderId {
        // What names no order comes after everything that does.
        guard let own = deliveries.nextKey, own < orderId else { return }
      }
      guard let delivery = try deliveries.next() else { return }
      if delivery.deliveredAt >= plan.rules.lookbackStart {
        try collector.add(Unowned.finding(on: delivery), subjects: [], plan: plan)
      }
    }
  }

  /// Deliveries of one order; a second row of one delivery counts for nothing and is said to be bad.
  static func markingRepeated(_ deliveries: [Delivery]) -> [Delivery] {
    guard deliveries.count > 1 else { return deliveries }
    var seen: Set<Identifier> = []
    return deliveries.sorted { ($0.deliveryId, $0.deliveredAt, $0.userId) < ($1.deliveryId, $1.deliveredAt, $1.userId) }
      .map { delivery in
        if seen.insert(delivery.deliveryId).inserted { return delivery }
        var repeated = delivery
        repeated.defect = repeated.defect ?? "delivery_id is not unique"
        return repeated
      }
  }
}

extension OrderFacts {
  /// Puts together what an order is judged by: in the audit of all orders, and where one of them is explained.
  ///
  /// - Parameters:
  ///   - transactions: what the transactions' side has told it.
  ///   - matched: what matching has come to; nil where nobody contests its claims.
  ///   - open: of whom a receipt is not answered yet.
  static func assembled(
    _ order: Order, _ group: OrderGroup, _ deliveries: [Delivery], _ transactions: OrderTransactions,
    _ matched: Matched?, rules: Rules, open: OpenPeople
  ) -> OrderFacts {
    var facts = OrderFacts(order, group, transactions.claimable, deliveries: deliveries)
    let claims = matched?.claims ?? Matching.uncontested(facts.claimant, rules: rules)
    let others = (matched?.contested ?? []) + transactions.others
    if !others.isEmpty {
      facts = OrderFacts(order, group, transactions.claimable + others, deliveries: deliveries)
    }
    facts.claims = claims
    facts.isUserOpen = open.contains(order.userId)
    if facts.asksForTokenHolder, case .says(.some(let token)) = facts.comparable?.appAccountToken {
      facts.accountTokenUser = transactions.tokenUsers[AccountToken.spelling(token)]
    }
    return facts
  }
}
