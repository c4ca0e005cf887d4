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
  ///   - orders: with what the transactions' side has told them.
  ///   - matched: what matching has come to for those that contest something.
  ///   - repeated: delivery ids that several rows have, of whatever part.
  ///   - boughtTwice: by order, what stands on it because of others.
  ///   - open: of whom a receipt is not answered yet.
  ///   - again: orders that were read again, by their ids.
  func judge(
    _ orders: consuming GroupReading, _ matched: SpillSorter, repeated: RepeatedDeliveries,
    _ boughtTwice: [Identifier: Finding], open: OpenPeople, again: SpillSorter? = nil
  ) throws {
    let asOf = plan.asOf
    var reading = orders
    var repeated = repeated
    var deliveries = try OrderedStream(rows.read(.deliveries)) { try sales.delivery($0, asOf: asOf) }
    var contestants = try matchedOrders(matched)
    var secondLook = try again.map(SecondLook.Reading.init)
    var ofOrder: [Delivery] = []
    var first = RecordBytes()
    var count = 0
    while try reading.advance() {
      let orderId = reading.orderId
      try passDeliveries(before: orderId, &deliveries, &repeated)
      count += 1
      if count % 4_096 == 0 {
        progress.advance(by: 4_096)
        try endIfStopped()
      }
      ofOrder.removeAll(keepingCapacity: true)
      let boughtTwice = boughtTwice.isEmpty ? nil : boughtTwice[orderId.id]
      let isReadAgain = try secondLook?.isNext(orderId) ?? false
      // Where nothing but its own rows has a say in an order.
      if deliveries.nextKey == orderId, boughtTwice == nil, !isReadAgain, !contestants.isNext(orderId),
        let delivery = try sales.plainDelivery(deliveries.front), !repeated.contains(delivery.deliveryId),
        let sale = try settled(reading, delivery, open: open)
      {
        first.clear()
        delivery.write(to: &first)
        assert((try? sales.delivery(deliveries.front, asOf: asOf).record) == first.bytes, "it is no plain delivery")
        try deliveries.skip()
        // Only now it is known to be the only one.
        if deliveries.nextKey != orderId {
          try report(sale, reading, first, open: open)
          continue
        }
        var waiting = RecordReader(first.content)
        ofOrder.append(try Delivery(from: &waiting))
      }
      while deliveries.nextKey == orderId, let delivery = try deliveries.next() { ofOrder.append(delivery) }
      var group = try reading.group()
      if group.isRepeated {
        try report(repeated: group.row)
        continue
      }
      try secondLook?.replace(&group, &ofOrder)
      // Which of several rows of one id comes first must not depend on where they come from.
      if ofOrder.count > 1 { ofOrder.sort(by: Delivery.precedes) }
      if !repeated.isEmpty { for place in ofOrder.indices { ofOrder[place] = repeated.mark(ofOrder[place]) } }
      let matched = contestants.isNext(orderId) ? try contestants.next() : nil
      try judge(group, ofOrder, reading.transactions(), matched, boughtTwice, open: open)
    }
    try passDeliveries(before: nil, &deliveries, &repeated)
    if let figures = secondLook?.figures { collector.note(figures) }
    // What was matched and never met its order would have been judged as if nobody contested it.
    if let left = contestants.head { throw GroupReading.OutOfStep(orderId: left.orderId) }
  }

  private func matchedOrders(_ matched: SpillSorter) throws -> SpillCursor<Matched> {
    try matched.restart()
    return try SpillCursor(matched) { record in
      var reader = RecordReader(record.content)
      return try Matched(from: &reader)
    }
  }

  /// What was paid of products that are bought once for good.
  func purchasesForGood(
    _ orders: consuming GroupReading, _ matched: SpillSorter, open: OpenPeople
  ) throws -> RepeatedPurchases {
    var reading = orders
    var contestants = try matchedOrders(matched)
    var repeated = RepeatedPurchases(rules: plan.rules)
    while try reading.advance() {
      let matched = contestants.isNext(reading.orderId) ? try contestants.next() : nil
      guard let productId = try reading.productId(), plan.rules.catalogue?.isNonConsumable(productId.id) ?? false
      else { continue }
      let group = try reading.group()
      guard case .valid(let order) = group.row else { continue }
      let facts = OrderFacts.assembled(
        order, group, [], try reading.transactions(), matched, rules: plan.rules, open: open)
      repeated.take(Judgement(judging: facts, rules: plan.rules))
    }
    return repeated
  }

  private func judge(
    _ group: OrderGroup, _ deliveries: [Delivery], _ transactions: OrderTransactions, _ matched: Matched?,
    _ boughtTwice: Finding?, open: OpenPeople
  ) throws {
    let isListed = plan.lists(group.row)
    switch group.row {
    case .bad(let bad):
      if plan.judges(bad.createdAt), isListed { try collector.add(Judgement(reporting: bad), subjects: [], plan: plan) }
      guard isListed else { return }
      for delivery in deliveries where delivery.defect != nil {
        if let finding = Unowned.finding(on: delivery, rules: plan.rules) {
          try collector.add(finding, subjects: [], plan: plan)
        }
      }
      for proof in group.proofs where proof.receipt.defect != nil {
        for finding in Unowned.findings(on: proof.receipt, rules: plan.rules) {
          try collector.add(finding, subjects: [], plan: plan)
        }
      }
    case .valid(let order):
      let isJudged = plan.judges(order.createdAt)
      // An older order matters for what happened lately: a refund in the period, a payment nobody claims.
      if !isJudged, transactions.claimable.isEmpty, matched == nil { return }
      if isListed, let lookup = group.lookup, plan.isOutstanding(lookup.state, of: order) {
        collector.countOutstanding(lookup.state)
      }
      var facts = OrderFacts.assembled(
        order, group, deliveries, transactions, matched, rules: plan.rules, open: open)
      // Before it is judged, so that the list of refunds and the judgement say the same of a doubtful one.
      facts.settleRefunds()
      var judgement = Judgement(judging: facts, rules: plan.rules)
      if let boughtTwice { judgement.add(boughtTwice) }
      if isListed, isJudged, judgement.verdict?.reason == .neverChecked, facts.isBeyondAsking(rules: plan.rules) {
        collector.countBeyondAsking(ofApp: plan.rules.bundleId(of: order))
      }
      if isListed, judgement.verdict?.reason == .neverChecked, facts.isYetToBeLookedUp,
        plan.isOutstanding(.neverChecked, of: order)
      {
        collector.countOutstanding(.neverChecked)
        collector.note(unknownFrom: order.createdAt)
      }
      // Only what a person must act on at once is explained: it takes judging the order once more.
      let isExplained =
        collector.isExplaining && isJudged && isListed && judgement.findings.contains { $0.severity == .critical }
      let explanation = isExplained ? Judgement.explained(facts, rules: plan.rules).reasoning.sentences : []
      try collector.addRefunds(
        of: facts.claims.owned.filter { !facts.awaitsShare(of: $0) }, order: order, judgement: judgement, plan: plan,
        isListed: isListed)
      try report(
        judgement, explanation, of: order, group, transactions, matched, facts.claims,
        isListed: isListed, isJudged: isJudged)
    }
  }

  /// An order of the plain shape, told from its bytes, if it has no other delivery; nil where the rules have to be asked.
  private func settled(
    _ reading: borrowing GroupReading, _ delivery: PlainDelivery, open: OpenPeople
  ) throws -> SettledSale? {
    guard let plain = try reading.plain(), open.isEmpty || !open.contains(plain.order.userId.id) else { return nil }
    return SettledSale(plain.order, proof: plain.proof, payment: plain.payment, delivery: delivery, rules: plan.rules)
  }

  private func report(
    _ sale: SettledSale, _ reading: borrowing GroupReading, _ delivery: borrowing RecordBytes, open: OpenPeople
  ) throws {
    assert(
      (try? isSaidByRules(sale, reading, delivery, open: open)) == true, "the rules say something else of an order")
    if collector.claims != nil {
      try collector.note(
        owner: sale.order.orderId.id,
        of: TransactionKey(environment: .production, transactionId: sale.transactionId.id))
    }
    if plan.judges(sale.order.createdAt), plan.lists(sale.order) { try collector.add(sale, plan: plan) }
  }

  /// Whether the rules, asked one after the other, come to the same.
  private func isSaidByRules(
    _ sale: SettledSale, _ reading: borrowing GroupReading, _ delivery: borrowing RecordBytes, open: OpenPeople
  ) throws -> Bool {
    var waiting = RecordReader(delivery.content)
    let (group, transactions) = (try reading.group(), try reading.transactions())
    guard case .valid(let order) = group.row else { return false }
    let facts = OrderFacts.assembled(
      order, group, [try Delivery(from: &waiting)], transactions, nil, rules: plan.rules, open: open)
    let judgement = Judgement(judging: facts, rules: plan.rules)
    var short = RecordBytes()
    sale.writeJudgedOrder(to: &short)
    var whole = RecordBytes()
    JudgedOrder(judgement)?.write(to: &whole)
    return sale.isSaid(by: judgement) && short.bytes == whole.bytes
      && facts.claims.owned == transactions.claimable && facts.claims.lost.isEmpty
  }

  private func report(
    _ judgement: Judgement, _ explanation: [String], of order: Order, _ group: OrderGroup,
    _ transactions: OrderTransactions,
    _ matched: Matched?, _ claims: OrderClaims, isListed: Bool, isJudged: Bool
  ) throws {
    for record in claims.owned { try collector.note(owner: order.orderId, of: record.key) }
    let newestProofs = transactions.newestProofs
    if isJudged, isListed {
      var subjects = group.subjects
      // A payment that no proof of its own brought rests on the proof that did.
      for record in claims.owned + claims.lost.map(\.transaction) where !group.brings(record.key) {
        if let other = newestProofs[record.key] ?? matched?.newestProofs[record.key] {
          subjects.append(other)
        }
      }
      try collector.add(judgement, subjects: subjects, explanation: explanation, plan: plan)
    }
    let claimable: [(record: TransactionRecord, userId: Identifier?)] = transactions.claimable.compactMap {
      group.awaitsDetails(of: $0) ? nil : ($0, order.userId)
    }
    for (record, userId) in claimable + transactions.siblings {
      if !claims.areAbout(record) {
        try addUnclaimed(record, userId: userId, newestProof: newestProofs[record.key])
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
        quantity: Int64(order.quantity), amountText: order.amount.decimalText, currencyText: order.amount.currency.code,
        statusText: order.status.rawValue, transactionId: order.transactionId, createdAt: order.createdAt,
        defect: "order_id is not unique")
    }
    if plan.judges(bad.createdAt), plan.lists(row) {
      try collector.add(Judgement(reporting: bad), subjects: [], plan: plan)
    }
  }

  /// Handles deliveries whose order does not exist, or that name none.
  private func passDeliveries(
    before orderId: BorrowedText?, _ deliveries: inout OrderedStream<Delivery>, _ repeated: inout RepeatedDeliveries
  ) throws {
    // Of those whose ids others have which comes first must not depend on where they come from.
    var waiting: [Delivery] = []
    while !deliveries.isAtEnd {
      // What names no order comes after everything that does.
      if let orderId, deliveries.nextKey.map({ $0 >= orderId }) ?? true { break }
      guard let delivery = try deliveries.next() else { break }
      if waiting.last.map({ $0.orderId != delivery.orderId }) ?? false { try passRepeated(&waiting, &repeated) }
      if repeated.contains(delivery.deliveryId) {
        waiting.append(delivery)
      } else {
        try reportUnowned(delivery)
      }
    }
    try passRepeated(&waiting, &repeated)
  }

  /// Handles those of one order among them that have ids which several rows have.
  private func passRepeated(_ deliveries: inout [Delivery], _ repeated: inout RepeatedDeliveries) throws {
    for delivery in deliveries.sorted(by: Delivery.precedes) { try reportUnowned(repeated.mark(delivery)) }
    deliveries.removeAll()
  }

  private func reportUnowned(_ delivery: Delivery) throws {
    guard delivery.deliveredAt >= plan.rules.lookbackStart,
      let finding = Unowned.finding(on: delivery, rules: plan.rules)
    else { return }
    try collector.add(finding, subjects: [], plan: plan)
  }
}

