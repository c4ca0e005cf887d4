/// What claiming has come to for one order.
public struct OrderClaims: Hashable, Sendable {
  /// Transactions that this order owns, the one that its verdict rests on first.
  public var owned: [TransactionRecord] = []
  /// Transactions that it claims and that other orders own.
  public var lost: [LostClaim] = []
  /// Whether no answer that is missing could still give what it owns to another order.
  public var isFinal = true
  /// The transaction that it names, where anything is known of it and the name may count: nobody else's orphan, whatever
  /// became of the claim.
  public var named: TransactionKey?
  private var obstacle: Obstacle?

  /// What stands in the way of a claim. Indirect, because few orders meet one and all would carry room for it.
  private indirect enum Obstacle: Hashable, Sendable {
    case refused(RefusedClaim)
    case contradictory(TransactionRecord)
  }

  public init() {}

  /// The named transaction that cannot pay this order, and why.
  public var refused: RefusedClaim? {
    get { if case .refused(let claim) = obstacle { claim } else { nil } }
    set { obstacle = newValue.map { .refused($0) } }
  }

  /// The claimed transaction about which the records contradict each other.
  public var contradictory: TransactionRecord? {
    get { if case .contradictory(let transaction) = obstacle { transaction } else { nil } }
    set { obstacle = newValue.map { .contradictory($0) } }
  }

  /// Whether the order names the transaction, or claims or owns the sale behind it: it is no orphan then. Who owns a restore
  /// owns the purchase that it gives again.
  public func areAbout(_ record: TransactionRecord) -> Bool {
    named.map { $0.environment == record.environment && record.isOf($0.transactionId) } ?? false
      || owned.contains { $0.purchaseKey == record.purchaseKey }
      || lost.contains { $0.transaction.purchaseKey == record.purchaseKey }
  }

  /// Those of its own that stand.
  var liveOwned: [TransactionRecord] { owned.allSatisfy { $0.isLive } ? owned : owned.filter { $0.isLive } }

  /// A live payment outweighs one that Apple took back, and one of the sandbox.
  mutating func putLiveFirst() {
    if owned.count > 1 { owned = owned.filter(\.isLive) + owned.filter { !$0.isLive } }
  }

  /// Notes how the order stands towards the transaction that it names.
  ///
  /// - Returns: whether it could pay the order.
  mutating func take(named transaction: TransactionRecord, _ standing: ClaimStanding, worth: ProofWorth) -> Bool {
    switch standing {
    case .eligible:
      named = transaction.key
      return true
    case .refused(let reason):
      guard worth.tellsObstacles else { return false }
      named = transaction.key
      refused = RefusedClaim(transaction: transaction, reason: reason)
    case .contradictory:
      guard worth.tellsObstacles else { return false }
      named = transaction.key
      contradictory = transaction
    }
    return false
  }
}

/// A claim that another order's claim came before.
public struct LostClaim: Hashable, Sendable {
  public var transaction: TransactionRecord
  public var ownerOrderId: Identifier
  public var ownerUserId: Identifier
  /// Whether no answer that is missing could still give it to this order: an order that competes for it has none open.
  public var isFinal: Bool

  public init(transaction: TransactionRecord, ownerOrderId: Identifier, ownerUserId: Identifier, isFinal: Bool) {
    self.transaction = transaction
    self.ownerOrderId = ownerOrderId
    self.ownerUserId = ownerUserId
    self.isFinal = isFinal
  }
}

/// A named claim that its own transaction refutes.
public struct RefusedClaim: Hashable, Sendable {
  public var transaction: TransactionRecord
  public var reason: PaymentReason

  public init(transaction: TransactionRecord, reason: PaymentReason) {
    self.transaction = transaction
    self.reason = reason
  }
}
