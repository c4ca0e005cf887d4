/// The eligibility of a transaction for an order.
public enum ClaimEligibility: Hashable, Sendable {
  case eligible
  /// It cannot pay the order. An order that states it is proven unpaid by the reason.
  case refused(PaymentReason)
  case contradictory
}

/// The validity of an order's proofs when the order states a transaction ID.
public enum ProofValidity: Hashable, Sendable {
  /// The order has no proof, or at least one that is verified or unanswered.
  case notAllRejected
  /// Every proof was rejected, so the stated ID claims nothing.
  case allRejected
  /// Every proof was rejected, and the stated transaction ID could not be looked up.
  /// The ID claims nothing, but its transaction is not reported as an orphan.
  case allRejectedIDPending
  /// Every proof was rejected, but Apple knows the stated ID.
  case allRejectedIDKnown
  /// No proof could be read, but Apple knows the stated ID.
  case allUnreadableIDKnown

  /// True if an obstacle of the stated ID is reported. A forged proof is a finding by itself.
  var reportsObstacles: Bool { self == .notAllRejected || self == .allUnreadableIDKnown }
}

/// An order with the evidence that decides between claims.
public struct Claimant: Sendable {
  public var order: Order
  public var proven: [TransactionRecord] { list.records }
  let list: VerifiedTransactions
  public var known: [TransactionRecord] { knownList.records }
  /// Transactions that no verified proof of the order contains. Orders of one account token share them.
  let knownList: VerifiedTransactions
  public var signedIds: [Identifier]
  public var proofIds: Set<Identifier>
  public var proofValidity: ProofValidity
  public var isOpen: Bool
  public var isStatedIDUnknown: Bool
  public var hasGoods: Bool

  public init(
    order: Order, proven: VerifiedTransactions, known: VerifiedTransactions = .none, signedIds: [Identifier] = [],
    proofIds: Set<Identifier> = [], proofValidity: ProofValidity = .notAllRejected, isOpen: Bool = false,
    isStatedIDUnknown: Bool = false,
    hasGoods: Bool = false
  ) {
    self.order = order
    list = proofValidity == .notAllRejected ? proven : .none
    knownList = known
    self.signedIds = signedIds
    self.proofIds = proofIds
    self.proofValidity = proofValidity
    self.isOpen = isOpen
    self.isStatedIDUnknown = isStatedIDUnknown
    self.hasGoods = hasGoods
  }

  /// True if it owns purchases, and none of its proofs contains the ID that it states. A proof of one purchase that is
  /// attached to a wrong order shows this way too, although the order owns the purchase of its ID.
  func statesAnotherID(than owned: [TransactionRecord]) -> Bool {
    guard let stated = order.transactionId, let first = owned.first, !proven.contains(where: { $0.isOf(stated) })
    else { return false }
    if owned.contains(where: { $0.isReferred(by: stated) }) {
      // A proof of a purchase that the order owns too is a second charge.
      return !proofIds.isEmpty && !proofIds.contains(stated)
        && !proven.contains { proven in
          proven.isReferred(by: stated) || owned.contains { $0.purchaseKey == proven.purchaseKey }
        }
    }
    return first.keys.contains(where: list.contains)
  }

  /// True if its claims may change: a receipt is unanswered, or the stated ID is not known yet.
  func mayChange(rules: Rules) -> Bool {
    isOpen
      || order.transactionId != nil && !isStatedIDUnknown && mayBeLookedUp(rules) && named(rules: rules) == nil
  }

  /// False if no channel of the app can look its ID up, and the question has been open for `audit.stuckAfter`.
  private func mayBeLookedUp(_ rules: borrowing Rules) -> Bool {
    rules.appsWithLookup.contains(rules.bundleId(of: order)) || rules.asOf - order.createdAt <= rules.stuckAfter
  }

