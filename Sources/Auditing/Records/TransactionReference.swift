import AuditStore
import Reconciliation

/// A reference from an order, or a receipt without one, to a transaction ID. The order states it, or a proof contains
/// it. Merging references by ID finds competing claims without a join of the shop's tables with ours.
typealias TransactionReference = TransactionReferenceFields<Identifier, String>

/// A reference in the bytes of its record.
typealias BorrowedTransactionReference = TransactionReferenceFields<BorrowedText, BorrowedText>

struct TransactionReferenceFields<ID: FieldText, Text: FieldText> {
  /// The properties of an order that decide whether it could claim a transaction.
  struct OrderSide {
    var orderId: ID
    var userId: ID
    var productId: ID
    var createdAt: Instant
    var named: ID?
    var appAccountToken: Text?
    /// An invalid row claims nothing; only its user matters.
    var isBad: Bool
  }

  /// The receipt or look-up that contains a transaction.
  struct ReferenceSource {
    var environment: AppleEnvironment
    var kind: CheckSubject.Kind
    var subjectId: ID
    /// The sender of the receipt; nil for a look-up.
    var userId: ID?
    var receivedAt: Instant
    /// True if the proof is about one purchase, false for an app receipt.
    var isAboutSinglePurchase: Bool
    /// True if the proof is verified. A rejected proof, or a bare ID, supports no claim.
    var isGenuine: Bool
    /// True for an app receipt without an answer: its purchases may be refunded or family shared.
    var awaitsDetails = false
  }

  var transactionId: ID
  /// nil: the receipt has no order, or one that does not exist.
  var order: OrderSide?
  /// True if the order states the ID, in any environment.
  var isNamed = false
  var referenceSource: ReferenceSource?
}

extension TransactionReferenceFields.OrderSide {
  init(_ order: OrderFields<ID, Text>) {
    self.init(
      orderId: order.orderId, userId: order.userId, productId: order.productId, createdAt: order.createdAt,
      named: order.transactionId, appAccountToken: order.appAccountToken, isBad: false)
  }
}

extension TransactionReferenceFields.ReferenceSource {
  init(_ environment: AppleEnvironment, containedIn receipt: ReceiptFields<ID, Text>) {
    self.init(
      environment: environment, kind: .receipt, subjectId: receipt.receiptId, userId: receipt.userId,
      receivedAt: receipt.receivedAt, isAboutSinglePurchase: receipt.state.kind != .app,
      isGenuine: receipt.state.isProof, awaitsDetails: receipt.state.awaitsDetails)
  }
}

extension TransactionReference.ReferenceSource {
  var subject: CheckSubject { CheckSubject(kind: kind, id: subjectId) }
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
    case .valid(let order): side = TransactionReference.OrderSide(order)
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
            referenceSource: TransactionReference.ReferenceSource(key.environment, containedIn: proofs[place].receipt)))
      }
    }
    if let lookup {
      for key in lookup.contained {
        let referenceSource = TransactionReference.ReferenceSource(
          environment: key.environment, kind: .lookup, subjectId: lookup.subjectId, receivedAt: side.createdAt,
          isAboutSinglePurchase: true, isGenuine: lookup.state.outcome != .rejected)
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
        referenceSource: TransactionReference.ReferenceSource($0.environment, containedIn: receipt))
    }
  }
}
