import AuditStore
import Reconciliation
import Streams

/// A fact that the pass over transactions passes to an order.
enum OrderTransaction {
  /// A transaction that the order states or has a proof of. `isClaimable`: no other order could own it.
  case transaction(TransactionRecord, isClaimable: Bool, newestProof: CheckSubject?)
  /// A transaction that no order claims, of a purchase that only this order could own.
  case sibling(TransactionRecord, userId: Identifier?, newestProof: CheckSubject?)
  /// A user with the account token of a transaction that the order lacks. Preferably of the order's own person.
  case tokenUser(token: String, userId: Identifier)
  /// The owners of a subscription's other periods.
  case neighbors(subscription: Identifier, SubscriptionNeighbors)
  /// The order could own a period of a subscription whose other periods other orders could own.
  case sharedSubscription
}

extension OrderTransaction: FieldCoded {
  /// The cases in the byte order of their records.
  enum Kind: String, CaseIterable {
    case sharedSubscription, neighbors, tokenUser, sibling, transaction
  }

  static let kinds = Vocabulary<Kind>()

  static var blank: OrderTransaction { .sharedSubscription }

  private init(blank kind: Kind) {
    self =
      switch kind {
      case .sharedSubscription: .sharedSubscription
      case .neighbors: .neighbors(subscription: .blank, .blank)
      case .tokenUser: .tokenUser(token: "", userId: .blank)
      case .sibling: .sibling(.blank, userId: nil, newestProof: nil)
      case .transaction: .transaction(.blank, isClaimable: false, newestProof: nil)
      }
  }

  private var kind: Kind {
    switch self {
    case .sharedSubscription: .sharedSubscription
    case .neighbors: .neighbors
    case .tokenUser: .tokenUser
    case .sibling: .sibling
    case .transaction: .transaction
    }
  }

  mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    var kind = kind
    try coder.code(word: &kind, of: Self.kinds)
    if Coder.isReading { self = OrderTransaction(blank: kind) }
    switch self {
    case .transaction(var transaction, var isClaimable, var newestProof):
      try coder.code(&transaction)
      try coder.code(&isClaimable)
      try coder.code(&newestProof)
      self = .transaction(transaction, isClaimable: isClaimable, newestProof: newestProof)
    case .sibling(var transaction, var userId, var newestProof):
      try coder.code(&transaction)
      try coder.code(&userId)
      try coder.code(&newestProof)
      self = .sibling(transaction, userId: userId, newestProof: newestProof)
    case .tokenUser(var token, var userId):
      try coder.code(&token)
      try coder.code(&userId)
      self = .tokenUser(token: token, userId: userId)
    case .neighbors(var subscription, var neighbors):
      try coder.code(&subscription)
      try coder.code(&neighbors)
      self = .neighbors(subscription: subscription, neighbors)
    case .sharedSubscription: break
    }
  }

  static let sharedSubscriptionBytes = RecordBytes.bytes(Self.sharedSubscription.write(to:))
}

extension SubscriptionNeighbors: FieldCoded {
  public static var blank: SubscriptionNeighbors { SubscriptionNeighbors(earlierUser: nil, hasLaterOrder: false) }

  public mutating func code<Coder: FieldCoder & ~Copyable>(with coder: inout Coder) throws(Coder.Failure) {
    try coder.code(&earlierUser)
    try coder.code(&hasLaterOrder)
  }
}

struct OrderTransactions {
  var claimable: [TransactionRecord] = []
  var others: [TransactionRecord] = []
  /// Transactions that no order claims, of purchases that only this order could own. With the users of their receipts.
  var siblings: [(record: TransactionRecord, userId: Identifier?)] = []
  private var proofs: [(key: TransactionKey, subject: CheckSubject)] = []
  /// By account token, a user with it on file, preferably of the order's own person.
  var tokenUsers: [String: Identifier] = [:]
  /// By original transaction ID, the owners of the subscription's other periods.
  var neighbors: [Identifier: SubscriptionNeighbors] = [:]

  /// By transaction, the newest proof that contains it. Computed on demand, because few orders need it.
  var newestProofs: [TransactionKey: CheckSubject] {
    Dictionary(proofs.lazy.map { ($0.key, $0.subject) }) { _, last in last }
  }

  /// Transactions that no other order could own, each with its presumed user if this order does not claim it either.
  /// Those that only unanswered app receipts of the order contain are left out.
  func unshared(by group: OrderGroup, rules: Rules) -> [(record: TransactionRecord, userId: Identifier?)] {
    let answered: [(record: TransactionRecord, userId: Identifier?)] = claimable.compactMap {
      group.awaitsDetails(of: $0) ? nil : ($0, presumedUser(of: $0, statedBy: group, rules: rules))
    }
    return answered + siblings
  }

  /// The order's user; of another app's order without a receipt of the transaction, the user of the account token.
  private func presumedUser(
    of record: TransactionRecord, statedBy group: OrderGroup, rules: Rules
  ) -> Identifier? {
    guard case .valid(let order) = group.row, rules.bundleId(of: order) != record.bundleId,
      !group.soundProofs.contains(where: { $0.contained.contains(record.key) })
    else { return group.row.userId }
    return record.statedToken.flatMap { tokenUsers[$0] }
  }

  mutating func take(_ transaction: OrderTransaction) {
    switch transaction {
    case .transaction(let record, let isClaimable, let newestProof):
      if isClaimable { claimable.append(record) } else { others.append(record) }
      if let newestProof { proofs.append((record.key, newestProof)) }
    case .sibling(let record, let userId, let newestProof):
      siblings.append((record, userId))
      if let newestProof { proofs.append((record.key, newestProof)) }
    case .tokenUser(let token, let userId): tokenUsers[token] = userId
    case .neighbors(let subscription, let others): neighbors[subscription] = others
    case .sharedSubscription: break
    }
  }
}
