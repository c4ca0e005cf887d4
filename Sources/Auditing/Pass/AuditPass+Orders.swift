import AuditStore
import Postgres
import Reconciliation
import Run
import SalesStore
import Streams

struct OrdersReading {
  var groups: SpillFile
  var open: PeopleWithOpenReceipts
  var totals = SalesTotals()
  /// The account tokens of orders whose receipts do not contain the transaction ID that the order states.
  var openTokens = BloomFilter()
}

extension AuditPass {
  /// Reads the orders once, and merges each with its proofs and look-up. Writes `references` by transaction ID.
  func readOrders(proofs: SpillSorter, into references: Exchange.RecordSink) throws -> OrdersReading {
    let asOf = plan.asOf
    var orders = try OrderedStream(rows.read(.orders)) { try sales.order($0, asOf: asOf) }
    var lookups = try OrderedStream(rows.read(.lookups)) { try LookupRow($0) }
    var links = try OrderedStream(rows.read(.lookupLinks)) { try ProofLink($0) }
    var waiting = try SpillCursor(proofs) { $0 }
    var reading = OrdersReading(
      groups: try SpillFile(directory: temporaryDirectory), open: PeopleWithOpenReceipts(plan.rules))
    var writer = GroupWriter(groups: reading.groups, references: references)
    try passRowsWithoutID(&orders, &reading)
    var count = 0
    while !orders.isAtEnd {
      let orderId = try writer.begin(&orders, sales)
      try passProofs(before: orderId, &waiting, &writer, &reading.open)
      while let proof = waiting.head, proof.orderId == orderId {
        writer.add(proof: proof.content)
        try waiting.advance()
      }
      var lookup: LookedUp?
      if try lookups.isNext(orderId), let row = try lookups.next() {
        lookup = LookedUp(subjectId: row.subjectId, state: row.state, contained: [])
      }
      while try links.isNext(orderId), let link = try links.next() { lookup?.contained.append(link.key) }
      count += 1
      if count % 4_096 == 0 { try endIfStopped() }
      if lookup == nil, orders.nextKey != orderId, try writer.writePlain(&reading) { continue }
      var group = try writer.group()
      var repeated: [OrderRow] = []
      if orders.nextKey == orderId {
        // Sorted because the choice among rows with the same ID must not depend on the server.
        var rows = [group.row]
        while orders.nextKey == orderId, let further = try orders.next() { rows.append(further) }
        rows = OrderRow.sorted(rows)
        (group.row, repeated) = (rows[0], Array(rows.dropFirst()))
      }
      lookup?.contained.sort()
      group.take(lookup, rules: plan.rules)
      reading.open.take(group)
      reading.totals.add(group.row)
      if case .valid(let order) = group.row, let token = order.appAccountToken, !group.isStatedIDContained {
        reading.openTokens.insert(AccountToken.fingerprint(token))
      }
      try writer.write(group)
      for row in repeated {
        reading.totals.add(row)
        try writer.write(OrderGroup(row: row, isRepeated: true))
      }
    }
    try passProofs(before: nil, &waiting, &writer, &reading.open)
    // The rest belongs to orders that the shop has deleted.
    try lookups.skipRemaining()
    try links.skipRemaining()
    return reading
  }

  /// Stores orders without an ID, in a stable order. They repeat no ID and have no proofs.
  private func passRowsWithoutID(_ orders: inout OrderedStream<OrderRow>, _ reading: inout OrdersReading) throws {
    let nameless = SpillSorter(directory: temporaryDirectory, budget: 1 << 20)
    var record = RecordBytes()
    while orders.nextKey?.bytes.isEmpty ?? true, let row = try orders.next() {
      reading.totals.add(row)
      record.clear()
      OrderGroup(row: row).write(to: &record)
      try nameless.add(key: [], content: record.content)
    }
    while let group = try nameless.next() { try reading.groups.add(group.content) }
  }

  /// Reports receipts without an order, or of an order that does not exist.
  private func passProofs(
    before orderId: BorrowedText?, _ waiting: inout SpillCursor<SpillSorter.Record>, _ writer: inout GroupWriter,
    _ open: inout PeopleWithOpenReceipts
  ) throws {
    while let head = waiting.head {
      if let orderId {
        // Proofs without an order come last.
        guard let own = head.orderId, own < orderId else { return }
      }
      var reader = RecordReader(head.content)
      let proof = try Proof(from: &reader)
      if proof.receipt.receivedAt >= plan.rules.lookbackStart {
        for finding in OrphanFindings.findings(on: proof.receipt, rules: plan.rules) {
          try collector.add(finding, subjects: [CheckSubject(kind: .receipt, id: proof.receipt.receiptId)], plan: plan)
        }
      }
      if proof.receipt.defect == nil { for reference in proof.references(of: nil) { try writer.write(reference) } }
      open.take(proof.receipt, sentFor: nil)
      try waiting.advance()
    }
  }
}

