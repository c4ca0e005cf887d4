import Reconciliation
import Streams

/// Groups as they were put aside, each with what the transactions' side has told it.
struct GroupReading {
  private let groups: SpillFile
  private var told: SpillCursor<(orderId: Identifier, content: UnsafeRawBufferPointer)>
  /// Of the group that came last.
  private(set) var transactions = OrderTransactions()

  init(_ groups: SpillFile, _ byOrder: SpillSorter) throws {
    self.groups = groups
    try groups.restart()
    try byOrder.restart()
    told = try SpillCursor(byOrder) { record in
      (Identifier(utf8: record.key), record.content)
    }
  }

  /// The next group; nil after the last.
  mutating func next() throws -> OrderGroup? { try next { _ in true } }

  /// The next group of an order that is wanted; nil after the last. The others are passed over without being decoded.
  mutating func next(where isWanted: (Identifier) -> Bool) throws -> OrderGroup? {
    while let content = try groups.next() {
      let orderId = try OrderRow.orderId(in: content)
      guard isWanted(orderId) else {
        while told.head?.orderId == orderId { try told.advance() }
        continue
      }
      var reader = RecordReader(content)
      let group = try OrderGroup(from: &reader)
      transactions.clear()
      if group.isRepeated { return group }
      while let head = told.head, head.orderId == orderId {
        var reader = RecordReader(head.content)
        transactions.take(try OrderTransaction(from: &reader))
        try told.advance()
      }
      return group
    }
    if let left = told.head { throw OutOfStep(orderId: left.orderId) }
    return nil
  }

  /// The orders do not come in the order in which what was found out about them waits for them.
  struct OutOfStep: Error, CustomStringConvertible {
    var orderId: Identifier
    var description: String { "order \(orderId) did not come in the byte order of its id; nothing is reported" }
  }
}
