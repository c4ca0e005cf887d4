/// The result of matching for one order.
public struct OrderClaims: Hashable, Sendable {
  /// Owned transactions, the one behind the verdict first.
  public var owned: [TransactionRecord] = []
  public var lost: [LostClaim] = []
  /// True if no missing answer could give an owned transaction to another order.
  public var isFinal = true
  /// True if the order states another transaction ID than its own proofs contain.
  public var statesAnotherThanProven = false
  /// The stated transaction of the order's app if it is known and the statement counts. It is no orphan then.
  public var named: TransactionKey?
  private var obstacle: ClaimObstacle?

  /// An obstacle to a claim. Indirect, because few orders have one.
  private indirect enum ClaimObstacle: Hashable, Sendable {
    case refused(RefusedClaim)
    case contradictory(TransactionRecord)
  }

  public init() {}

  public var refused: RefusedClaim? {
    get { if case .refused(let claim) = obstacle { claim } else { nil } }
    set { obstacle = newValue.map { .refused($0) } }
  }

  public var contradictory: TransactionRecord? {
    get { if case .contradictory(let transaction) = obstacle { transaction } else { nil } }
    set { obstacle = newValue.map { .contradictory($0) } }
  }

  /// True if the order states the transaction, or claims or owns its purchase: it is no orphan.
  /// - Parameter id: the stated ID. For an original ID, `named` may be a later period.
  public func referTo(_ record: TransactionRecord, stating id: Identifier?) -> Bool {
    named.map { $0.environment == record.environment && (record.isOf($0.transactionId) || record.isOf(id)) } ?? false
      || owned.contains { $0.purchaseKey == record.purchaseKey }
      || lost.contains { $0.transaction.purchaseKey == record.purchaseKey }
  }

  var liveOwned: [TransactionRecord] { owned.allSatisfy { $0.isLive } ? owned : owned.filter { $0.isLive } }

  /// A live payment precedes a revoked one, and one of the sandbox.
  mutating func moveLivePaymentsFirst() {
    if owned.count > 1 { owned = owned.filter(\.isLive) + owned.filter { !$0.isLive } }
  }

  /// - Returns: true if the transaction could pay the order.
  mutating func take(named transaction: TransactionRecord, _ eligibility: ClaimEligibility, validity: ProofValidity)
    -> Bool
  {
    switch eligibility {
    case .eligible:
      named = transaction.key
      return true
    case .refused(let reason):
      guard validity.reportsObstacles else { return false }
      // An order is linked to no purchase of another app, which may be an orphan all the same.
      if reason != .wrongBundle { named = transaction.key }
      refused = RefusedClaim(transaction: transaction, reason: reason)
    case .contradictory:
      guard validity.reportsObstacles else { return false }
      named = transaction.key
      contradictory = transaction
    }
    return false
  }
}

/// A claim on a transaction that another order owns.
public struct LostClaim: Hashable, Sendable {
  public var transaction: TransactionRecord
  public var ownerOrderId: Identifier
  public var ownerUserId: Identifier
  /// True if no missing answer could give the transaction to this order.
  public var isFinal: Bool

  public init(transaction: TransactionRecord, ownerOrderId: Identifier, ownerUserId: Identifier, isFinal: Bool) {
    self.transaction = transaction
    self.ownerOrderId = ownerOrderId
    self.ownerUserId = ownerUserId
    self.isFinal = isFinal
  }
}

public struct RefusedClaim: Hashable, Sendable {
  public var transaction: TransactionRecord
  public var reason: PaymentReason

  public init(transaction: TransactionRecord, reason: PaymentReason) {
    self.transaction = transaction
    self.reason = reason
  }
}

/// The units that an order's purchases pay for, while left-over purchases are given to orders in the order of time:
/// first the live ones, then refunded ones for units that no other purchase pays.
struct OwnedUnits {
  private let ordered: Int64
  private var live: Int64 = 0
  /// The ordered units that no purchase pays, refunded ones included; 0 for an order without a purchase.
  private(set) var unpaid: Int64 = 0
  private var isOwner = false

  init(_ order: Order, owning purchase: TransactionRecord?) {
    ordered = Int64(order.quantity)
    if let purchase { add(purchase) }
  }

  /// True if the live purchases are for fewer units than ordered.
  var isShort: Bool { live < ordered }

  mutating func add(_ purchase: TransactionRecord) {
    live += purchase.liveUnits
    let rest = isOwner ? unpaid : ordered
    // Without a quantity it may have paid for any number of units.
    if let units = purchase.quantity, units > 0 { unpaid = max(0, rest - Int64(units)) } else { unpaid = 0 }
    isOwner = true
  }

  /// True if the order may own the left-over purchase.
  func canTake(_ purchase: TransactionRecord) -> Bool {
    guard purchase.isReversed else { return true }
    return purchase.quantity.map { $0 > 0 && Int64($0) <= unpaid } ?? false
  }
}
