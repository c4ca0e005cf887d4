import Reconciliation

extension Receipt: TableRow {
  static var table: ReportTable { .receipts }
  static var shape: ReportTable.Shape { receiptShape }
  static var columns: [Column<Receipt>] { receiptColumns }
}

private let receiptShape = ReportTable.Shape(
  title: "Receipts", formulaName: "ReceiptsTable", fileName: "receipts.csv",
  meaning: "Every proof of purchase in scope, with the result of asking Apple about it.",
  sheetNote: "Every proof of purchase in scope, with the result of asking Apple.", primaryKey: ["receipt_id"],
  keysMayFail: true, pageNote: "&LNo amounts on this sheet&RPage &P of &N")

private let receiptColumns: [Column<Receipt>] = [
  Column("receipt_id", .id, 18, "The shop's id of the proof of purchase.") { .id($0.receiptId) },
  Column("order_id", .id, 21, "The shop's id of the order that it was sent for.") { Cell($0.orderId) },
  Column("user_id", .user, 21, "Who sent it.") { Cell($0.userId) },
  Column("kind", .spelt(), 22, "What the payload is: app receipt, old transaction receipt, or signed transaction.") {
    Cell($0.state.kind?.rawValue)
  },
  Column("channel", .spelt(), 21, "Which of Apple's interfaces answered.") { Cell($0.state.channel?.rawValue) },
  Column("environment", .text, 13, "Apple's environment of the proof.") { Cell($0.state.environment?.rawValue) },
  Column("outcome", .word(CheckOutcome.allCases.map(\.rawValue)), 12, "The result of the check.") {
    .text($0.state.outcome.rawValue)
  },
  Column("apple_status", .code, 14, "Apple's status or error number.") { Cell($0.state.appleStatus) },
  Column("attempts", .things, 10, "How often Apple was asked.") { .count(Int64($0.state.attempts)) },
  Column("last_attempt", .instant, 20, "As-of of the run that asked last.") { Cell($0.state.lastAttempt) },
  Column("next_attempt", .instant, 20, "When it is due again.") { Cell($0.state.nextAttempt) },
  Column("received_at", .instant, 20, "When the shop received it.") {
    Cell($0.isUndated ? nil : $0.receivedAt)
  },
  Column("reason", .spelt(), 20, "Why it is not verified.") {
    $0.state.outcome == .verified ? .blank : Cell($0.state.reason?.rawValue)
  },
]

extension CSVText {
  /// Writes the cells of `Receipt.columns` of a verified receipt from its bytes; nearly all rows.
  mutating func put(_ receipt: BorrowedReceipt) {
    let state = receipt.state
    text(receipt.receiptId)
    optional(receipt.orderId)
    optional(receipt.userId)
    if let kind = state.kind { text(kind.rawValue) } else { blank() }
    if let channel = state.channel { text(channel.rawValue) } else { blank() }
    if let environment = state.environment { text(environment.rawValue) } else { blank() }
    word("verified")
    if let status = state.appleStatus { decimal(Int128(status), digits: 0) } else { blank() }
    decimal(Int128(state.attempts), digits: 0)
    instant(state.lastAttempt)
    instant(state.due?.from)
    instant(receipt.receivedAt)
    blank()
  }

  private mutating func optional(_ id: BorrowedText?) {
    if let id { text(id) } else { blank() }
  }
}
