import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// One reading of everything, in one snapshot: orders, deliveries and transactions as ordered streams, merged by order,
/// judged one at a time and handed on. Memory grows with users and discrepancies, not with orders.
struct AuditPass {
  private let plan: AuditPlan
  private let sales: SalesRows
  private let collector: AuditCollector
  private let temporaryDirectory: String
  private let contestBatchSize: Int
  private let stop: StopSignal
  private let progress: WorkProgress

  init(
    plan: AuditPlan, sales: SalesRows, collector: AuditCollector, temporaryDirectory: String, contestBatchSize: Int,
    stop: StopSignal, progress: WorkProgress
  ) {
    self.stop = stop
    self.plan = plan
    self.sales = sales
    self.collector = collector
    self.temporaryDirectory = temporaryDirectory
    self.contestBatchSize = contestBatchSize
    self.progress = progress
  }

  /// Opens another connection in the same snapshot.
  typealias Connect = () throws -> BlockingConnection

  /// Reads and judges everything.
  ///
  /// - Parameters:
  ///   - coordinator: the connection that exported the snapshot.
  ///   - connect: further connections in that snapshot; the streams need four at once.
  func run(_ coordinator: borrowing BlockingConnection, connect: Connect) throws {
    let contests = try Contests(coordinator, sales, batchSize: contestBatchSize)
    let attention = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    let ofContestants = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    try readReceipts(coordinator, connect: connect, contests, attention: attention, ofContestants: ofContestants)
    let (contested, settled) = try settle(contests, receipts: ofContestants, coordinator)
    var contestants = try SpillCursor(settled) { try Contestant(from: $0) }
    let tokens = AccountTokens(sales)
    let orderConnection = try connect()
    let deliveryConnection = try connect()
    let transactionConnection = try connect()
    let lookupConnection = try connect()
    let asOf = plan.asOf
    var orders = try OrderedStream(
      orderConnection.copyOut(
        "SELECT \(SalesRows.orderColumns) FROM \(sales.schema).orders o ORDER BY o.order_id::text COLLATE \"C\"")
    ) { try SalesRows.order($0, asOf: asOf) }
    var deliveries = try OrderedStream(
      deliveryConnection.copyOut(
        """
        SELECT \(SalesRows.deliveryColumns) FROM \(sales.schema).deliveries d
        ORDER BY d.order_id::text COLLATE "C"
        """)
    ) { try SalesRows.delivery($0, asOf: asOf) }
    var transactions = try OrderedStream(
      transactionConnection.copyOut(
        "SELECT \(TransactionTable.columns) FROM night_audit.transactions t ORDER BY t.order_id")
    ) { try FiledTransaction($0) }
    var lookups = try OrderedStream(
      lookupConnection.copyOut(LookupRow.query())
    ) { try LookupRow($0) }
    var receipts = try SpillCursor(attention) { try Receipt(from: $0) }
    var group = Group()
    var last: Identifier?
    var count = 0

    while let row = try orders.next() {
      let orderId = row.orderId
      try passBefore(orderId, &deliveries, &transactions, &receipts, contested)
      if orderId == last {
        try report(repeated: row)
        continue
      }
      last = orderId
      group.begin()
      while deliveries.nextKey == orderId, let delivery = try deliveries.next() { group.deliveries.append(delivery) }
      while transactions.nextKey == orderId, let transaction = try transactions.next() {
        group.transactions.append(transaction.record)
        group.unclaimed.append(transaction.isUnclaimed)
      }
      while let receipt = receipts.head, receipt.orderId == orderId {
        group.receipts.append(receipt)
        try receipts.advance()
      }
      while let next = lookups.nextKey, next <= orderId, let lookup = try lookups.next() {
        if next == orderId { group.lookup = lookup.state }
      }
      let contestant = contestants.head?.orderId == orderId ? try contestants.next() : nil
      try judge(row, group, contestant, contested, tokens, coordinator)
      count += 1
      if count % 4_096 == 0 {
        progress.advance(by: 4_096)
        try endIfStopped()
      }
    }
    try passBefore(nil, &deliveries, &transactions, &receipts, contested)
    // What was settled and never met its order would have been judged as if nobody contested it.
    if let contestant = contestants.head { throw OutOfStep(orderId: contestant.orderId) }
  }

  /// The orders do not come in the order in which contestants wait for them.
  struct OutOfStep: Error, CustomStringConvertible {
    var orderId: Identifier
    var description: String { "order \(orderId) did not come in the byte order of its id; nothing is reported" }
  }

  private func endIfStopped() throws {
    if let reason = stop.stopped { throw StopSignal.Stopped(reason: reason) }
  }

