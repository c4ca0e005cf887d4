/// The transactions in valid proofs of an order, or those known without one, by key.
/// Orders with the same transactions share one list, so that its properties are computed once.
public final class VerifiedTransactions: Sendable {
  public static let none = VerifiedTransactions([])

  /// Transactions without an app are left out, because they could belong to any.
  public let records: [TransactionRecord]
  let containsPeriods: Bool

  public init(_ records: [TransactionRecord]) {
    // Of the contents, because a key path of a generic field is looked up at run time.
    let believed =
      records.allSatisfy { $0.box.contents.bundleId != nil }
      ? records : records.filter { $0.box.contents.bundleId != nil }
    self.records = believed.count > 1 ? believed.sorted { $0.key < $1.key } : believed
    containsPeriods = believed.contains { $0.box.contents.expiresDate != nil }
  }

  func named(_ id: Identifier) -> ArraySlice<TransactionRecord> {
    let start = records.partitioningIndex { $0.transactionId.compareBytes(id) >= 0 }
    var end = start
    while end < records.count, records[end].transactionId == id { end += 1 }
    return records[start..<end]
  }

  public func contains(_ key: TransactionKey) -> Bool {
    named(key.transactionId).contains { $0.environment == key.environment }
  }

  /// Equal for lists of the same transactions, within one run.
  public var hashOfKeys: Int {
    var hasher = Hasher()
    for record in records { hasher.combine(record.key) }
    return hasher.finalize()
  }

  public func hasSameTransactions(as other: VerifiedTransactions) -> Bool {
    records.count == other.records.count && zip(records, other.records).allSatisfy { $0.isSame(as: $1) }
  }
}
