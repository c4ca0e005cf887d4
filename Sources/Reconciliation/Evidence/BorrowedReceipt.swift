/// A transaction in the bytes of its record, without revocation and refund request.
public struct BorrowedTransaction {
  public let payment: BorrowedPayment
  public let subscriptionExpiresDate: Instant?
  public let revocationWithdrawnDate: Instant?
  public let revocationStatedDate: Instant?
  public let subscriptionStatusDate: Instant?
  public let renewalDate: Instant?
  public let isUpgraded: Bool?
  public let signedDate: Instant
  public let firstSignedDate: Instant?
  public let channel: EvidenceChannel

  public init(
    payment: BorrowedPayment, subscriptionExpiresDate: Instant?, revocationWithdrawnDate: Instant?,
    revocationStatedDate: Instant?, subscriptionStatusDate: Instant?, renewalDate: Instant?,
    isUpgraded: Bool?, signedDate: Instant, firstSignedDate: Instant?,
    channel: EvidenceChannel
  ) {
    (self.payment, self.subscriptionExpiresDate) = (payment, subscriptionExpiresDate)
    (self.revocationWithdrawnDate, self.revocationStatedDate) = (revocationWithdrawnDate, revocationStatedDate)
    (self.subscriptionStatusDate, self.renewalDate) = (subscriptionStatusDate, renewalDate)
    self.isUpgraded = isUpgraded
    (self.signedDate, self.firstSignedDate) = (signedDate, firstSignedDate)
    self.channel = channel
  }
}

/// A valid, verified receipt in the bytes of its record, as nearly every receipt is.
public struct BorrowedReceipt {
  public var receiptId: BorrowedText
  public var orderId: BorrowedText?
  public var userId: BorrowedText?
  public var claimedEnvironment: BorrowedText?
  public var receivedAt: Instant
  public var state: State

  public struct State {
    public var reason: PaymentReason?
    public var kind: ReceiptKind?
    public var channel: EvidenceChannel?
    public var environment: AppleEnvironment?
    public var bundleId: BorrowedText?
    public var appleStatus: Int32?
    public var attempts: Int32 = 0
    public var lastAttempt: Instant?
    public var due: Dueness?
    public var unansweredSince: Instant?
    public var answeredAt: Instant?
    public var signedTransactionId: BorrowedText?
    public var containedCount: Int32 = 0

    public init() {}

    public func isOwed(asOf: Instant, stuckAfter: Span) -> Bool {
      Dueness.isOwed(
        due, outcome: .verified, unansweredSince: unansweredSince, reason: reason, asOf: asOf, stuckAfter: stuckAfter)
    }
  }

  public init(
    receiptId: BorrowedText, orderId: BorrowedText?, userId: BorrowedText?, claimedEnvironment: BorrowedText?,
    receivedAt: Instant, state: State
  ) {
    (self.receiptId, self.orderId, self.userId) = (receiptId, orderId, userId)
    (self.claimedEnvironment, self.receivedAt, self.state) = (claimedEnvironment, receivedAt, state)
  }
}
