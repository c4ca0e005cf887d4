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
        r.received_at::timestamptz, \(ProofState.columns),
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
    receipt.state = try ProofState(row, from: 6) ?? .neverChecked
  }
}

extension ReceiptRow {
  /// Whether its order cannot be judged from the transactions alone: the receipt itself has something to say.
  var needsAttention: Bool {
    let state = receipt.state
    if receipt.defect != nil || state.outcome != .verified || state.broughtCount == 0 || hasDetour { return true }
    guard let claimed = receipt.claimedEnvironment, let signed = state.environment else { return false }
    return claimed != signed.rawValue
  }
}