private struct GroupWriter: ~Copyable {
  let groups: SpillFile
  let references: Exchange.RecordSink
  private var row = RecordBytes()
  private var isPlain = false
  private var proofs = RecordBytes()
  private var proofCount = 0
  /// The proofs of the current order, decoded in place.
  private var views: [WaitingProof] = []
  private var record = RecordBytes()

  init(groups: SpillFile, references: Exchange.RecordSink) {
    self.groups = groups
    self.references = references
  }

  /// Starts the next order and returns its ID, valid until the next call.
  mutating func begin(_ orders: inout OrderedStream<OrderRow>, _ sales: SalesRows) throws -> BorrowedText {
    row.clear()
    proofs.clear()
    proofCount = 0
    if var order = try sales.plainOrder(orders.front) {
      isPlain = true
      // An `OrderRow`: the order is there.
      row.put(true)
      order.code(with: &row)
      assert(
        (try? sales.order(orders.front, asOf: Instant(microseconds: 0))).map { RecordBytes.bytes($0.write(to:)) }
          == row.bytes, "it is no plain row")
      try orders.skip()
    } else if let order = try orders.next() {
      isPlain = false
      order.write(to: &row)
    }
    var begun = RecordReader(row.content)
    _ = try begun.flag()
    return try begun.borrowed()
  }

  mutating func add(proof: UnsafeRawBufferPointer) {
    proofs.append(proof)
    proofCount += 1
  }

  /// Writes the group without decoding it. False, with nothing written, for an invalid order or an unanswered proof.
  mutating func writePlain(_ reading: inout OrdersReading) throws -> Bool {
    guard isPlain else { return false }
    views.removeAll(keepingCapacity: true)
    var reader = RecordReader(proofs.content)
    for _ in 0..<proofCount {
      views.append(try WaitingProof(&reader))
      if !views[views.count - 1].isAnswered { return false }
    }
    record.clear()
    record.append(row.content)
    record.put(false)
    record.put(Int64(proofCount))
    record.append(proofs.content)
    record.put(false)
    try groups.add(record.content)
    assert((try? group()).map { RecordBytes.bytes($0.write(to:)) } == record.bytes, "it is no plain group")
    var rowReader = RecordReader(row.content)
    guard let order = try BorrowedOrder?(from: &rowReader) else { throw RecordReader.Mismatch() }
    let side = BorrowedTransactionReference.OrderSide(order)
    reading.totals.add(order)
    var isStatedIDUsed = false
    for proof in views where proof.receipt.defect == nil {
      try proof.forEachContained { environment, transactionId in
        // Nearly always the order's own proof contains the stated transaction: one reference covers both.
        let isNamed = !isStatedIDUsed && order.transactionId == transactionId
        isStatedIDUsed = isStatedIDUsed || isNamed
        try write(
          BorrowedTransactionReference(
            transactionId: transactionId, order: side, isNamed: isNamed,
            referenceSource: BorrowedTransactionReference.ReferenceSource(environment, containedIn: proof.receipt)))
      }
    }
    // A receipt that contains the stated ID has used it.
    if !isStatedIDUsed, let token = order.appAccountToken {
      reading.openTokens.insert(AccountToken.fingerprint(token))
    }
    if let named = order.transactionId, !isStatedIDUsed {
      try write(BorrowedTransactionReference(transactionId: named, order: side, isNamed: true))
    }
    return true
  }

  func group() throws -> OrderGroup {
    var reader = RecordReader(row.content)
    var group = OrderGroup(row: try OrderRow(from: &reader))
    var waiting = RecordReader(proofs.content)
    for _ in 0..<proofCount { group.proofs.append(try Proof(from: &waiting)) }
    return group
  }

  mutating func write(_ group: OrderGroup) throws {
    record.clear()
    group.write(to: &record)
    try groups.add(record.content)
    try group.forEachReference { (reference) throws in try write(reference) }
  }

  mutating func write(_ reference: borrowing TransactionReference) throws {
    record.clear()
    reference.write(to: &record)
    try references.add(reference.transactionId, record)
  }

  private mutating func write(_ reference: BorrowedTransactionReference) throws {
    record.clear()
    reference.write(to: &record)
    try references.add(reference.transactionId, record)
  }
}

extension SpillSorter.Record {
  fileprivate var orderId: BorrowedText? { BorrowedText(sorting: key) }
}
