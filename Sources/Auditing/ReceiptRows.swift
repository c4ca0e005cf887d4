import AuditStore
import Postgres
import Reconciliation
import SalesStore
import Streams

/// A receipt of the shop together with the state of its check.
struct ReceiptRow {
  var receipt: Receipt
  /// Whether the filters list it.
  var isListed: Bool
  /// Whether it brought a transaction that is filed under another order.
  var hasDetour = false

  private static let receiptColumns = """
    r.receipt_id::text, r.order_id::text, r.user_id::text, r.environment::text, r.status::text, \
    r.received_at::timestamptz
    """

  /// All receipts in the byte order of their ids, without their checks: two single streams cost less than a join.
  ///
  /// - Parameter condition: what the filters list, on receipts aliased `r`.
  static func receipts(_ sales: SalesRows, condition: String) -> String {
    """
    SELECT \(receiptColumns), (\(condition)) AS listed FROM \(sales.schema).receipts r
    ORDER BY r.receipt_id::text COLLATE "C"
    """
  }

  /// The checks of all receipts, in the byte order of their ids.
  static let checks = """
    SELECT c.subject_id, \(ProofState.columns) FROM night_audit.receipt_checks c WHERE c.subject_kind = 'receipt' ORDER BY c.subject_id
    """

  /// Some receipts with their checks, in the byte order of their ids: the columns of both, one after the other.
  static func joined(_ sales: SalesRows, where restriction: String) -> String {
    """
    SELECT \(receiptColumns), TRUE AS listed, \(ProofState.columns)
    FROM \(sales.schema).receipts r
    LEFT JOIN night_audit.receipt_checks c ON c.subject_kind = 'receipt' AND c.subject_id = r.receipt_id::text
    WHERE \(restriction)
    ORDER BY r.receipt_id::text COLLATE "C"
    """
  }

  /// A row of `receipts`.
  init(_ row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    let received = try SalesRows.timestamp(row, 5)
    receipt = Receipt(
      receiptId: try row.optionalId(0) ?? "", orderId: try row.optionalId(1), userId: try row.optionalId(2),
      claimedEnvironment: try row.optionalText(3), receivedAt: received.instant ?? asOf, state: .neverChecked)
    receipt.defect = SalesRows.receiptDefect(status: try row.optionalText(4), receivedAt: received)
    isListed = try row.optionalBool(6) ?? false
  }

  /// A row of `joined`.
  init(joined row: borrowing CopyReader, asOf: Instant) throws(PostgresError) {
    try self.init(row, asOf: asOf)
    if let state = try ProofState(row, from: 7) { receipt.state = state }
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

/// All receipts with their checks, in the byte order of their ids: two ordered streams, merged.
struct ReceiptStream: ~Copyable {
  private var receipts: CopyReader
  private var checks: CopyReader
  private var hasCheck: Bool
  /// Receipts that brought a transaction filed under another order, in the byte order of their ids.
  private let detours: [Identifier]
  /// The first of them that has not been passed.
  private var nextDetour = 0
  private let asOf: Instant

  /// - Parameters:
  ///   - connection: reads the receipts.
  ///   - other: reads the checks, in the same snapshot.
  ///   - condition: what the filters list, on receipts aliased `r`.
  init(
    _ connection: borrowing BlockingConnection, _ other: borrowing BlockingConnection, _ sales: SalesRows,
    condition: String, asOf: Instant
  ) throws(PostgresError) {
    var reader = try connection.copyOut(
      """
      SELECT subject_id FROM night_audit.receipt_transactions WHERE is_detour AND subject_kind = 'receipt'
      ORDER BY subject_id
      """)
    var detours: [Identifier] = []
    while try reader.advance() { detours.append(try reader.id(0)) }
    let receipts = try connection.copyOut(ReceiptRow.receipts(sales, condition: condition))
    var checks = try other.copyOut(ReceiptRow.checks)
    hasCheck = try checks.advance()
    self.receipts = receipts
    self.checks = checks
    self.detours = detours
    self.asOf = asOf
  }

  /// The next receipt; nil after the last.
  mutating func next() throws(PostgresError) -> ReceiptRow? {
    guard try receipts.advance() else { return nil }
    var row = try ReceiptRow(receipts, asOf: asOf)
    // A view may give a receipt without an id: it comes last, is reported, and has no check.
    if try receipts.isNull(0) { return row }
    while hasCheck {
      let order = try checks.compareBytes(0, to: receipts, 0)
      if order < 0 {
        hasCheck = try checks.advance()
        continue
      }
      if order == 0 {
        if let state = try ProofState(checks, from: 1) { row.receipt.state = state }
        while nextDetour < detours.count, detours[nextDetour] < row.receipt.receiptId { nextDetour += 1 }
        row.hasDetour = nextDetour < detours.count && detours[nextDetour] == row.receipt.receiptId
      }
      break
    }
    return row
  }
}
