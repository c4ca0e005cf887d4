import AuditStore
import Reconciliation
import Run
import SalesStore
import Streams

extension AuditPass {
  /// Decides purchases with several transactions and at most one possible owner. `transactionsByOrder` receives those
  /// with one.
  func decide(_ contests: ConflictGroups, into transactionsByOrder: Exchange.RecordSink) throws {
    var writer = OrderTransactionWriter(transactionsByOrder)
    try contests.decide(hiding: sales.hides) { only, transaction in
      try transactionsByOrder.add(only, transaction)
    } uncontested: { transaction, only in
      guard let only else { return try addUnowned(transaction) }
      if let fact = transaction.factForOnlyOrder { try writer.write(fact, for: only) }
    }
  }

  func addUnowned(_ transaction: ContestedTransaction) throws {
    if transaction.awaitsDetails { return }
    try addUnclaimed(transaction.record, userId: transaction.userId, newestProof: transaction.newestProof)
    try collector.refunds.add(of: transaction.record, userId: transaction.userId, plan: plan)
  }

  func contestedOrders(
    of batches: ConflictGroups.Batches, among orders: consuming GroupReading, repeated: RepeatedDeliveries
  ) throws -> ContestedOrders {
    var material = ContestedOrders(records: SpillSorter(directory: temporaryDirectory, budget: 8 << 20))
    var record = RecordBytes()
    var orders = orders
    var repeated = repeated
    let asOf = plan.asOf
    var deliveries = try OrderedStream(rows.readDeliveries(of: batches.orderIds)) { try sales.delivery($0, asOf: asOf) }
    while try orders.advance() {
      guard let batch = batches.batch(of: orders.orderId.id) else { continue }
      let group = try orders.group()
      if group.isRepeated { continue }
      var own: [Delivery] = []
      let orderId = orders.orderId
      while let next = deliveries.nextKey, next < orderId { try deliveries.skip() }
      while deliveries.nextKey == orderId, let delivery = try deliveries.next() { own.append(delivery) }
      let hasGoods = repeated.mark(own).contains { $0.hasGoods }
      record.clear()
      record.put(true)
      ContestedOrder(group: group, claimable: try orders.transactions().claimable, hasGoods: hasGoods)
        .write(to: &record)
      try material.records.add(key: AuditPass.key(ofBatch: batch), content: record.content)
      material.note(plan.rules.people.person(group.row.userId), hasGoods: hasGoods)
    }
    try deliveries.skipRemaining()
    return material
  }

  /// Matches contested transactions with orders, batch by batch.
  func match(
    _ contests: ConflictGroups, _ batches: ConflictGroups.Batches, _ contestedOrders: ContestedOrders,
    into matched: Exchange.RecordSink
  ) throws {
    try write(contests, batches, to: contestedOrders.records)
    var record = RecordBytes()
    let mixedPeople = contestedOrders.mixedPeople
    var material = try SpillCursor(contestedOrders.records) { record in (batch: record.key, content: record.content) }
    for batch in 0..<batches.count {
      try endIfStopped()
      let key = AuditPass.key(ofBatch: UInt32(batch))
      var contest = ClaimConflict(rules: plan.rules, mixedPeople: mixedPeople, timelines: batches.timelines)
      while let head = material.head, head.batch.elementsEqual(key) {
        var reader = RecordReader(head.content)
        // Transactions come before contestedOrders because their records begin with the lower byte.
        if try reader.flag() {
          try contest.add(try ContestedOrder(from: &reader)) { orderId, claims in
            record.clear()
            Matched(orderId: orderId, contested: [], claims: claims, newestProofs: [:]).write(to: &record)
            try matched.add(orderId, record)
          }
        } else {
          contest.add(try ContestedTransaction(from: &reader))
        }
        try material.advance()
      }
      let outcome = contest.matched()
      for transaction in outcome.unclaimed where !transaction.awaitsDetails {
        try addUnclaimed(transaction.record, userId: transaction.userId, newestProof: transaction.newestProof)
      }
      for transaction in outcome.unowned where !transaction.awaitsDetails {
        try collector.refunds.add(of: transaction.record, userId: transaction.userId, plan: plan)
      }
      try outcome.forEach { orderId, claims in
        record.clear()
        outcome.decisive(orderId, claims).write(to: &record)
        try matched.add(orderId, record)
      }
    }
  }

  private func write(_ contests: ConflictGroups, _ batches: ConflictGroups.Batches, to records: SpillSorter) throws {
    var record = RecordBytes()
    try contests.forEach { contested in
      guard let batch = batches.batch(of: contested) else { return try addUnowned(contested) }
      record.clear()
      record.put(false)
      contested.write(to: &record)
      try records.add(key: AuditPass.key(ofBatch: batch), content: record.content)
    }
  }

  private static func key(ofBatch batch: UInt32) -> [UInt8] {
    withUnsafeBytes(of: batch.bigEndian) { [UInt8]($0) }
  }
}