  /// The transaction that the stated ID claims; nil: unknown, or rejected proofs alone.
  /// For a subscription's original ID: the eligible period nearest to the order within the window, else the first.
  public func named(rules: Rules) -> TransactionRecord? {
    switch proofValidity {
    case .allRejected, .allRejectedIDPending: return nil
    case .notAllRejected, .allRejectedIDKnown, .allUnreadableIDKnown: break
    }
    guard let id = order.transactionId else { return nil }
    var nearest: (record: TransactionRecord, distance: Span)?
    let periods = (list.containsPeriods ? proven : []) + known
    for record in periods where record.expiresDate != nil {
      guard record.isReferred(by: id), let date = record.purchaseDate,
        fitness(of: record, rules: rules) == .eligible
      else { continue }
      let distance = (date - order.createdAt).magnitude
      guard distance <= rules.matchWindow else { continue }
      // Of several IDs of a period the stated one counts, else the smallest; records are sorted by ID.
      if let nearest,
        nearest.distance < distance
          || nearest.distance == distance && (nearest.record.transactionId == id || record.transactionId != id)
      {
        continue
      }
      nearest = (record, distance)
    }
    if let nearest { return nearest.record }
    // IDs are unique per environment: the order's own proof decides which transaction is meant.
    return list.named(id).first ?? known.first { $0.isStated(by: id) }
  }

  /// The transaction of a stated ID that claims nothing until Apple answers; nil otherwise, or of another app.
  func pendingStatedTransaction(_ rules: Rules) -> TransactionKey? {
    guard proofValidity == .allRejectedIDPending, let id = order.transactionId else { return nil }
    return known.filter { $0.isStated(by: id) && isOfItsApp($0, rules) }.map(\.key).min()
  }

  private func isOfItsApp(_ transaction: TransactionRecord, _ rules: Rules) -> Bool {
    transaction.bundleId == rules.bundleId(of: order)
  }

  /// The transactions that the order states. Of an original ID that a later period stands for, the first one too.
  ///
  /// - Parameter named: the transaction that the stated ID claims.
  func stated(as named: TransactionKey?) -> [TransactionKey] {
    guard let named else { return [] }
    return [named]
      + known.lazy.filter { $0.environment == named.environment && states($0) }.map(\.key)
  }

  /// True if its signed payloads contain neither the stated ID nor a transaction of that original ID.
  public var contradictsOwnPayload: Bool {
    guard let id = order.transactionId, !signedIds.isEmpty, !signedIds.contains(id) else { return false }
    return !proven.contains { $0.isReferred(by: id) }
  }

  public func eligibility(ofStated transaction: TransactionRecord, rules: Rules) -> ClaimEligibility {
    let fitness = fitness(of: transaction, rules: rules)
    guard fitness == .eligible else { return fitness }
    return isOutdatedRestore(transaction, rules: rules) ? .refused(.restored) : .eligible
  }

  /// True if the restored purchase is older than the restore by more than the window, and as far from the order.
  public func isOutdatedRestore(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    guard transaction.isRestore, let date = transaction.originalPurchaseDate else { return false }
    let restored = transaction.purchaseDate ?? order.createdAt
    return restored - date > rules.matchWindow && (order.createdAt - date).magnitude > rules.matchWindow
  }

  public func explanationOfUnstatedClaim(_ transaction: TransactionRecord, rules: Rules) -> String {
    switch fitness(of: transaction, rules: rules) {
    case .contradictory: return "Apple's records about it contradict each other."
    case .refused(let reason): return "It could not pay this order: \(reason.explanation)."
    case .eligible: break
    }
    switch link(to: transaction, stated: nil, rules: rules) {
    case .proof: return "A verified proof of this purchase was sent for the order."
    case .token: return "The ordered product, bought within \(rules.matchWindow.words) with the order's account token."
    case .id, .subscription, .firstPeriod, .list:
      return "The ordered product, bought within \(rules.matchWindow.words) of the order."
    case nil:
      return isInWindow(transaction, rules: rules) && transaction.isLaterPeriod
        ? "It is a renewal. A receipt that lists it does not link the order to it."
        : "It was not bought within \(rules.matchWindow.words) of the order, so it may be another purchase."
    }
  }

  public func isInWindow(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    guard let sold = transaction.saleDate else { return false }
    return (sold - order.createdAt).magnitude <= rules.matchWindow
  }

  /// The eligibility of a transaction for the order, whichever IDs are stated.
  public func fitness(of transaction: TransactionRecord, rules: Rules) -> ClaimEligibility {
    if transaction.isContradictory { return .contradictory }
    if !isOfItsApp(transaction, rules) { return .refused(.wrongBundle) }
    if !transaction.isPurchase(of: order.productId) { return .refused(.productMismatch) }
    switch transaction.environment {
    case .xcode, .localTesting: return .refused(.xcode)
    case .production, .sandbox: break
    }
    return transaction.isFamilyShared ? .refused(.familyShared) : .eligible
  }
}
