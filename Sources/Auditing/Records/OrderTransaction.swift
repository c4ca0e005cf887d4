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

extension OrderTransaction {
  func write(to record: inout RecordBytes) {
    switch self {
    case .transaction(let transaction, let isClaimable, let newestProof):
      record.put(true)
      transaction.write(to: &record)
      record.put(isClaimable)
      record.put(newestProof != nil)
      newestProof?.write(to: &record)
    case .sibling(let transaction, let userId, let newestProof):
      record.put(false)
      record.put(true)
      transaction.write(to: &record)
      record.put(userId)
      record.put(newestProof != nil)
      newestProof?.write(to: &record)
    case .tokenUser(let token, let userId):
      record.put(false)
      record.put(false)
      record.put(true)
      record.put(token)
      record.put(userId)
    case .neighbors(let subscription, let neighbors):
      record.put(false)
      record.put(false)
      record.put(false)
      record.put(true)
      record.put(subscription)
      record.put(neighbors.earlierUser)
      record.put(neighbors.hasLaterOrder)
    case .sharedSubscription: for _ in 0..<4 { record.put(false) }
    }
  }

  static let sharedSubscriptionBytes = RecordBytes.bytes(Self.sharedSubscription.write(to:))

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard try record.flag() else {
      if try record.flag() {
        self = .sibling(
          try TransactionRecord(from: &record), userId: try record.optionalId(),
          newestProof: try record.flag() ? try CheckSubject(from: &record) : nil)
        return
      }
      if try record.flag() {
        self = .tokenUser(token: try record.text(), userId: try record.id())
        return
      }
      self =
        try record.flag()
        ? .neighbors(
          subscription: try record.id(),
          SubscriptionNeighbors(earlierUser: try record.optionalId(), hasLaterOrder: try record.flag()))
        : .sharedSubscription
      return
    }
    self = .transaction(
      try TransactionRecord(from: &record), isClaimable: try record.flag(),
      newestProof: try record.flag() ? try CheckSubject(from: &record) : nil)
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
