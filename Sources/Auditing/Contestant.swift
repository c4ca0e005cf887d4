import Reconciliation

/// An order that takes part in a contest, and what that has come to for it.
struct Contestant {
  var orderId: Identifier
  /// All of its receipts, sound ones too.
  var receipts: [Receipt]
  var brought: [TransactionRecord]
  var claims: OrderClaims
}

/// What was contested, and what has an owner, a claim or a name on it since.
struct ContestedKeys {
  private var contested: Set<TransactionKey> = []
  private var claimed: Set<TransactionKey> = []

  /// Takes what settling a batch has come to.
  mutating func take(_ batch: Contests.Batch, claimed keys: Set<TransactionKey>) {
    contested.formUnion(batch.keys)
    claimed.formUnion(keys)
  }

  /// Whether some contest is about this transaction.
  func contains(_ key: TransactionKey) -> Bool { contested.contains(key) }

  /// Whether a contestant claims, names or owns this transaction.
  func isClaimed(_ key: TransactionKey) -> Bool { claimed.contains(key) }

  /// Whether some order claims, names or owns a transaction.
  ///
  /// - Parameter own: the claims of the order that it is filed under.
  func isClaimed(_ key: TransactionKey, own: OrderClaims) -> Bool {
    contains(key) ? isClaimed(key) : own.areAbout(key)
  }
}

extension OrderClaims {
  /// Whether the order claims, names or owns a transaction.
  func areAbout(_ key: TransactionKey) -> Bool {
    if owned.contains(where: { $0.key == key }) { return true }
    return refused?.transaction.key == key || contradictory?.key == key || lost.contains { $0.transaction.key == key }
  }
}
