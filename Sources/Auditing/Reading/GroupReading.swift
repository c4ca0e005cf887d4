import AuditStore
import Reconciliation
import Streams

/// Reads stored groups, each with its order transactions; decodes them only on demand.
struct GroupReading: ~Copyable {
  private let groups: SpillFile
  private let byOrder: SpillSorter
  private var head: SpillSorter.Record?
  private var content = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The order transactions of the current order, encoded one after the other, and their end offsets.
  private var encodedTransactions = RecordBytes()
  private var ends: [Int] = []
  /// The current order; valid until `advance()`.
  private(set) var orderId = BorrowedText(UnsafeRawBufferPointer(start: nil, count: 0))
  // The current order, its proof and its payment, if `readPlain()` says so; valid until `advance()`. Read in place,
  // because they are large.
  private(set) var order = BorrowedOrder.blank
  private(set) var proof = WaitingProof()
  private(set) var payment = BorrowedTransaction.blank
  private var restore = BorrowedTransaction.blank

  init(_ groups: SpillFile, _ byOrder: SpillSorter) throws {
    self.groups = groups
    self.byOrder = byOrder
    try groups.restart()
    try byOrder.restart()
    head = try byOrder.next()
  }

  mutating func advance() throws -> Bool {
    guard let next = try groups.next() else {
      if let head { throw RowOrderMismatch(orderId: Identifier(utf8: head.key)) }
      return false
    }
    content = next
    var reader = RecordReader(content)
    _ = try reader.flag()
    orderId = try reader.borrowed()
    encodedTransactions.clear()
    ends.removeAll(keepingCapacity: true)
    while let record = head, BorrowedText(record.key) == orderId {
      encodedTransactions.append(record.content)
      ends.append(encodedTransactions.content.count)
      head = try byOrder.next()
    }
    return true
  }

  func group() throws -> OrderGroup {
    var reader = RecordReader(content)
    return try OrderGroup(from: &reader)
  }

  /// The product of the current order; nil for an invalid or repeated row.
  func productId() throws -> BorrowedText? {
    var reader = RecordReader(content)
    guard let order = try BorrowedOrder?(from: &reader), try !reader.flag() else { return nil }
    return order.productId
  }

  func transactions() throws -> OrderTransactions {
    var transactions = OrderTransactions()
    for place in ends.indices {
      var reader = RecordReader(encodedTransaction(place))
      transactions.take(try OrderTransaction(from: &reader))
    }
    return transactions
  }

  private func encodedTransaction(_ place: Int) -> UnsafeRawBufferPointer {
    let start = place == 0 ? 0 : ends[place - 1]
    return UnsafeRawBufferPointer(rebasing: encodedTransactions.content[start..<ends[place]])
  }

  /// Whether other orders could own other periods of a subscription of the current order.
  var sharesSubscription: Bool {
    ends.indices.contains { encodedTransaction($0).elementsEqual(OrderTransaction.sharedSubscriptionBytes) }
  }

  /// Reads the current order. False unless its one proof contains one purchase, with its restores, that it alone could
  /// own.
  mutating func readPlain() throws -> Bool {
    guard !ends.isEmpty else { return false }
    var reader = RecordReader(content)
    guard try reader.flag() else { return false }
    try order.code(with: &reader)
    guard try !reader.flag(), try reader.int() == 1 else { return false }
    try proof.read(&reader)
    if try reader.flag() { return false }
    var transaction = RecordReader(encodedTransaction(0))
    guard try payment.read(orderTransaction: &transaction), payment.otherIds.count == ends.count - 1,
      try proof.containsTransactionID(payment.transactionId, in: payment.environment),
      // A proof of the restore alone would link the restore, and not the payment.
      ends.count == 1 || proof.receipt.state.signedTransactionId.map({ $0 == payment.transactionId }) ?? true
    else { return false }
    for place in ends.indices.dropFirst() {
      transaction = RecordReader(encodedTransaction(place))
      guard try restore.read(orderTransaction: &transaction), restore.isPlainRestore(of: payment) else { return false }
    }
    return true
  }

  /// The orders do not come in the order of the records kept for them.
  struct RowOrderMismatch: Error, CustomStringConvertible {
    var orderId: Identifier
    var description: String { "order \(orderId) was not read in the byte order of its ID; no report is written" }
  }
}
