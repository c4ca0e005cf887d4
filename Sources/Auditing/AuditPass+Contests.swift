import AuditStore
import Reconciliation
import Run
import Streams

/// What matching has come to for an order that contests something.
struct Matched {
  var orderId: Identifier
  /// None of an order that owns a payment.
  var contested: [TransactionRecord]
  var claims: OrderClaims
  /// By contested transaction, the newest proof that brought it.
  var newestProofs: [TransactionKey: CheckSubject] = [:]
}

extension AuditPass {
  /// The orders that contest anything, by the batch that each is matched in.
  func contestants(of batches: Contests.Batches, among orders: consuming GroupReading) throws -> SpillSorter {
    let material = SpillSorter(directory: temporaryDirectory, budget: 8 << 20)
    var record = RecordBytes()
    var orders = orders
    while let group = try orders.next() {
      guard !group.isRepeated, let batch = batches.batch(of: group.row.orderId) else { continue }
      record.clear()
      record.put(true)
      Contestant(group: group, claimable: orders.transactions.claimable).write(to: &record)
      try material.add(key: AuditPass.key(ofBatch: batch), content: record.bytes)
    }
    return material
  }

  /// Matches what is contested, batch by batch.
  ///
  /// - Parameters:
  ///   - contestants: of all parts, by batch.
  ///   - matched: gets what that has come to, by order.
  func match(
    _ contests: Contests, _ batches: Contests.Batches, _ contestants: SpillSorter, open: OpenPeople,
    into matched: Exchange.Outlet
  ) throws {
    var record = RecordBytes()
    try contests.forEach { contested in
      guard let first = contested.claimants.first, let batch = batches.batch(of: first) else { return }
      record.clear()
      record.put(false)
      contested.write(to: &record)
      try contestants.add(key: AuditPass.key(ofBatch: batch), content: record.bytes)
    }
    var material = try SpillCursor(contestants) { record in (batch: record.key, content: record.content) }
    for batch in 0..<batches.count {
      try endIfStopped()
      let key = AuditPass.key(ofBatch: UInt32(batch))
      var contest = Contest()
      while let head = material.head, head.batch == key {
        var reader = RecordReader(head.content)
        if try reader.flag() {
          contest.add(try Contestant(from: &reader))
        } else {
          contest.add(try ContestedTransaction(from: &reader))
        }
        try material.advance()
      }
      let outcome = contest.matched(rules: plan.rules, open: open)
      for transaction in outcome.unclaimed {
        try addUnclaimed(transaction.record, userId: transaction.userId, newestProof: transaction.newestProof)
      }
      for transaction in outcome.unowned {
        try collector.addRefund(of: transaction.record, order: nil, judgement: nil, plan: plan)
      }
      for (orderId, claims) in outcome.claims {
        record.clear()
        outcome.decisive(orderId, claims).write(to: &record)
        try matched.add(orderId, key: orderId.bytes, content: record.bytes)
      }
    }
  }

  private static func key(ofBatch batch: UInt32) -> [UInt8] {
    withUnsafeBytes(of: batch.bigEndian) { [UInt8]($0) }
  }
}

/// Groups as they were put aside, each with what the transactions' side has told it.
struct GroupReading {
  private let groups: SpillFile
  private var told: SpillCursor<(orderId: Identifier, content: [UInt8])>
  /// Of the group that came last.
  private(set) var transactions = OrderTransactions()

  init(_ groups: SpillFile, _ byOrder: SpillSorter) throws {
    self.groups = groups
    try groups.restart()
    try byOrder.restart()
    told = try SpillCursor(byOrder) { record in
      (record.key.withUnsafeBytes { Identifier(utf8: $0) }, record.content)
    }
  }

  /// The next group; nil after the last.
  mutating func next() throws -> OrderGroup? {
    guard let content = try groups.next() else {
      if let left = told.head { throw OutOfStep(orderId: left.orderId) }
      return nil
    }
    var reader = RecordReader(content)
    let group = try OrderGroup(from: &reader)
    transactions.clear()
    if group.isRepeated { return group }
    while let head = told.head, head.orderId == group.row.orderId {
      var reader = RecordReader(head.content)
      transactions.take(try OrderTransaction(from: &reader))
      try told.advance()
    }
    return group
  }

  /// The orders do not come in the order in which what was found out about them waits for them.
  struct OutOfStep: Error, CustomStringConvertible {
    var orderId: Identifier
    var description: String { "order \(orderId) did not come in the byte order of its id; nothing is reported" }
  }
}

extension Matched {
  func write(to record: inout RecordBytes) {
    record.put(orderId)
    record.put(contested) { $0.write(to: &$1) }
    claims.write(to: &record)
    record.put(newestProofs.sorted { $0.key < $1.key }) { proof, record in
      proof.key.write(to: &record)
      proof.value.write(to: &record)
    }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      orderId: try record.id(),
      contested: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionRecord(from: &record) },
      claims: try OrderClaims(from: &record))
    for _ in 0..<(try record.int()) {
      newestProofs[try TransactionKey(from: &record)] = try CheckSubject(from: &record)
    }
  }
}

extension Contestant {
  func write(to record: inout RecordBytes) {
    group.write(to: &record)
    record.put(claimable) { $0.write(to: &$1) }
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      group: try OrderGroup(from: &record),
      claimable: try record.list { (record) throws(RecordReader.Mismatch) in try TransactionRecord(from: &record) })
  }
}
