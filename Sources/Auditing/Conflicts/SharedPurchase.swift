import Reconciliation
import Streams

/// The encoded transactions of one purchase, one after the other.
struct SharedPurchase: ~Copyable {
  private var key = RecordBytes()
  private var content = RecordBytes()
  private var ends: [Int] = []
  private var record = RecordBytes()
  // Read in place, because it is large.
  private var transaction = BorrowedTransaction.blank

  func isOf(_ key: UnsafeRawBufferPointer) -> Bool { BorrowedText(self.key.content) == BorrowedText(key) }

  mutating func start(_ key: UnsafeRawBufferPointer) {
    self.key.clear()
    self.key.append(key)
    content.clear()
    ends.removeAll(keepingCapacity: true)
  }

  mutating func add(_ transaction: UnsafeRawBufferPointer) {
    content.append(transaction)
    ends.append(content.content.count)
  }

  static func write(_ contested: ContestedTransaction, to record: inout RecordBytes) {
    record.put(false)
    contested.write(to: &record)
  }

  /// - Parameter transaction: an encoded `OrderTransaction` that this order alone refers to, and that has its token.
  static func write(
    _ transaction: UnsafeRawBufferPointer, of order: BorrowedTransactionReference.OrderSide,
    to record: inout RecordBytes
  ) {
    record.put(true)
    record.put(order.orderId)
    record.put(order.userId)
    record.append(transaction)
  }

  static func transaction(_ content: UnsafeRawBufferPointer) throws -> ContestedTransaction {
    var reader = RecordReader(content)
    guard try reader.flag() else { return try ContestedTransaction(from: &reader) }
    let (orderId, userId) = (try reader.id(), try reader.id())
    guard case .transaction(let record, _, let newestProof) = try OrderTransaction(from: &reader) else {
      throw RecordReader.Mismatch()
    }
    return ContestedTransaction(
      record: record, claimants: [orderId], userId: userId, newestProof: newestProof, sharesPurchase: true,
      isWithToken: true)
  }

  func transactions() throws -> [ContestedTransaction] {
    try ends.indices.map { try Self.transaction(content(of: $0)) }
  }

  /// Passes each transaction as an `OrderTransaction`, with what is known of the purchase, without decoding it.
  /// False, with nothing passed, unless one order alone refers to all of them, and none is contradictory or has a
  /// withdrawn refund.
  mutating func passPlain(_ body: (_ orderId: BorrowedText, borrowing RecordBytes) throws -> Void) throws -> Bool {
    var owner: BorrowedText?
    var ids: [BorrowedText] = []
    var original: (priceMilliunits: Int64, currency: BorrowedText?)?
    var (revocationStatedDate, checkedAt): (Instant?, Instant?)
    for place in ends.indices {
      var reader = RecordReader(content(of: place))
      guard try reader.flag() else { return false }
      let orderId = try reader.borrowed()
      guard owner ?? orderId == orderId else { return false }
      owner = orderId
      try readTransaction(&reader)
      if transaction.isContradictory || transaction.revocationWithdrawnDate != nil { return false }
      ids.append(transaction.transactionId)
      if !transaction.restoresAnotherID, let price = transaction.priceMilliunits {
        original = (price, transaction.currency)
      }
      revocationStatedDate = [revocationStatedDate, transaction.revocationStatedDate].compactMap(\.self).max()
      checkedAt = [checkedAt, transaction.checkedAt].compactMap(\.self).max()
    }
    guard let owner else { return false }
    ids.sort()
    for place in ends.indices {
      var reader = RecordReader(content(of: place))
      _ = try (reader.flag(), reader.borrowed())
      try readTransaction(&reader)
      if let original { (transaction.priceMilliunits, transaction.currency) = original }
      (transaction.revocationStatedDate, transaction.checkedAt) = (revocationStatedDate, checkedAt)
      transaction.otherIds = ids.filter { $0 != transaction.transactionId }
      record.clear()
      record.put(.transaction, of: OrderTransaction.kinds)
      transaction.code(with: &record)
      record.append(reader.rest)
      try body(owner, record)
    }
    return true
  }

  private mutating func readTransaction(_ reader: inout RecordReader) throws {
    _ = try reader.borrowed()
    _ = try reader.word(of: OrderTransaction.kinds)
    try transaction.code(with: &reader)
  }

  private func content(of place: Int) -> UnsafeRawBufferPointer {
    let start = place == 0 ? 0 : ends[place - 1]
    return UnsafeRawBufferPointer(rebasing: content.content[start..<ends[place]])
  }
}
