import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

struct TransactionsReading {
  var contests: ConflictGroups
  var linkQuestions: LinkQuestions
}

extension AuditPass {
  /// Reads the transactions, merges them with `references` and finds the possible owners of each.
  /// - Parameter openTokens: as ``OrdersReading/openTokens``.
  func readTransactions(
    _ references: SpillSorter, openTokens: BloomFilter, into transactionsByOrder: Exchange.RecordSink
  ) throws -> TransactionsReading {
    let hides = sales.hides
    var transactions = try OrderedStream(rows.read(.transactions)) { try TransactionTable.record($0, hiding: hides) }
    let reading = TransactionsReading(
      contests: try ConflictGroups(directory: temporaryDirectory),
      linkQuestions: LinkQuestions(directory: temporaryDirectory))
    var ofOne = try ReferencesToTransaction(references)
    var writer = OrderTransactionWriter(transactionsByOrder)
    var count = 0
    while let id = transactions.nextKey {
      try ofOne.gather(id)
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
      if try writer.writePlain(
        transactions.front, ofOne, sharedPurchases, reading.contests, openTokens: openTokens,
        rules: plan.rules)
      {
        try transactions.skip()
        continue
      }
      guard let record = try transactions.next() else { break }
      let sharesPurchase = sharedPurchases.contains(record.purchaseKey.fingerprint)
      let candidates = Candidates(for: record, try ofOne.gathered(), rules: plan.rules)
      if transactions.nextKey.map({ !$0.isSame(as: record.transactionId) }) ?? true { ofOne.release() }
      let contested = ContestedTransaction(record, candidates, sharesPurchase: sharesPurchase)
      let links = candidates.awaitedLinks(record, openTokens: openTokens)
      if links.isEmpty {
        try hand(contested, to: &writer, reading.contests, reading.linkQuestions)
      } else {
        try reading.linkQuestions.postpone(contested, until: links)
      }
      try reading.linkQuestions.askForOrders(besidePeriod: record)
      for affectedOrder in candidates.affectedOrders {
        try writer.write(
          .transaction(record, isClaimable: false, newestProof: candidates.newestProof), for: affectedOrder)
      }
      for waiting in candidates.withOtherToken { try reading.linkQuestions.ask(waiting, about: record) }
    }
    return reading
  }

  private func hand(
    _ contested: ContestedTransaction, to writer: inout OrderTransactionWriter, _ contests: ConflictGroups,
    _ questions: LinkQuestions
  ) throws {
    try questions.noteClaimants(of: contested)
    if contested.sharesPurchase || !contested.linked.isEmpty || contested.claimants.count > 1 {
      try contests.add(contested)
    } else if let only = contested.claimants.first {
      try writer.write(
        .transaction(contested.record, isClaimable: true, newestProof: contested.newestProof), for: only)
    } else {
      try addUnowned(contested)
    }
  }

  /// Answers which orders are linked to transactions that they do not refer to, and which users have their account
  /// tokens.
  ///
  /// - Parameters:
  ///   - linkableOrders: orders by link.
  ///   - transactionsByOrder: gets the users, marks of shared subscriptions, and transactions that one order alone could
  ///     own.
  ///   - contests: gets all other transactions that orders could own.
  func answer(
    _ questions: LinkQuestions, among linkableOrders: SpillSorter, into transactionsByOrder: Exchange.RecordSink,
    _ contests: ConflictGroups
  ) throws {
    var transactions = OrderTransactionWriter(transactionsByOrder)
    var users = OrderTransactionWriter(transactionsByOrder)
    try questions.answer(among: linkableOrders, rules: plan.rules, contests) { contested in
      try hand(contested, to: &transactions, contests, questions)
    } reporting: { orderId, answer in
      try users.write(answer, for: orderId)
    }
  }

  func addUnclaimed(_ record: TransactionRecord, userId: Identifier?, newestProof: CheckSubject?) throws {
    if let finding = OrphanFindings.finding(on: record, userId: userId, receiptId: nil, rules: plan.rules) {
      if record.isReversed, let subscription = record.subscriptionKey {
        try collector.add(finding, ifServed: subscription.transactionId, plan: plan)
      } else {
        try collector.add(finding, subjects: newestProof.map { [$0] } ?? [], plan: plan)
      }
    }
  }
}

