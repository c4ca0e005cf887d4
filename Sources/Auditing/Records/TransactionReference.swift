import AuditStore
import Reconciliation

/// A reference from an order, or a receipt without one, to a transaction ID. The order states it, or a proof contains
/// it. Merging references by ID finds competing claims without a join of the shop's tables with ours.
struct TransactionReference {
  /// The properties of an order that decide whether it could claim a transaction. A class, because an order with
  /// thousands of listed purchases has a reference to each.
  final class OrderSide: Sendable {
    let orderId: Identifier
    let userId: Identifier
    let productId: Identifier
    let createdAt: Instant
    let named: Identifier?
    let appAccountToken: String?
    /// An invalid row claims nothing; only its user matters.
    let isBad: Bool

    init(
      orderId: Identifier, userId: Identifier, productId: Identifier, createdAt: Instant, named: Identifier?,
      appAccountToken: String? = nil, isBad: Bool
    ) {
      self.orderId = orderId
      self.userId = userId
      self.productId = productId
      self.createdAt = createdAt
      self.named = named
      self.appAccountToken = appAccountToken
      self.isBad = isBad
    }
  }

  /// The receipt or look-up that contains a transaction.
  struct ReferenceSource {
    var environment: AppleEnvironment
    var subject: CheckSubject
    /// The sender of the receipt; nil for a look-up.
    var userId: Identifier?
    var receivedAt: Instant
    /// True if the proof is about one purchase, false for an app receipt.
    var isAboutSinglePurchase: Bool
    /// True if the proof is verified. A rejected proof, or a bare ID, supports no claim.
    var isGenuine: Bool
    /// True for an app receipt without an answer: its purchases may be refunded or family shared.
    var awaitsDetails = false
  }

  var transactionId: Identifier
  /// nil: the receipt has no order, or one that does not exist.
  var order: OrderSide?
  /// True if the order states the ID, in any environment.
  var isNamed = false
  var referenceSource: ReferenceSource?
}

extension OrderGroup {
  var references: [TransactionReference] {
    var references: [TransactionReference] = []
    forEachReference { references.append($0) }
    return references
  }

  func forEachReference<Failure: Error>(_ body: (borrowing TransactionReference) throws(Failure) -> Void)
    throws(Failure)
  {
    if isRepeated { return }
    let side: TransactionReference.OrderSide
    switch row {
    case .bad(let bad):
      side = TransactionReference.OrderSide(
        orderId: bad.orderId, userId: bad.userId, productId: bad.productId, createdAt: bad.createdAt, named: nil,
        isBad: true)
    case .valid(let order):
      side = TransactionReference.OrderSide(
        orderId: order.orderId, userId: order.userId, productId: order.productId, createdAt: order.createdAt,
        named: order.transactionId, appAccountToken: order.appAccountToken, isBad: false)
    }
    // Nearly always the order's own proof contains the stated transaction: one reference covers both.
    var isStatedIDUsed = false
    func isName(_ id: Identifier) -> Bool {
      guard !isStatedIDUsed, id == side.named else { return false }
      isStatedIDUsed = true
      return true
    }
    for place in proofs.indices where proofs[place].receipt.defect == nil {
      for key in proofs[place].contained {
        try body(
          TransactionReference(
            transactionId: key.transactionId, order: side, isNamed: isName(key.transactionId),
            referenceSource: TransactionReference.ReferenceSource(of: key, by: proofs[place].receipt)))
      }
    }
    if let lookup {
      for key in lookup.contained {
        let referenceSource = TransactionReference.ReferenceSource(
          environment: key.environment, subject: CheckSubject(kind: .lookup, id: lookup.subjectId), userId: nil,
          receivedAt: side.createdAt, isAboutSinglePurchase: true, isGenuine: lookup.state.outcome != .rejected)
        try body(
          TransactionReference(
            transactionId: key.transactionId, order: side, isNamed: isName(key.transactionId),
            referenceSource: referenceSource))
      }
    }
    if let named = side.named, !isStatedIDUsed {
      try body(TransactionReference(transactionId: named, order: side, isNamed: true))
    }
  }
}

extension Proof {
  func references(of side: TransactionReference.OrderSide?) -> [TransactionReference] {
    contained.map {
      TransactionReference(
        transactionId: $0.transactionId, order: side,
        referenceSource: TransactionReference.ReferenceSource(of: $0, by: receipt)
      )
    }
  }
}

extension TransactionReference.ReferenceSource {
  fileprivate init(of key: TransactionKey, by receipt: borrowing Receipt) {
    self.init(
      environment: key.environment, subject: CheckSubject(kind: .receipt, id: receipt.receiptId),
      userId: receipt.userId, receivedAt: receipt.receivedAt, isAboutSinglePurchase: receipt.state.kind != .app,
      isGenuine: receipt.state.isProof, awaitsDetails: receipt.state.awaitsDetails)
  }
}
