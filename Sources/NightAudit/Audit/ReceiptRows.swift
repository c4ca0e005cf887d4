import Postgres
import Reconciliation

/// A receipt of the shop together with the state of its check.
struct ReceiptRow {
  var receipt: Receipt
  /// Whether the filters list it.
  var isListed: Bool
  /// Whether it brought a transaction that is filed under another order.
  var hasDetour: Bool

  /// All receipts with their checks, in the byte order of their ids.
  ///
  /// - Parameters:
  ///   - condition: what the filters list, on receipts aliased `r`.
  ///   - restriction: which receipts are read; nil reads all, and only then are detours looked up.
  static func query(_ sales: SalesRows, condition: String, where restriction: String? = nil) -> String {
    let detours =
      restriction == nil
      ? "SELECT DISTINCT subject_id FROM night_audit.receipt_transactions WHERE is_detour AND subject_kind = 'receipt'"
      : "SELECT NULL::text AS subject_id WHERE FALSE"
    return """
      SELECT r.receipt_id::text, r.order_id::text, r.user_id::text, r.environment::text, r.status::text,
        r.received_at::timestamptz, c.payload_kind, c.outcome, c.reason, c.channel, c.environment, c.bundle_id,
        c.apple_status, c.attempts, c.last_attempt, c.next_attempt, c.answered_at, c.signed_transaction_id, c.brought_count,
        (\(condition)) AS listed, d.subject_id IS NOT NULL AS has_detour
      FROM \(sales.schema).receipts r
      LEFT JOIN night_audit.receipt_checks c ON c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id::text
      LEFT JOIN (\(detours)) d ON d.subject_id = c.subject_id
      WHERE \(restriction ?? "TRUE")
      ORDER BY r.receipt_id::text COLLATE "C"
      """
  }

  init(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    let received = try SalesRows.timestamp(row, 5)
    receipt = Receipt(
      receiptId: Identifier(try row.optionalText(0) ?? ""), orderId: try row.optionalText(1).map { Identifier($0) },
      userId: try row.optionalText(2).map { Identifier($0) }, claimedEnvironment: try row.optionalText(3),
      receivedAt: received.instant ?? asOf, state: .neverChecked)
    receipt.defect = SalesRows.receiptDefect(status: try row.optionalText(4), receivedAt: received)
    isListed = try row.optionalBool(19) ?? false
    hasDetour = try row.bool(20)
    if let outcome = try row.optionalText(7).flatMap(CheckOutcome.init) {
      receipt.state = try ReceiptRow.state(row, outcome: outcome)
    }
  }

  private static func state(_ row: borrowing CopyReader, outcome: CheckOutcome) throws(PostgresError) -> ProofState {
    func instant(_ column: Int) throws(PostgresError) -> Instant? {
      try row.optionalTimestamp(column).map { Instant(microseconds: $0) }
    }
    var state = ProofState()
    state.kind = try row.optionalText(6).flatMap(ReceiptKind.init)
    state.outcome = outcome
    state.reason = try row.optionalText(8).flatMap(PaymentReason.init)
    state.channel = try row.optionalText(9).flatMap(EvidenceChannel.init)
    state.environment = try row.optionalText(10).flatMap(AppleEnvironment.init)
    state.bundleId = try row.optionalText(11)
    state.appleStatus = try row.optionalInt32(12)
    state.attempts = try row.int32(13)
    state.lastAttempt = try instant(14)
    state.nextAttempt = try instant(15)
    state.answeredAt = try instant(16)
    state.signedTransactionId = try row.optionalText(17).map { Identifier($0) }
    state.broughtCount = try row.int32(18)
    return state
  }
}

extension ReceiptRow {
  /// Whether its order cannot be judged from the transactions alone: the receipt itself has something to say.
  var needsAttention: Bool { receipt.needsAttention(hasDetour: hasDetour) }
}

extension Receipt {
  /// Whether its order cannot be judged from the transactions alone.
  ///
  /// - Parameter hasDetour: whether it brought a transaction that is filed under another order.
  func needsAttention(hasDetour: Bool) -> Bool {
    if defect != nil || state.outcome != .verified || state.broughtCount == 0 || hasDetour { return true }
    guard let claimed = claimedEnvironment, let signed = state.environment else { return false }
    return claimed != signed.rawValue
  }
}
