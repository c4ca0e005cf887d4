import AuditStore
import Postgres
import Reconciliation
import Streams

/// A row of `night_audit.receipt_checks`: the state of the check of one proof.
package struct CheckRow: Sendable {
  package var subject: CheckSubject
  /// The order of the receipt, or the first order that waits for the look-up.
  package var orderId: Identifier?
  package var history: CheckHistory
  /// A refusal that is undecided, or that has accused the customer.
  package var storedRefusal: StoredRefusal?
  package var app: String?
  package var environment: AppleEnvironment?
  package var bundleId: String?
  package var signedTransactionId: String?
  /// The number of transactions that the proof contains, as far as known.
  package var containedCount: Int
  /// The fingerprint of payload, ID and app at the last answer.
  package var fingerprint: String?
  /// As-of of the run that missed the receipt in the shop's relation, or its app in the configuration; nil if both are
  /// there.
  package var missingSince: Instant?
  package private(set) var due: Dueness?
  /// As-of of the last attempt when the row was read.
  private(set) var attemptWhenRead: Instant?

  /// A refusal, with the outcome and reason that it gets once it is decided.
  package struct StoredRefusal: Hashable, Sendable {
    package var refusal: Refusal
    package var outcome: CheckOutcome
    package var reason: PaymentReason?

    /// A refusal that has accused its customer, kept until the proof is verified to recognize repeats.
    static func decided(_ refusal: Refusal) -> StoredRefusal {
      StoredRefusal(refusal: refusal, outcome: .review, reason: nil)
    }

    var isDecided: Bool { outcome == .review }
  }

  var isPending: Bool { storedRefusal.map { !$0.isDecided } ?? false }

  package init(subject: CheckSubject, history: CheckHistory) {
    (self.subject, self.history) = (subject, history)
    containedCount = 0
  }

  /// The refusal that has accused the customer; nil if it is undecided or the proof was verified since.
  var refused: Refusal? {
    if let storedRefusal { return storedRefusal.isDecided ? storedRefusal.refusal : nil }
    return Refusal(history.outcome, reason: history.reason)
  }

  static let columns = """
    c.subject_kind, c.subject_id, c.received_at, c.known_since, c.is_urgent, c.is_wanted, c.outcome, c.reason, c.channel, \
    c.attempts, c.last_attempt, c.answered_at, c.outcome_since, c.unanswered_since, c.critical_since, c.app, \
    c.environment, c.brought_count, c.fingerprint, c.refusal, c.deferred_outcome, c.deferred_reason, c.due_from, \
    c.due_until, c.due_rank, c.bundle_id, c.gone_at, c.signed_transaction_id, c.order_id, c.accused_since
    """

  init(_ row: PostgresRow) throws(PostgresError) {
    subject = try CheckSubject(of: row)
    history = CheckHistory(dated: try row.instant(2), knownSince: try row.instant(3))
    history.isUrgent = try row.bool(4)
    history.isWanted = try row.bool(5)
    history.outcome = CheckOutcome(rawValue: try row.text(6)) ?? .pending
    history.reason = try row.optionalText(7).flatMap(PaymentReason.init)
    let channel = try row.optionalText(8)
    history.isOffline = history.outcome != .pending && channel == EvidenceChannel.offline.rawValue
    history.attempts = try row.int32(9)
    history.lastAttempt = try row.optionalInstant(10)
    attemptWhenRead = history.lastAttempt
    history.answeredAt = try row.optionalInstant(11)
    history.outcomeSince = try row.optionalInstant(12)
    history.unansweredSince = try row.optionalInstant(13)
    history.criticalSince = try row.optionalInstant(14)
    app = try row.optionalText(15)
    environment = try row.optionalText(16).flatMap(AppleEnvironment.init)
    containedCount = Int(try row.int32(17))
    fingerprint = try row.optionalText(18)
    if let refusal = try row.optionalText(19).flatMap(Refusal.init),
      let outcome = try row.optionalText(20).flatMap(CheckOutcome.init)
    {
      storedRefusal = StoredRefusal(
        refusal: refusal, outcome: outcome, reason: try row.optionalText(21).flatMap(PaymentReason.init))
    }
    due = try Dueness(row, from: 22)
    bundleId = try row.optionalText(25)
    missingSince = try row.optionalInstant(26)
    signedTransactionId = try row.optionalText(27)
    orderId = try row.optionalId(28)
    history.accusedSince = try row.optionalInstant(29)
  }
}
