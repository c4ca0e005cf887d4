import Postgres
import Reconciliation
import Streams

extension BorrowedReceipt.State {
  /// Reads texts in place; nil unless there is a check whose outcome is a verified proof.
  package init?(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) {
    guard try row.word(first + 1, of: Vocabularies.outcome) == .verified, try !row.bool(first + 16) else { return nil }
    self.init()
    kind = try row.word(first, of: Vocabularies.receiptKind)
    reason = try row.word(first + 2, of: Vocabularies.reason)
    channel = try row.word(first + 3, of: Vocabularies.channel)
    environment = try row.word(first + 4, of: Vocabularies.environment)
    (bundleId, appleStatus) = (try row.optionalBorrowed(first + 5), try row.optionalInt32(first + 6))
    (attempts, lastAttempt) = (try row.int32(first + 7), try row.optionalInstant(first + 8))
    (due, unansweredSince) = (try Dueness(row, from: first + 9), try row.optionalInstant(first + 12))
    (answeredAt, signedTransactionId) = (try row.optionalInstant(first + 13), try row.optionalBorrowed(first + 14))
    containedCount = try row.int32(first + 15)
  }
}

extension Dueness {
  fileprivate init?(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) {
    guard let from = try row.optionalInstant(first) else { return nil }
    self.init(
      from: from, until: try row.optionalInstant(first + 1),
      rank: Dueness.Rank(rawValue: Int16(clamping: try row.int32(first + 2))) ?? .open)
  }
}

/// The orders that receipts had before the shop moved them to others.
package enum FormerOrder {
  /// SQL: the order of a receipt in the last complete night, of `receipt_checks` under an alias; NULL for none.
  package static func inLastNight(_ checks: String) -> String {
    """
    nullif(coalesce(CASE WHEN \(checks).moved_since > (
      SELECT max(r.as_of) FROM night_audit.runs r WHERE r.is_nightly AND r.complete) THEN \(checks).order_before END,
      \(checks).order_id), '')
    """
  }
}

extension ProofState {
  package static let columns = """
    c.payload_kind, c.outcome, c.reason, c.channel, c.environment, c.bundle_id, c.apple_status, c.attempts, \
    c.last_attempt, c.due_from, c.due_until, c.due_rank, c.unanswered_since, c.answered_at, \
    c.signed_transaction_id, c.brought_count, c.is_unproven, c.failed_check
    """

  /// Reads the state from the column `first` on; nil if there is no check.
  package init?(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) {
    guard let outcome = try row.word(first + 1, of: Vocabularies.outcome) else { return nil }
    self.init()
    kind = try row.word(first, of: Vocabularies.receiptKind)
    self.outcome = outcome
    reason = try row.word(first + 2, of: Vocabularies.reason)
    channel = try row.word(first + 3, of: Vocabularies.channel)
    (environment, bundleId) = (try row.word(first + 4, of: Vocabularies.environment), try row.optionalText(first + 5))
    (appleStatus, attempts) = (try row.optionalInt32(first + 6), try row.int32(first + 7))
    (lastAttempt, due) = (try row.optionalInstant(first + 8), try Dueness(row, from: first + 9))
    (unansweredSince, answeredAt) = (try row.optionalInstant(first + 12), try row.optionalInstant(first + 13))
    (signedTransactionId, containedCount) = (try row.optionalId(first + 14), try row.int32(first + 15))
    (isUnproven, failedCheck) = (try row.bool(first + 16), try row.optionalText(first + 17))
  }
}
