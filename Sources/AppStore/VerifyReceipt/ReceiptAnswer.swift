import Reconciliation

/// The result of a verifyReceipt look-up. Every failure is a value; nothing is thrown.
package struct ReceiptAnswer: Hashable, Sendable {
  package enum Outcome: Hashable, Sendable {
    /// Apple signed the receipt. App and product are not compared here.
    case verified(VerifiedReceipt)
    case rejected
    /// 21010: the customer's account no longer exists.
    case accountGone
    /// A status that Apple says not to retry, or no longer sends.
    case review(status: Int)
    case unanswered(Silence)
    case fault(AppleFault)
  }

  package var outcome: Outcome
  /// Apple's last `status`, also 21007 or 21008.
  package var appleStatus: Int?
  package var httpStatus: Int?
  package var asked: [AppleHost] = []
  /// Warnings for the operator: announced ends of the service, and unreadable parts of the answer.
  package var warnings: [String] = []
}

/// The content of a receipt that Apple confirms.
package struct VerifiedReceipt: Hashable, Sendable {
  package var environment: AppleEnvironment
  package var bundleId: String?
  /// One fact per transaction ID. A missing one is no evidence, because finished consumables disappear from receipts.
  package var facts: [TransactionFact]
  /// Apple's time of the answer; ours if it has none, as for old transaction receipts.
  package var requestDate: Instant
  /// 0, or 21006 for an old receipt whose subscription has expired.
  package var status: Int
  /// Apple's creation date of the receipt; the same in every look-up of it.
  package var creationDate: Instant?
  /// The transaction ID of an old transaction receipt.
  package var ownTransactionId: String?
  /// Contradictions in the answer. The transactions concerned are not among the facts.
  package var contradictions: [AnswerContradiction] = []
}