/// Reads the references of one transaction ID after the other. A single reference, the usual case, stays encoded.
private struct ReferencesToTransaction: ~Copyable {
  private let references: SpillSorter
  private var head: SpillSorter.Record?
  private var id: Identifier?
  private var first = RecordBytes()
  private var count = 0
  private var gathering = Candidates.ReferenceCollector()
  private var hasCollected = false

  init(_ references: SpillSorter) throws {
    self.references = references
    head = try references.next()
  }

  var only: UnsafeRawBufferPointer? { count == 1 ? first.content : nil }

  /// Gathers the references of an ID. IDs come in ascending order and may repeat.
  mutating func gather(_ id: BorrowedText) throws {
    if let known = self.id, id.isSame(as: known) { return }
    // Skipped IDs have no transaction.
    while let head, BorrowedText(head.key) < id { self.head = try references.next() }
    self.id = id.id
    count = 0
    hasCollected = false
    gathering.clear()
    while let head, BorrowedText(head.key) == id {
      if count == 0 {
        first.clear()
        first.append(head.content)
      } else {
        if count == 1 { try decode(first.content) }
        try decode(head.content)
      }
      count += 1
      self.head = try references.next()
    }
  }

  mutating func gathered() throws -> Candidates.ReferenceCollector {
    if !hasCollected {
      if count == 1 { try decode(first.content) }
      gathering.finish()
      hasCollected = true
    }
    return gathering
  }

  /// Releases large buffers when no further transaction has the ID.
  mutating func release() { gathering.clear() }

  private mutating func decode(_ content: UnsafeRawBufferPointer) throws {
    var reader = RecordReader(content)
    gathering.take(try TransactionReference(id ?? Identifier(), from: &reader))
  }
}

struct OrderTransactionWriter: ~Copyable {
  private let sink: Exchange.RecordSink
  private var record = RecordBytes()
  // Read in place, because it is large.
  private var transaction = BorrowedTransaction.blank

  init(_ sink: Exchange.RecordSink) { self.sink = sink }

  /// Writes the transaction without decoding it. False, with nothing written, unless exactly this order could own it.
  /// - Parameter contests: gets it instead if it belongs to a purchase with several transactions.
  fileprivate mutating func writePlain(
    _ row: borrowing CopyReader, _ references: borrowing ReferencesToTransaction, _ sharedPurchases: Set<UInt64>,
    _ contests: ConflictGroups, openTokens: BloomFilter, rules: Rules
  ) throws -> Bool {
    guard let only = references.only else { return false }
    var reader = RecordReader(only)
    let reference = try BorrowedTransactionReference(from: &reader)
    guard let order = reference.order, !order.isBad, try TransactionTable.readPlain(row, into: &transaction) else {
      return false
    }
    if !openTokens.isEmpty, case .stated(let token?) = transaction.appAccountToken,
      openTokens.mayContain(AccountToken.fingerprint(token))
    {
      return false
    }
    record.clear()
    guard transaction.writeOrderTransaction(of: order, reference, matchWindow: rules.matchWindow, to: &record) else {
      return false
    }
    assert((try? Self.whole(row, references, rules)) == record.bytes, "it is no plain transaction")
    let purchase = transaction.purchaseKey
    if !sharedPurchases.isEmpty, sharedPurchases.contains(purchase.fingerprint) {
      try contests.add(record.content, of: purchase, for: order)
    } else {
      try sink.add(order.orderId, record)
    }
    return true
  }

  /// The record that `Candidates` would yield, for the assertion in `writePlain`.
  private static func whole(
    _ row: borrowing CopyReader, _ references: borrowing ReferencesToTransaction, _ rules: Rules
  ) throws -> [UInt8] {
    let transaction = try TransactionTable.record(row) { _ in false }
    var gathering = Candidates.ReferenceCollector()
    if let only = references.only {
      var reader = RecordReader(only)
      gathering.take(try TransactionReference(transaction.transactionId, from: &reader))
    }
    let candidates = Candidates(for: transaction, gathering, rules: rules)
    guard candidates.claimants.count == 1, candidates.withOtherToken.isEmpty, candidates.affectedOrders.isEmpty else {
      return []
    }
    return RecordBytes.bytes(
      OrderTransaction.transaction(transaction, isClaimable: true, newestProof: candidates.newestProof).write(to:))
  }

  mutating func write(_ transaction: OrderTransaction, for orderId: Identifier) throws {
    record.clear()
    transaction.write(to: &record)
    try sink.add(orderId, record)
  }
}
