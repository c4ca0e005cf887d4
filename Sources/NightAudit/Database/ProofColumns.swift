import Postgres
import Reconciliation

extension ProofState {
  /// The columns of `init(_:from:)`, for `night_audit.receipt_checks` aliased `c`.
  static let columns = """
    c.payload_kind, c.outcome, c.reason, c.channel, c.environment, c.bundle_id, c.apple_status, c.attempts, \
    c.last_attempt, c.next_attempt, c.answered_at, c.signed_transaction_id, c.brought_count
    """

  /// The state in the reader's current row; nil where there is no check.
  ///
  /// - Parameter first: the position of the first of `columns`.
  init?(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) {
    guard let outcome = try row.optionalText(first + 1).flatMap(CheckOutcome.init) else { return nil }
    func instant(_ column: Int) throws(PostgresError) -> Instant? {
      try row.optionalTimestamp(first + column).map { Instant(microseconds: $0) }
    }
    self.init()
    kind = try row.optionalText(first).flatMap(ReceiptKind.init)
    self.outcome = outcome
    reason = try row.optionalText(first + 2).flatMap(PaymentReason.init)
    channel = try row.optionalText(first + 3).flatMap(EvidenceChannel.init)
    environment = try row.optionalText(first + 4).flatMap(AppleEnvironment.init)
    bundleId = try row.optionalText(first + 5)
    appleStatus = try row.optionalInt32(first + 6)
    attempts = try row.int32(first + 7)
    lastAttempt = try instant(8)
    nextAttempt = try instant(9)
    answeredAt = try instant(10)
    signedTransactionId = try row.optionalText(first + 11).map { Identifier($0) }
    broughtCount = try row.int32(first + 12)
  }
}