extension SpillCursor<Matched> {
  fileprivate func isNext(_ orderId: BorrowedText) -> Bool { head.map { orderId.isSame(as: $0.orderId) } ?? false }
}

extension Delivery {
  fileprivate var record: [UInt8] {
    var record = RecordBytes()
    write(to: &record)
    return record.bytes
  }

  /// An order of their own for the deliveries of one order.
  fileprivate static func precedes(_ left: Delivery, _ right: Delivery) -> Bool {
    if left.deliveryId != right.deliveryId { return left.deliveryId < right.deliveryId }
    if left.deliveredAt != right.deliveredAt { return left.deliveredAt < right.deliveredAt }
    if left.revokedAt != right.revokedAt {
      return left.revokedAt.map { one in right.revokedAt.map { one < $0 } ?? true } ?? false
    }
    // As the server sorts what it is asked to: what is missing comes last.
    return (left.quantity ?? .max, left.userId, left.productId)
      < (right.quantity ?? .max, right.userId, right.productId)
  }
}

extension Judgement {
  /// Adds what stands on the order because of others.
  mutating func add(_ finding: Finding) {
    var finding = finding
    finding.deliveredAt = deliveredAt
    findings.append(finding)
    findings.sort { ($0.kind.index, $0.subject) < ($1.kind.index, $1.subject) }
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
    var facts = OrderFacts(order, group, claimable: transactions.claimable, others: [], deliveries: deliveries)
    let claims = matched?.claims ?? Matching.uncontested(facts.claimant(rules), rules: rules)
    let others = (matched?.contested ?? []) + transactions.others
    if !others.isEmpty {
      facts = OrderFacts(order, group, claimable: transactions.claimable, others: others, deliveries: deliveries)
    }
    facts.claims = claims
    if group.proofs.count > 1 {
      // What others claim, too, is not among what an owner is told that its receipts bring.
      for record in claims.owned {
        let bringers = group.soundProofs.filter {
          $0.receipt.state.outcome != .rejected && $0.brought.contains(record.key)
        }
        facts.bringers[record.key] = bringers.map(\.receipt.receiptId).min()
      }
    }
    facts.openOrders = open.orders(of: order.userId)
    if facts.asksForTokenHolder, case .says(.some(let token)) = facts.comparable?.appAccountToken {
      facts.accountTokenUser = transactions.tokenUsers[AccountToken.spelling(token)]
    }
    return facts
  }
}
