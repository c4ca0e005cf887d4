/// The key of a transaction. IDs are unique within one environment only.
public struct TransactionKey: Hashable, Comparable, Sendable {
  public var environment: AppleEnvironment
  public var transactionId: Identifier

  public init(environment: AppleEnvironment, transactionId: Identifier) {
    self.environment = environment
    self.transactionId = transactionId
  }

  /// The environment is left out because the same ID in two environments is rare.
  public func hash(into hasher: inout Hasher) { hasher.combine(transactionId) }

  public static func < (left: TransactionKey, right: TransactionKey) -> Bool {
    let order = left.transactionId.compareBytes(right.transactionId)
    return order == 0 ? left.environment < right.environment : order < 0
  }
}

extension TransactionRecord {
  public var key: TransactionKey {
    TransactionKey(environment: box.contents.environment, transactionId: box.contents.transactionId)
  }

  var instance: ObjectIdentifier { ObjectIdentifier(box) }

  /// True for records of one transaction. Copies of one record are recognised without comparing keys.
  public func isSame(as other: TransactionRecord) -> Bool { instance == other.instance || key == other.key }
}
