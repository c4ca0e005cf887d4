import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

extension AuditPass {
  /// Lists the receipts and puts every one aside with its check and what it brought.
  ///
  /// - Parameter proofs: gets them by the ids of their orders, those without one last.
  func readReceipts(into proofs: Exchange.Outlet) throws {
    let asOf = plan.asOf
    var receipts = try OrderedStream(rows.read(.receipts)) { try ReceiptRow($0, asOf: asOf) }
    var checks = try OrderedStream(rows.read(.checks)) { try ProofState($0, from: 1) }
    var links = try OrderedStream(rows.read(.receiptLinks)) { try ProofLink($0) }
    var key = RecordBytes()
    var record = RecordBytes()
    var brought: [TransactionKey] = []
    var (count, last) = (0, Identifier?.none)
    while !receipts.isAtEnd {
      let id = receipts.nextKey
      guard var row = try receipts.next() else { break }
      // A view that fans out tells of one receipt several times, and the first has taken its check.
      if let id, id == last { row.receipt.defect = "receipt_id is not unique" }
      brought.removeAll(keepingCapacity: true)
      // A receipt without an id is reported, and has no check.
      if let id, id != last {
        while let next = checks.nextKey, next <= id {
          if next == id, let state = try checks.next() {
            row.receipt.state = state ?? .neverChecked
          } else {
            try checks.skip()
          }
        }
        while let next = links.nextKey, next <= id {
          if next == id, let link = try links.next() { brought.append(link.key) } else { try links.skip() }
        }
      }
      // An order of their own, whoever has sorted the links.
      if brought.count > 1 { brought.sort() }
      last = id
      if row.isListed, row.receipt.receivedAt >= plan.judgedFrom { try list(row.receipt) }
      record.clear()
      Proof.write(row.receipt, bringing: brought, to: &record)
      key.clear()
      key.put(sorting: row.receipt.orderId)
      try proofs.add(row.receipt.orderId, key: key, record)
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
    }
    // Of receipts that the shop has no more.
    try checks.skipRest()
    try links.skipRest()
  }

  private func list(_ receipt: Receipt) throws {
    if receipt.defect == nil, plan.isOutstanding(receipt.state, from: receipt.receivedAt) {
      collector.countOutstanding(receipt.state)
    }
    try collector.list(receipt)
  }
}

extension Optional<Identifier> {
  /// Bytes that sort as the ids do, those that are missing last, like NULLs in the streams.
  var sortingBytes: [UInt8] { map { [0] + $0.bytes } ?? [1] }

  /// The id that such bytes are of.
  init(sortingBytes bytes: UnsafeRawBufferPointer) {
    self = bytes.first == 0 ? Identifier(utf8: UnsafeRawBufferPointer(rebasing: bytes.dropFirst())) : nil
  }
}
