import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

/// What reading the orders has put aside.
struct OrdersReading {
  /// Groups in the byte order of their ids.
  var groups: SpillFile
  /// Of whom a receipt is not answered yet.
  var open: OpenPeople
  /// What was read adds up to.
  var totals = SalesTotals()
}

extension AuditPass {
  /// Reads the orders, once, and brings each together with what was sent for it.
  ///
  /// - Parameters:
  ///   - proofs: by the ids of their orders.
  ///   - mentions: gets what orders and proofs have to do with transactions, by transaction id.
  func readOrders(proofs: SpillSorter, into mentions: Exchange.Outlet) throws -> OrdersReading {
    let asOf = plan.asOf
    var orders = try OrderedStream(rows.read(.orders)) { try sales.order($0, asOf: asOf) }
    var lookups = try OrderedStream(rows.read(.lookups)) { try LookupRow($0) }
    var links = try OrderedStream(rows.read(.lookupLinks)) { try ProofLink($0) }
    var waiting = try SpillCursor(proofs) { WaitingProof($0) }
    var reading = OrdersReading(
      groups: try SpillFile(directory: temporaryDirectory), open: OpenPeople(plan.rules.people))
    var writer = GroupWriter(groups: reading.groups, mentions: mentions)
    var count = 0
    var proofs: [Proof] = []
    while let row = try orders.next() {
      let orderId = row.orderId
      try passProofs(before: orderId, &waiting, &writer, &reading.open)
      proofs.removeAll(keepingCapacity: true)
      while let proof = waiting.head, proof.orderId == orderId {
        proofs.append(try proof.decoded())
        try waiting.advance()
      }
      var group = OrderGroup(row: row, proofs: proofs)
      while let next = lookups.nextKey, next <= orderId {
        if next == orderId, let row = try lookups.next() {
          group.lookup = LookedUp(subjectId: row.subjectId, state: row.state, brought: [])
        } else {
          try lookups.skip()
        }
      }
      while let next = links.nextKey, next <= orderId {
        if next == orderId, let link = try links.next() {
          group.lookup?.brought.append(link.key)
        } else {
          try links.skip()
        }
      }
      group.lookup?.brought.sort()
      var repeated: [OrderRow] = []
      if orders.nextKey == orderId {
        // Which of several rows of one id comes first must not depend on how the server sorts.
        var rows = [group.row]
        while orders.nextKey == orderId, let further = try orders.next() { rows.append(further) }
        rows = OrderRow.sorted(rows)
        (group.row, repeated) = (rows[0], Array(rows.dropFirst()))
      }
      reading.open.take(group)
      reading.totals.add(group.row)
      try writer.write(group)
      for row in repeated {
        reading.totals.add(row)
        try writer.write(OrderGroup(row: row, isRepeated: true))
      }
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
    }
    try passProofs(before: nil, &waiting, &writer, &reading.open)
    // Of orders that the shop has no more.
    try lookups.skipRest()
    try links.skipRest()
    return reading
  }

  /// Handles receipts whose order does not exist, or that name none.
  private func passProofs(
    before orderId: Identifier?, _ waiting: inout SpillCursor<WaitingProof>, _ writer: inout GroupWriter,
    _ open: inout OpenPeople
  ) throws {
    while let head = waiting.head {
      if let orderId {
        // What names no order comes after everything that does.
        guard let own = head.orderId, own < orderId else { return }
      }
      let proof = try head.decoded()
      if proof.receipt.receivedAt >= plan.rules.lookbackStart {
        for finding in Unowned.findings(on: proof.receipt) {
          try collector.add(finding, subjects: [CheckSubject(kind: .receipt, id: proof.receipt.receiptId)], plan: plan)
        }
      }
      if proof.receipt.defect == nil { for mention in proof.mentions(of: nil) { try writer.write(mention) } }
      open.take(proof.receipt, orderedBy: nil)
      try waiting.advance()
    }
  }
}

extension OrderRow {
  /// Rows of one id in an order of their own: which of them counts must not depend on how a server sorts.
  static func sorted(_ rows: [OrderRow]) -> [OrderRow] {
    rows.map { row in
      var record = RecordBytes()
      row.write(to: &record)
      return (bytes: record.bytes, row: row)
    }
    // A row that keeps the contract counts rather than one that breaks it; valid rows begin with the greater byte.
    .sorted {
      $0.bytes.first == $1.bytes.first
        ? $0.bytes.lexicographicallyPrecedes($1.bytes) : ($0.bytes.first ?? 0) > ($1.bytes.first ?? 0)
    }
    .map(\.row)
  }
}

/// Puts groups aside, and what they mention.
private struct GroupWriter: ~Copyable {
  let groups: SpillFile
  let mentions: Exchange.Outlet
  private var record = RecordBytes()

  init(groups: SpillFile, mentions: Exchange.Outlet) {
    self.groups = groups
    self.mentions = mentions
  }

  mutating func write(_ group: OrderGroup) throws {
    record.clear()
    group.write(to: &record)
    try groups.add(record.content)
    try group.forEachMention { (mention) throws in try write(mention) }
  }

  mutating func write(_ mention: borrowing Mention) throws {
    record.clear()
    mention.write(to: &record)
    try mentions.add(mention.transactionId, record)
  }
}

/// A proof as it waits for its order.
private struct WaitingProof {
  /// nil of one that names no order.
  let orderId: Identifier?
  private let content: UnsafeRawBufferPointer

  init(_ record: SpillSorter.Record) {
    orderId = Identifier?(sortingBytes: record.key)
    content = record.content
  }

  /// Only while the cursor that it comes from stands on it.
  func decoded() throws(RecordReader.Mismatch) -> Proof {
    var reader = RecordReader(content)
    return try Proof(from: &reader)
  }
}
