import AuditStore
import Reconciliation

/// A receipt of the shop, and the transactions that it is known to have brought.
struct Proof: Hashable {
  var receipt: Receipt
  var brought: [TransactionKey]
}

extension ProofState {
  /// Whether what the proof is known to have brought is brought by the payload that it has now: a signed transaction brings
  /// what it is about, whatever a shop had in its place before. App receipts that take each other's place tell of one
  /// customer, and finished purchases leave them.
  func brings(_ key: TransactionKey) -> Bool {
    guard kind == .signed, let own = signedTransactionId else { return true }
    return own == key.transactionId
  }
}

/// The question about the transaction id that an order names: what became of it, and what it has brought.
struct LookedUp: Hashable {
  var subjectId: Identifier
  var state: ProofState
  var brought: [TransactionKey]
}

/// A row of `orders` with everything that was sent for it, as it was read: nothing is decided yet.
struct OrderGroup: Hashable {
  var row: OrderRow
  /// A further row with the id of the one before it: it is reported, and counts for nothing else.
  var isRepeated = false
  var proofs: [Proof] = []
  var lookup: LookedUp?

  /// Takes in what became of a look-up, if that is about what the order names now: an answer about an id that it named once
  /// says nothing of it. It brings what was asked about; earlier programs took what Apple told of the customer's other
  /// subscriptions for brought, too.
  mutating func take(_ lookup: LookedUp?, rules: Rules) {
    guard var lookup, lookup.subjectId == row.question(rules)?.id else { return }
    lookup.brought.removeAll { $0.transactionId != row.named }
    self.lookup = lookup
  }

  /// Proofs whose rows keep the sales schema's contract: the others count for nothing.
  var soundProofs: [Proof] {
    proofs.allSatisfy { $0.receipt.defect == nil } ? proofs : proofs.filter { $0.receipt.defect == nil }
  }

  /// What Apple can be asked again about this order.
  var subjects: [CheckSubject] {
    var subjects = soundProofs.map { CheckSubject(kind: .receipt, id: $0.receipt.receiptId) }
    if let lookup { subjects.append(CheckSubject(kind: .lookup, id: lookup.subjectId)) }
    return subjects
  }

  /// Whether one of its own proofs, or its look-up, has brought this transaction.
  func brings(_ key: TransactionKey) -> Bool {
    proofs.contains { $0.brought.contains(key) } || lookup?.brought.contains(key) ?? false
  }

  /// Whether its proofs bring a transaction only as lists about which Apple has not answered, and none could tell all of a refund.
  func awaitsDetails(of record: TransactionRecord) -> Bool {
    guard !record.tellsRefund, !(lookup?.brought.contains(record.key) ?? false) else { return false }
    let bringers = proofs.filter { $0.receipt.defect == nil && $0.brought.contains(record.key) }
    return !bringers.isEmpty && bringers.allSatisfy(\.receipt.state.awaitsDetails)
  }
}

extension OrderRow {
  /// What Apple can be asked about the transaction that the order names; nil where it names none, or none of several apps.
  fileprivate func question(_ rules: Rules) -> CheckSubject? {
    let onlyBundleId = rules.bundleIds.count == 1 ? rules.bundleIds[0] : nil
    guard let bundleId = bundleId ?? onlyBundleId, let named else { return nil }
    return CheckSubject.lookup(named.text, of: bundleId)
  }

  fileprivate var named: Identifier? {
    switch self {
    case .valid(let order): order.transactionId
    case .bad(let bad): bad.transactionId
    }
  }
}