  /// What is known under one order id.
  private struct Group {
    var deliveries: [Delivery] = []
    /// Those that are filed under it.
    var transactions: [TransactionRecord] = []
    /// Of each of them what the last run decided.
    var unclaimed: [Bool] = []
    var receipts: [Receipt] = []
    var lookup: ProofState?

    /// Starts on another order, in the same memory.
    mutating func begin() {
      deliveries.removeAll(keepingCapacity: true)
      transactions.removeAll(keepingCapacity: true)
      unclaimed.removeAll(keepingCapacity: true)
      receipts.removeAll(keepingCapacity: true)
      lookup = nil
    }
  }

  // MARK: - Receipts

  /// Writes the receipts' file and puts aside those that an order's judgement needs.
  ///
  /// - Parameters:
  ///   - attention: gets those that have something to say beside the transactions that they brought, by order.
  ///   - ofContestants: gets those of contesting orders, by batch.
  private func readReceipts(
    _ connection: borrowing BlockingConnection, connect: Connect, _ contests: Contests, attention: SpillSorter,
    ofContestants: SpillSorter
  ) throws {
    let onlyBundle = plan.rules.bundleIds.count == 1 ? plan.rules.bundleIds[0] : nil
    let condition = try plan.selection.receiptCondition(sales, onlyBundleId: onlyBundle)
    let other = try connect()
    var receipts = try ReceiptStream(connection, other, sales, condition: condition, asOf: plan.asOf)
    var record = RecordBytes()
    while let row = try receipts.next() {
      let receipt = row.receipt
      if row.isListed, receipt.receivedAt >= plan.judgedFrom {
        if receipt.defect == nil, plan.isOutstanding(receipt.state, from: receipt.receivedAt) {
          collector.countOutstanding(receipt.state)
        }
        try collector.list(receipt)
      }
      let batch = receipt.orderId.flatMap { contests.batch(of: $0) }
      if batch == nil, !row.needsAttention { continue }
      record.clear()
      receipt.write(to: &record)
      if row.needsAttention {
        // Receipts without an order come last, like NULLs in the other streams.
        try attention.add(key: receipt.orderId.map { [0] + $0.bytes } ?? [1], content: record.bytes)
      }
      if let batch { try ofContestants.add(key: AuditPass.key(ofBatch: batch), content: record.bytes) }
    }
  }

  // MARK: - Contests

  /// Settles what is contested, batch by batch.
  ///
  /// - Returns: what it was about, and the contestants by the bytes of their ids.
  private func settle(
    _ contests: Contests, receipts: SpillSorter, _ connection: borrowing BlockingConnection
  ) throws -> (ContestedKeys, SpillSorter) {
    var keys = ContestedKeys()
    let settled = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    var cursor = try SpillCursor(receipts) { (key: $0.key, receipt: try Receipt(from: $0)) }
    var record = RecordBytes()
    for (place, batch) in contests.batches.enumerated() {
      try endIfStopped()
      let key = AuditPass.key(ofBatch: place)
      var ofBatch: [Identifier: [Receipt]] = [:]
      while cursor.head?.key == key, let receipt = try cursor.next()?.receipt {
        if let orderId = receipt.orderId { ofBatch[orderId, default: []].append(receipt) }
      }
      let (contestants, claimed) = try Contests.settle(batch, receipts: ofBatch, connection, sales, rules: plan.rules)
      keys.take(batch, claimed: claimed)
      for contestant in contestants {
        record.clear()
        contestant.write(to: &record)
        try settled.add(key: contestant.orderId.bytes, content: record.bytes)
      }
    }
    return (keys, settled)
  }

