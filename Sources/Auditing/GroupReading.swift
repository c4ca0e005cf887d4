import AuditStore
import Reconciliation
import Streams

/// Groups as they were put aside, each with what the transactions' side has told it, decoded only where somebody asks.
struct GroupReading: ~Copyable {
  private let groups: SpillFile
  private let byOrder: SpillSorter
  /// What comes next of what orders were told.
  private var head: SpillSorter.Record?
  /// The group in front, as it lies.
  private var content = UnsafeRawBufferPointer(start: nil, count: 0)
  /// What the order in front was told, one record behind the other, and where each of them ends.
  private var told = RecordBytes()
  private var ends: [Int] = []
  /// Of the order in front, until the next one.
  private(set) var orderId = BorrowedText(UnsafeRawBufferPointer(start: nil, count: 0))

  init(_ groups: SpillFile, _ byOrder: SpillSorter) throws {
    self.groups = groups
    self.byOrder = byOrder
    try groups.restart()
    try byOrder.restart()
    head = try byOrder.next()
  }

  /// Goes to the next group; false after the last.
  mutating func advance() throws -> Bool {
    guard let next = try groups.next() else {
      if let head { throw OutOfStep(orderId: Identifier(utf8: head.key)) }
      return false
    }
    content = next
    var reader = RecordReader(content)
    _ = try reader.flag()
    orderId = try reader.borrowed()
    told.clear()
    ends.removeAll(keepingCapacity: true)
    while let record = head, BorrowedText(record.key) == orderId {
      told.append(record.content)
      ends.append(told.content.count)
      head = try byOrder.next()
    }
    return true
  }

  /// The group in front.
  func group() throws -> OrderGroup {
    var reader = RecordReader(content)
    return try OrderGroup(from: &reader)
  }

  /// The product of the order in front; nil for a row that breaks the contract, as a further row of its ID does.
  func productId() throws -> BorrowedText? {
    var reader = RecordReader(content)
    guard let order = try PlainOrder(&reader), try !reader.flag() else { return nil }
    return order.productId
  }

  /// What the order in front was told.
  func transactions() throws -> OrderTransactions {
    var transactions = OrderTransactions()
    var start = 0
    for end in ends {
      var reader = RecordReader(UnsafeRawBufferPointer(rebasing: told.content[start..<end]))
      transactions.take(try OrderTransaction(from: &reader))
      start = end
    }
    return transactions
  }

  /// The order in front with the one proof that was sent for it and the one transaction that this has brought and nobody else
  /// could own; nil for one of another shape. Good until the next group.
  func plain() throws -> (order: PlainOrder, proof: PlainProof, payment: PlainPayment)? {
    guard ends.count == 1 else { return nil }
    var reader = RecordReader(content)
    guard let order = try PlainOrder(&reader), try !reader.flag(), try reader.int() == 1 else { return nil }
    let proof = try WaitingProof(&reader)
    if try reader.flag() { return nil }
    var transaction = RecordReader(told.content)
    guard let payment = try PlainPayment(told: &transaction),
      try proof.hasBrought(payment.transactionId, in: payment.environment)
    else { return nil }
    return (order, proof.proof, payment)
  }

  /// The orders do not come in the order in which what was found out about them waits for them.
  struct OutOfStep: Error, CustomStringConvertible {
    var orderId: Identifier
    var description: String { "order \(orderId) did not come in the byte order of its id; nothing is reported" }
  }
}
