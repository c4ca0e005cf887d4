import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

extension AuditPass {
  /// Judges every order, in the byte order of order IDs.
  func judge(
    _ orders: consuming GroupReading, _ matched: SpillSorter, repeated: RepeatedDeliveries,
    _ boughtTwice: [Identifier: Finding], open: PeopleWithOpenReceipts
  ) throws {
    let asOf = plan.asOf
    var reading = orders
    var repeated = repeated
    var deliveries = try OrderedStream(rows.read(.deliveries)) { try sales.delivery($0, asOf: asOf) }
    var contestedOrders = try matchedOrders(matched)
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
      // Fast path: only the order's own rows affect its judgement.
      if deliveries.nextKey == orderId, boughtTwice == nil, !contestedOrders.isNext(orderId),
        let delivery = try sales.plainDelivery(deliveries.front), !repeated.contains(delivery.deliveryId),
        let sale = try settled(&reading, delivery, open: open)
      {
        first.clear()
        delivery.write(to: &first)
        assert(
          (try? sales.delivery(deliveries.front, asOf: asOf)).map { RecordBytes.bytes($0.write(to:)) } == first.bytes,
          "it is no plain delivery")
        try deliveries.skip()
        // Only after the next row is read is it certain that there is one delivery.
        if deliveries.nextKey != orderId {
          try report(sale, reading, first, open: open)
          continue
        }
        var waiting = RecordReader(first.content)
        ofOrder.append(try Delivery(from: &waiting))
      }
      while deliveries.nextKey == orderId, let delivery = try deliveries.next() { ofOrder.append(delivery) }
      let group = try reading.group()
      if group.isRepeated {
        try report(repeated: group.row)
        continue
      }
      ofOrder = repeated.mark(ofOrder)
      let matched = contestedOrders.isNext(orderId) ? try contestedOrders.next() : nil
      try judge(group, ofOrder, reading.transactions(), matched, boughtTwice, open: open)
    }
    try passDeliveries(before: nil, &deliveries, &repeated)
    // A result left without its order means that the order was judged as if its claims were uncontested.
    if let left = contestedOrders.head { throw GroupReading.RowOrderMismatch(orderId: left.orderId) }
  }

  private func matchedOrders(_ matched: SpillSorter) throws -> SpillCursor<Matched> {
    try matched.restart()
    return try SpillCursor(matched) { record in
      var reader = RecordReader(record.content)
      return try Matched(from: &reader)
    }
  }

  /// The payments for non-consumable products. `periods` gets the owned periods of shared subscriptions, by original
  /// transaction ID.
  func comparedPurchases(
    _ orders: consuming GroupReading, _ matched: SpillSorter, open: PeopleWithOpenReceipts,
    into periods: Exchange.RecordSink
  ) throws -> RepeatedPurchases {
    var reading = orders
    var contestedOrders = try matchedOrders(matched)
    var repeated = RepeatedPurchases(rules: plan.rules)
    var record = RecordBytes()
    var count = 0
    while try reading.advance() {
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
      let matched = contestedOrders.isNext(reading.orderId) ? try contestedOrders.next() : nil
      let sharesSubscription = matched != nil || reading.sharesSubscription
      let isNonConsumable = try plan.rules.catalogue.flatMap { catalogue in
        try reading.productId().map { catalogue.isNonConsumable($0.id) }
      }
      guard sharesSubscription || isNonConsumable ?? false else { continue }
      let group = try reading.group()
      guard case .valid(let order) = group.row, !group.isRepeated else { continue }
      let facts = OrderFacts.assembled(
        order, group, [], try reading.transactions(), matched, rules: plan.rules, open: open)
      if isNonConsumable ?? false { repeated.take(Judgement(judging: facts, rules: plan.rules)) }
      for period in facts.claims.owned.compactMap({ OwnedPeriod($0, ownedBy: order, isFinal: facts.claims.isFinal) }) {
        record.clear()
        period.write(to: &record)
        try periods.add(period.subscription, record)
      }
    }
    return repeated
  }

  private func judge(
    _ group: OrderGroup, _ deliveries: [Delivery], _ transactions: OrderTransactions, _ matched: Matched?,
    _ boughtTwice: Finding?, open: PeopleWithOpenReceipts
  ) throws {
    let isListed = plan.lists(group.row)
    switch group.row {
    case .bad(let bad):
      if plan.judges(bad.createdAt), isListed { try collector.add(Judgement(reporting: bad), subjects: [], plan: plan) }
      guard isListed else { return }
      for finding in group.findings(besideBadRow: deliveries, rules: plan.rules) {
        try collector.add(finding, subjects: [], plan: plan)
      }
    case .valid(let order):
      let isJudged = plan.judges(order.createdAt)
      // An older order matters only for a refund in the period or an unclaimed payment.
      if !isJudged, transactions.claimable.isEmpty, matched == nil { return }
      if isListed, let lookup = group.lookup, plan.isOutstanding(lookup.state, of: order) {
        collector.countOutstanding(lookup.state, asOf: plan.asOf)
      }
      for proof in group.proofs where proof.receipt.defect == nil && proof.receipt.state.isOfUnconfiguredApp {
        // The order has stated a configured app since its receipt was left out.
        if isListed { collector.countOutstanding(proof.receipt.state, asOf: plan.asOf) }
        collector.note(unknownFrom: proof.receipt.receivedAt)
      }
      var facts = OrderFacts.assembled(
        order, group, deliveries, transactions, matched, rules: plan.rules, open: open)
      // Decided before judging, so that the refund list and the judgement agree about a doubtful refund.
      facts.decideDoubtfulRefunds()
      var judgement = Judgement(judging: facts, rules: plan.rules)
      if let boughtTwice { judgement.add(boughtTwice) }
      if isListed, isJudged, judgement.verdict?.reason == .neverChecked, facts.isLookupImpossible(rules: plan.rules) {
        collector.countImpossibleLookup(ofApp: plan.rules.bundleId(of: order))
      }
      if isListed, judgement.verdict?.reason == .neverChecked, facts.isAwaitingLookup,
        plan.isOutstanding(.neverChecked, of: order)
      {
        collector.countOutstanding(.neverChecked, asOf: plan.asOf)
        collector.note(unknownFrom: order.createdAt)
      }
      // Explained for critical findings only, because it judges the order once more.
      let isExplained =
        collector.isExplaining && isJudged && isListed && judgement.findings.contains { $0.severity == .critical }
      let explanation = isExplained ? Judgement.explained(facts, rules: plan.rules).reasoning.sentences : []
      if isListed { try collector.refunds.add(of: facts, judgement: judgement, plan: plan) }
      try report(
        judgement, explanation, of: order, group, transactions, matched, facts.claims,
        isListed: isListed, isJudged: isJudged)
    }
  }

  private func settled(
    _ reading: inout GroupReading, _ delivery: BorrowedDelivery, open: PeopleWithOpenReceipts
  ) throws -> SettledSale? {
    guard try reading.readPlain(),
      sharedPurchases.isEmpty
        || reading.payment.subscriptionKey.map({ !sharedPurchases.contains($0.fingerprint) }) ?? true,
      open.isEmpty || !open.contains(reading.order.userId.id)
    else { return nil }
    return SettledSale(
      reading.order, proof: reading.proof.receipt, payment: reading.payment, delivery: delivery, rules: plan.rules)
  }

  private func report(
    _ sale: SettledSale, _ reading: borrowing GroupReading, _ delivery: borrowing RecordBytes,
    open: PeopleWithOpenReceipts
  ) throws {
    assert(
      (try? agreesWithRules(sale, reading, delivery, open: open)) == true, "the rules say something else of an order")
    if collector.claims != nil {
      for id in [sale.transactionId] + reading.payment.otherIds {
        try collector.note(
          owner: sale.order.orderId.id, of: TransactionKey(environment: .production, transactionId: id.id))
      }
    }
    if plan.judges(sale.order.createdAt), plan.lists(sale.order) { try collector.add(sale, plan: plan) }
  }

  private func agreesWithRules(
    _ sale: SettledSale, _ reading: borrowing GroupReading, _ delivery: borrowing RecordBytes,
    open: PeopleWithOpenReceipts
  ) throws -> Bool {
    var waiting = RecordReader(delivery.content)
    let (group, transactions) = (try reading.group(), try reading.transactions())
    guard case .valid(let order) = group.row else { return false }
    let facts = OrderFacts.assembled(
      order, group, [try Delivery(from: &waiting)], transactions, nil, rules: plan.rules, open: open)
    let judgement = Judgement(judging: facts, rules: plan.rules)
    return sale.isConfirmed(by: judgement)
      && RecordBytes.bytes(sale.order.write(to:)) == RecordBytes.bytes(order.write(to:))
      && RecordBytes.bytes(sale.writeJudgedOrder) == RecordBytes.bytes { JudgedOrder(judgement)?.write(to: &$0) }
      && facts.claims.owned.first == transactions.claimable.first
      && facts.claims.owned.flatMap(\.keys) == transactions.claimable.map(\.key).sorted()
      && facts.claims.lost.isEmpty
  }

  private func report(
    _ judgement: Judgement, _ explanation: [String], of order: Order, _ group: OrderGroup,
    _ transactions: OrderTransactions,
    _ matched: Matched?, _ claims: OrderClaims, isListed: Bool, isJudged: Bool
  ) throws {
    for key in claims.owned.flatMap(\.keys) { try collector.note(owner: order.orderId, of: key) }
    if judgement.deliveredAt != nil {
      for key in claims.owned.compactMap(\.subscriptionKey) where sharedPurchases.contains(key.fingerprint) {
        collector.note(served: key.transactionId)
      }
    }
    let newestProofs = transactions.newestProofs
    if isJudged, isListed {
      var subjects = group.subjects
      // A payment that is in none of the order's proofs rests on the newest proof that contains it.
      for record in claims.owned + claims.lost.map(\.transaction) where !group.containsTransaction(record.key) {
        if let other = newestProofs[record.key] ?? matched?.newestProofs[record.key] {
          subjects.append(other)
        }
      }
      try collector.add(judgement, subjects: subjects, explanation: explanation, plan: plan)
    } else if isJudged {
      for finding in judgement.findings { try collector.add(unlisted: finding) }
    }
    for (record, userId) in transactions.unshared(by: group, rules: plan.rules) {
      if !claims.referTo(record, stating: order.transactionId) {
        try addUnclaimed(record, userId: userId, newestProof: newestProofs[record.key])
      }
      if !claims.owned.contains(where: { $0.purchaseKey == record.purchaseKey }) {
        try collector.refunds.add(of: record, userId: userId, plan: plan)
      }
    }
  }

  private func report(repeated row: OrderRow) throws {
    let repeated = "order_id is not unique"
    var bad: BadOrder
    switch row {
    case .bad(let found):
      bad = found
      bad.defect += "; \(repeated)"
    case .valid(let order):
      bad = BadOrder(
        orderId: order.orderId, userId: order.userId, bundleId: order.bundleId, productId: order.productId,
        quantity: Int64(order.quantity), amountText: order.amount.decimalText, currencyText: order.amount.currency.code,
        statusText: order.status.rawValue, transactionId: order.transactionId, createdAt: order.createdAt,
        defect: repeated)
    }
    if plan.judges(bad.createdAt), plan.lists(row) {
      try collector.add(Judgement(reporting: bad), subjects: [], plan: plan)
    }
  }

  /// Reports deliveries without an order, or of an order that does not exist.
  private func passDeliveries(
    before orderId: BorrowedText?, _ deliveries: inout OrderedStream<Delivery>, _ repeated: inout RepeatedDeliveries
  ) throws {
    var waiting: [Delivery] = []
    while !deliveries.isAtEnd {
      // Deliveries without an order come last.
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

  private func passRepeated(_ deliveries: inout [Delivery], _ repeated: inout RepeatedDeliveries) throws {
    for delivery in repeated.mark(deliveries) { try reportUnowned(delivery) }
    deliveries.removeAll()
  }

  private func reportUnowned(_ delivery: Delivery) throws {
    guard delivery.deliveredAt >= plan.rules.lookbackStart,
      let finding = OrphanFindings.finding(on: delivery, rules: plan.rules)
    else { return }
    try collector.add(finding, subjects: [], plan: plan)
  }
}

extension SpillCursor<Matched> {
  fileprivate func isNext(_ orderId: BorrowedText) -> Bool { head.map { orderId.isSame(as: $0.orderId) } ?? false }
}

extension Judgement {
  mutating func add(_ finding: Finding) {
    var finding = finding
    finding.deliveredAt = deliveredAt
    findings.append(finding)
    findings.sort { ($0.kind.index, $0.subject) < ($1.kind.index, $1.subject) }
  }
}

extension Reasoning {
  var sentences: [String] {
    steps.map { "\($0.rule.question) \($0.verdict == nil ? "No" : "Yes"): \($0.because)" } + [disposition]
  }
}
