import AuditStore
import Reconciliation

/// A receipt of the shop, and the transactions that it contains.
struct Proof: Hashable {
  var receipt: Receipt
  var contained: [TransactionKey]
}

extension ProofState {
  /// True if the current payload contains the transaction. A signed transaction contains only itself. App receipts keep
  /// earlier transactions: finished purchases disappear from them, and all are of one customer.
  func containsTransaction(_ key: TransactionKey) -> Bool {
    guard kind == .signed, let own = signedTransactionId else { return true }
    return own == key.transactionId
  }
}

/// The look-up of the transaction ID that an order states, with its result.
struct LookedUp: Hashable {
  var subjectId: Identifier
  var state: ProofState
  var contained: [TransactionKey]
}

/// A row of `orders` with its proofs and look-up, as read: nothing is decided yet.
struct OrderGroup: Hashable {
  var row: OrderRow
  /// True for a further row with an ID already read: it is reported and counts for nothing else.
  var isRepeated = false
  var proofs: [Proof] = []
  var lookup: LookedUp?

  /// Takes a look-up of the ID that the order states now. Earlier versions also stored other subscriptions as
  /// contained.
  mutating func take(_ lookup: LookedUp?, rules: Rules) {
    guard var lookup, lookup.subjectId == row.question(rules)?.id else { return }
    lookup.contained.removeAll { $0.transactionId != row.named }
    self.lookup = lookup
  }

  var soundProofs: [Proof] {
    proofs.allSatisfy { $0.receipt.defect == nil } ? proofs : proofs.filter { $0.receipt.defect == nil }
  }

  /// True if a valid receipt of the order contains the transaction ID that the order states.
  var isStatedIDContained: Bool {
    guard let stated = row.named else { return false }
    return soundProofs.contains { $0.contained.contains { $0.transactionId == stated } }
  }

  /// The questions that Apple can be asked again about this order.
  var subjects: [CheckSubject] {
    var subjects = soundProofs.map { CheckSubject(kind: .receipt, id: $0.receipt.receiptId) }
    if let lookup { subjects.append(CheckSubject(kind: .lookup, id: lookup.subjectId)) }
    return subjects
  }

  func containsTransaction(_ key: TransactionKey) -> Bool {
    proofs.contains { $0.contained.contains(key) } || lookup?.contained.contains(key) ?? false
  }

  /// True if only unanswered app receipts contain the transaction, and no evidence shows refunds.
  func awaitsDetails(of record: TransactionRecord) -> Bool {
    guard !record.isRefundKnown, !(lookup?.contained.contains(record.key) ?? false) else { return false }
    let sourceReceipts = proofs.filter { $0.receipt.defect == nil && $0.contained.contains(record.key) }
    return !sourceReceipts.isEmpty && sourceReceipts.allSatisfy(\.receipt.state.awaitsDetails)
  }

  /// The findings on invalid deliveries and receipts of an order whose row is invalid, too.
  func findings(besideBadRow deliveries: [Delivery], rules: Rules) -> [Finding] {
    deliveries.filter { $0.defect != nil }.compactMap { OrphanFindings.finding(on: $0, rules: rules) }
      + proofs.filter { $0.receipt.defect != nil }.flatMap { OrphanFindings.findings(on: $0.receipt, rules: rules) }
  }
}

extension OrderRow {
  /// The look-up of the stated transaction; nil if none is stated, or the app is not known.
  fileprivate func question(_ rules: Rules) -> CheckSubject? {
    let onlyBundleId = rules.bundleIds.count == 1 ? rules.bundleIds[0] : nil
    guard let bundleId = bundleId ?? onlyBundleId, let named else { return nil }
    return CheckSubject.lookup(named.text, of: bundleId)
  }

  /// The transaction ID that the row states.
  var named: Identifier? {
    switch self {
    case .valid(let order): order.transactionId
    case .bad(let bad): bad.transactionId
    }
  }
}
