import Reconciliation
import Streams

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