  private static func key(ofBatch place: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt32(place).bigEndian) { [UInt8]($0) }
  }

  // MARK: - Orders

  private func judge(
    _ row: OrderRow, _ group: Group, _ contestant: Contestant?, _ contested: ContestedKeys,
    _ tokens: AccountTokens, _ coordinator: borrowing BlockingConnection
  ) throws {
    let isListed = plan.lists(row)
    switch row {
    case .bad(let bad):
      if plan.judges(bad.createdAt), isListed { try collector.add(Judgement(reporting: bad), plan: plan) }
      if isListed {
        for delivery in group.deliveries where delivery.defect != nil {
          try collector.add(Unowned.finding(on: delivery), plan: plan)
        }
        for receipt in group.receipts where receipt.defect != nil {
          for finding in Unowned.findings(on: receipt) { try collector.add(finding, plan: plan) }
        }
      }
      // Its transactions are nobody's now.
      for place in group.transactions.indices { try leftOver(place, of: group, userId: bad.userId, contested) }
    case .valid(let order):
      let isJudged = plan.judges(order.createdAt)
      // An older order matters for what happened lately: a refund in the period, a payment nobody claims.
      if !isJudged, group.transactions.isEmpty { return }
      if isListed, let lookup = group.lookup, plan.isOutstanding(lookup, of: order) {
        collector.countOutstanding(lookup)
      }
      var facts = try OrderFacts.assembled(
        order, deliveries: group.deliveries, transactions: group.transactions, receipts: group.receipts,
        lookup: group.lookup, contestant: contestant, rules: plan.rules
      ) {
        try Contests.receipts([order.orderId], coordinator, sales, asOf: plan.asOf)[order.orderId] ?? []
      }
      facts.accountTokenUser = try tokens.otherUser(for: facts, coordinator)
      let claims = facts.claims
      try report(
        Judgement(judging: facts, rules: plan.rules), of: order, claims, isListed: isListed, isJudged: isJudged)
      try file(group, claims, order, isContested: contestant != nil, contested)
    }
  }

  private func report(
    _ judgement: Judgement, of order: Order, _ claims: OrderClaims, isListed: Bool, isJudged: Bool
  ) throws {
    try collector.addRefunds(of: claims.owned, order: order, judgement: judgement, plan: plan, isListed: isListed)
    if isJudged, isListed { try collector.add(judgement, plan: plan) }
  }

  /// What of an order's transactions is whose, for the next night's streams and for payments without an owner.
  private func file(
    _ group: Group, _ claims: OrderClaims, _ order: Order, isContested: Bool, _ contested: ContestedKeys
  ) throws {
    for place in group.transactions.indices {
      let key = group.transactions[place].key
      // What is filed under an order that contests nothing is contested by nobody: it need not be looked for.
      if isContested ? contested.isClaimed(key, own: claims) : claims.areAbout(key) {
        if group.unclaimed[place] { try collector.refile(key, isUnclaimed: false) }
      } else {
        try leftOver(place, of: group, userId: order.userId, contested)
      }
    }
    guard isContested else { return }
    for place in claims.owned.indices where contested.contains(claims.owned[place].key) {
      try collector.refile(claims.owned[place].key, owner: order.orderId)
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
    if plan.judges(bad.createdAt), plan.lists(row) { try collector.add(Judgement(reporting: bad), plan: plan) }
  }

  // MARK: - What has no order

  /// Handles everything filed under ids before this one, for which there is no order.
  private func passBefore(
    _ orderId: Identifier?, _ deliveries: inout OrderedStream<Delivery>,
    _ transactions: inout OrderedStream<FiledTransaction>, _ receipts: inout SpillCursor<Receipt>,
    _ contested: ContestedKeys
  ) throws {
    func isBefore(_ other: Identifier?) -> Bool {
      guard let orderId else { return true }
      // What names no order comes after everything that does.
      guard let other else { return false }
      return other < orderId
    }
    while !deliveries.isAtEnd, isBefore(deliveries.nextKey), let delivery = try deliveries.next() {
      if delivery.deliveredAt >= plan.rules.lookbackStart {
        try collector.add(Unowned.finding(on: delivery), plan: plan)
      }
    }
    while !transactions.isAtEnd, isBefore(transactions.nextKey), let transaction = try transactions.next() {
      try leftOver(transaction.record, transaction.isUnclaimed, userId: nil, contested)
      if !contested.isClaimed(transaction.record.key) {
        try collector.addRefund(of: transaction.record, order: nil, judgement: nil, plan: plan)
      }
    }
    while let receipt = receipts.head, isBefore(receipt.orderId) {
      if receipt.receivedAt >= plan.rules.lookbackStart {
        for finding in Unowned.findings(on: receipt) { try collector.add(finding, plan: plan) }
      }
      try receipts.advance()
    }
  }

  private func leftOver(_ place: Int, of group: Group, userId: Identifier, _ contested: ContestedKeys) throws {
    try leftOver(group.transactions[place], group.unclaimed[place], userId: userId, contested)
  }

  /// A transaction that the order it is filed under does not claim.
  private func leftOver(
    _ record: TransactionRecord, _ isUnclaimed: Bool, userId: Identifier?, _ contested: ContestedKeys
  ) throws {
    if contested.isClaimed(record.key) {
      if isUnclaimed { try collector.refile(record.key, isUnclaimed: false) }
      return
    }
    if !isUnclaimed { try collector.refile(record.key, isUnclaimed: true) }
    if let finding = Unowned.finding(on: record, userId: userId, receiptId: nil, rules: plan.rules) {
      try collector.add(finding, plan: plan)
    }
  }
}
