/// Transactions that genuine proofs bring, by key. Orders for which the same proof was sent share one list, so that what
/// depends on the list alone is found out once.
public final class ProvenTransactions: Sendable {
  public static let none = ProvenTransactions([])

  /// Those that name their app, by key: what Apple signed without one could be of any app.
  public let records: [TransactionRecord]
  /// Whether one of them is a period of a subscription.
  let hasPeriods: Bool

  /// - Parameter records: in any order.
  public init(_ records: [TransactionRecord]) {
    let believed = records.allSatisfy { $0.bundleId != nil } ? records : records.filter { $0.bundleId != nil }
    self.records = believed.count > 1 ? believed.sorted { $0.key < $1.key } : believed
    hasPeriods = believed.contains { $0.expiresDate != nil }
  }

  /// Those of one id, production first.
  func named(_ id: Identifier) -> ArraySlice<TransactionRecord> {
    var (low, high) = (0, records.count)
    while low < high {
      let middle = (low + high) / 2
      if records[middle].transactionId.compareBytes(id) < 0 { low = middle + 1 } else { high = middle }
    }
    var end = low
    while end < records.count, records[end].transactionId == id { end += 1 }
    return records[low..<end]
  }

  func contains(_ key: TransactionKey) -> Bool {
    named(key.transactionId).contains { $0.environment == key.environment }
  }

  /// The same for lists of the same transactions, within one run.
  public var hashOfKeys: Int {
    var hasher = Hasher()
    for record in records { hasher.combine(record.key) }
    return hasher.finalize()
  }

  public func holdsTheSame(as other: ProvenTransactions) -> Bool {
    records.count == other.records.count && zip(records, other.records).allSatisfy { $0.isSame(as: $1) }
  }
}
