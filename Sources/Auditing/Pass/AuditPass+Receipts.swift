import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

extension AuditPass {
  /// Lists the receipts and passes each on with its check and transactions. Receipts without an order come last.
  func readReceipts(into proofs: Exchange.RecordSink) throws {
    let asOf = plan.asOf
    var receipts = try OrderedStream(rows.read(.receipts)) { try ReceiptRow($0, asOf: asOf) }
    var checks = try OrderedStream(rows.read(.checks)) {
      (state: try ProofState($0, from: 1), formerOrder: try $0.optionalId(ReceiptRow.formerOrder))
    }
    var links = try OrderedStream(rows.read(.receiptLinks)) { try ProofLink($0) }
    var key = RecordBytes()
    var record = RecordBytes()
    var contained: [TransactionKey] = []
    // Read in place, because it is large.
    var plain = BorrowedReceipt.blank
    try passRowsWithoutID(&receipts, into: proofs)
    var count = 0
    while !receipts.isAtEnd {
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
      var rows: [ReceiptRow] = []
      if let id = receipts.nextKey, try checks.isNext(id), try plain.state.read(checks.front, from: 1),
        plain.state.outcome == .verified, !plain.state.isUnproven,
        !plain.state.isOwed(asOf: asOf, stuckAfter: plan.rules.stuckAfter),
        try SalesRows.readPlain(receipts.front, into: &plain)
      {
        record.clear()
        plain.code(with: &record)
        let isListed = try receipts.front.optionalBool(8) ?? false
        try receipts.skip()
        var waiting = RecordReader(record.content)
        try plain.code(with: &waiting)
        // Only after the next row is read is it certain that the ID is unique.
        if receipts.nextKey != plain.receiptId {
          if isListed, plain.receivedAt >= plan.judgedFrom { try collector.list(plain, record) }
          if plain.receivedAt >= plan.rules.lookbackStart,
            let former = try checks.front.optionalBorrowed(ReceiptRow.formerOrder)
          {
            collector.countReceipt(
              isMoved: plain.orderId != former, Self.move(plain.receiptId.id, former.id, plain.orderId.id))
          }
          try links.take(plain.receiptId, into: &contained)
          if plain.state.kind == .signed, let own = plain.state.signedTransactionId {
            contained.removeAll { !own.isSame(as: $0.transactionId) }
          }
          key.clear()
          key.put(sorting: plain.orderId)
          record.put(contained) { $0.write(to: &$1) }
          try proofs.add(sorting: key, record)
          try checks.skip()
          continue
        }
        waiting = RecordReader(record.content)
        var first = try Receipt(from: &waiting)
        first.state = .neverChecked
        rows.append(ReceiptRow(receipt: first, isListed: isListed))
      }
      if rows.isEmpty, let row = try receipts.next() { rows.append(row) }
      let id = rows[0].receipt.receiptId
      // A view that fans out returns a receipt several times.
      while receipts.nextKey?.isSame(as: id) ?? false, let further = try receipts.next() { rows.append(further) }
      if rows.count > 1 { rows = ReceiptRow.ordered(rows) }
      try id.withUTF8 { bytes in
        let id = BorrowedText(bytes)
        if try checks.isNext(id), let check = try checks.next() {
          rows[0].receipt.state = check.state ?? .neverChecked
          // Of several rows of one receipt, it is not certain which one was there before.
          let receipt = rows[0].receipt
          if rows.count == 1, receipt.receivedAt >= plan.rules.lookbackStart, let former = check.formerOrder {
            collector.countReceipt(
              isMoved: receipt.orderId != former, Self.move(receipt.receiptId, former, receipt.orderId))
          }
        }
        try links.take(id, into: &contained)
      }
      contained.removeAll { !rows[0].receipt.state.containsTransaction($0) }
      for row in rows {
        try take(row, containing: contained, into: proofs)
        // Only the row that counts has the check and its transactions.
        contained.removeAll(keepingCapacity: true)
      }
    }
    // The rest belongs to receipts that the shop has deleted.
    try checks.skipRemaining()
    try links.skipRemaining()
  }

  /// Reports rows without an ID, in a stable order. They have no check and repeat no ID.
  private func passRowsWithoutID(_ receipts: inout OrderedStream<ReceiptRow>, into proofs: Exchange.RecordSink) throws {
    let nameless = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    var record = RecordBytes()
    while !receipts.isAtEnd, receipts.nextKey?.bytes.isEmpty ?? true, let row = try receipts.next() {
      record.clear()
      record.put(row.isListed)
      row.receipt.write(to: &record)
      try nameless.add(key: [], content: record.content)
    }
    while let waiting = try nameless.next() {
      var reader = RecordReader(waiting.content)
      let isListed = try reader.flag()
      try take(ReceiptRow(receipt: try Receipt(from: &reader), isListed: isListed), containing: [], into: proofs)
    }
  }

  private static func move(_ receiptId: Identifier, _ former: Identifier, _ orderId: Identifier?) -> String {
    "receipt \(receiptId): order \(former), now \(orderId.map { "order \($0)" } ?? "none")"
  }

  private func take(_ row: ReceiptRow, containing contained: [TransactionKey], into proofs: Exchange.RecordSink) throws
  {
    if row.receipt.defect == nil, plan.isUnknown(row.receipt) { collector.note(unknownFrom: row.receipt.receivedAt) }
    if row.isListed, row.receipt.receivedAt >= plan.judgedFrom { try list(row.receipt) }
    var key = RecordBytes()
    var record = RecordBytes()
    Proof(receipt: row.receipt, contained: contained).write(to: &record)
    key.put(sorting: row.receipt.orderId)
    try proofs.add(sorting: key, record)
  }

  private func list(_ receipt: Receipt) throws {
    if receipt.defect == nil, plan.isOutstanding(receipt.state, from: receipt.receivedAt) {
      collector.countOutstanding(receipt.state, asOf: plan.asOf)
    }
    try collector.list(receipt)
  }
}

extension OrderedStream<ProofLink> {
  /// Takes the transactions of an ID, sorted, because the order of the links is not defined.
  fileprivate mutating func take(_ id: BorrowedText, into contained: inout [TransactionKey]) throws {
    contained.removeAll(keepingCapacity: true)
    while try isNext(id), let link = try next() { contained.append(link.key) }
    if contained.count > 1 { contained.sort() }
  }
}
