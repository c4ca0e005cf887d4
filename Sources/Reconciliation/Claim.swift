/// A transaction's key: ids are unique within an environment only.
package struct TransactionKey: Hashable, Comparable, Sendable {
  package var environment: AppleEnvironment
  package var transactionId: Identifier

  package init(environment: AppleEnvironment, transactionId: Identifier) {
    self.environment = environment
    self.transactionId = transactionId
  }

  /// The environment is left out: the same id in two of them is rare.
  package func hash(into hasher: inout Hasher) { hasher.combine(transactionId) }

  package static func < (left: TransactionKey, right: TransactionKey) -> Bool {
    let order = left.transactionId.compareBytes(right.transactionId)
    return order == 0 ? left.environment < right.environment : order < 0
  }
}

extension TransactionRecord {
  package var key: TransactionKey { TransactionKey(environment: self.environment, transactionId: self.transactionId) }
}

/// How one order stands towards one transaction that it names or that its receipts bring.
package enum ClaimStanding: Hashable, Sendable {
  /// It could pay this order.
  case eligible
  /// It cannot, and the reason proves it for an order that names it.
  case refused(PaymentReason)
  /// The records about it cannot both be true; nobody can say.
  case contradictory
}

/// What an order has to say for itself when claims are settled.
package struct Claimant: Sendable {
  package var order: Order
  /// Transactions that receipts sent for this order bring, or that a look-up by its named id found.
  package var brought: [TransactionRecord]
  /// The ids inside the signed payloads of its receipts, when each of them holds exactly one.
  package var signedIds: [Identifier]
  /// Whether a receipt is unanswered that could still bring it a payment: what it claims tonight may change.
  package var isOpen: Bool

  package init(order: Order, brought: [TransactionRecord], signedIds: [Identifier] = [], isOpen: Bool = false) {
    self.order = order
    self.brought = brought.count > 1 ? brought.sorted { $0.key < $1.key } : brought
    self.signedIds = signedIds
    self.isOpen = isOpen
  }

  /// The record that the order names, production first, from those it brings.
  package var named: TransactionRecord? { namedPlace.map { brought[$0] } }

  /// The place of that record among those.
  var namedPlace: Int? {
    guard let id = order.transactionId else { return nil }
    return brought.indices.lazy.filter { brought[$0].transactionId == id }
      .min { brought[$0].environment < brought[$1].environment }
  }

  /// Whether the id that the order names is not the one in its own signed payload, nor the first purchase behind it.
  package var contradictsOwnPayload: Bool {
    guard let id = order.transactionId, !signedIds.isEmpty, !signedIds.contains(id), namedPlace == nil
    else { return false }
    return !brought.contains { $0.originalTransactionId == id }
  }

  /// How the order stands towards the transaction that it names.
  package func standing(named transaction: TransactionRecord, rules: Rules) -> ClaimStanding {
    switch fitness(of: transaction, rules: rules) {
    case .contradictory: return .contradictory
    case .refused(let reason): return .refused(reason)
    case .eligible:
      let isInOwnPayload =
        signedIds.isEmpty || signedIds.contains(transaction.transactionId)
        || signedIds.contains { $0 == transaction.originalTransactionId }
      return isInOwnPayload ? .eligible : .refused(.idMismatch)
    }
  }

  /// Whether the order claims this transaction without naming it: the ordered product, bought near the order's time, and
  /// neither a renewal (claimed only when named) nor a restore (no new sale).
  package func claimsUnnamed(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    var because = Because(isWanted: false)
    return claimsUnnamed(transaction, rules, &because)
  }

  /// Why the order claims this transaction without naming it, or does not.
  package func reasonAboutUnnamed(_ transaction: TransactionRecord, rules: Rules) -> String {
    var because = Because(isWanted: true)
    _ = claimsUnnamed(transaction, rules, &because)
    return because.text
  }

  private func claimsUnnamed(_ transaction: TransactionRecord, _ rules: Rules, _ because: inout Because) -> Bool {
    switch fitness(of: transaction, rules: rules) {
    case .contradictory: return because.noting(false, "Apple's records about it contradict each other.")
    case .refused(let reason): return because.noting(false, "It could not pay this order: \(reason.explanation).")
    case .eligible: break
    }
    if transaction.isRenewal == true { return because.noting(false, "It is a renewal, claimed only by who names it.") }
    if transaction.isRestore { return because.noting(false, "It restores an earlier purchase; no money moved for it.") }
    guard isInWindow(transaction, rules: rules) else {
      return because.noting(
        false, "It was not bought within \(rules.matchWindow.words) of the order, so it may be another purchase.")
    }
    return because.noting(true, "The ordered product, bought within \(rules.matchWindow.words) of the order.")
  }

  /// The place of the one nearest in time, then with the smallest id, of the transactions in an environment that the
  /// order claims without naming them.
  func nearestPlace(in environment: AppleEnvironment, rules: Rules) -> Int? {
    var nearest: (place: Int, distance: Span)?
    for place in brought.indices where brought[place].environment == environment {
      guard claimsUnnamed(brought[place], rules: rules), let date = brought[place].purchaseDate else { continue }
      let distance = (date - order.createdAt).magnitude
      // They come by id, so a tie stays with the smaller one.
      if let known = nearest, known.distance <= distance { continue }
      nearest = (place, distance)
    }
    return nearest?.place
  }

  /// Whether the purchase was made within the match window of the order.
  package func isInWindow(_ transaction: TransactionRecord, rules: Rules) -> Bool {
    guard let purchased = transaction.purchaseDate else { return false }
    return (purchased - order.createdAt).magnitude <= rules.matchWindow
  }

  /// Whether the transaction could pay this order at all, whatever ids are claimed.
  package func fitness(of transaction: TransactionRecord, rules: Rules) -> ClaimStanding {
    if transaction.isContradictory { return .contradictory }
    if let wanted = rules.bundleId(of: order), let bundle = transaction.bundleId, bundle != wanted {
      return .refused(.wrongBundle)
    }
    if transaction.productId != order.productId { return .refused(.productMismatch) }
    switch transaction.environment {
    case .xcode, .localTesting: return .refused(.xcode)
    case .production, .sandbox: break
    }
    return transaction.isFamilyShared ? .refused(.familyShared) : .eligible
  }
}
