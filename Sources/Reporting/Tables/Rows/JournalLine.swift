import Crypto
import Reconciliation

/// A row of `journal.csv`: one side of a posted entry.
package struct JournalLine: Hashable, Sendable {
  package let entry: JournalEntry
  let line: JournalEntry.Line
  let account: String
  /// 16 bytes, which sort like the hexadecimal digits of the line's ID.
  package let digest: [UInt8]

  private init(_ entry: JournalEntry, _ line: JournalEntry.Line, account: String) {
    (self.entry, self.line, self.account) = (entry, line, account)
    digest = Array(SHA256.hash(data: Array(entry.name(of: line).utf8)).prefix(16))
  }

  /// The debit and the credit of an entry.
  /// - Parameter accounts: the ledger's names; a role without one has its own.
  package static func lines(of entry: JournalEntry, accounts: [JournalRole: String]) -> [JournalLine] {
    entry.lines.map { JournalLine(entry, $0, account: accounts[$0.role] ?? $0.role.rawValue) }
  }

  private var currency: Currency { entry.posting.amount.currency }

  private func amount(debit: Bool) -> Cell {
    line.isDebit == debit ? .decimal(Int128(line.minorUnits), digits: currency.digits) : .blank
  }

  private var text: String {
    let what =
      switch entry.event.kind {
      case .sale: "Sale of order"
      case .refund: "Refund of order"
      case .commission: "Apple's commission, fiscal period"
      case .tax: "Tax, fiscal period"
      case .payout: "Payout by Apple, fiscal period"
      }
    return "\(entry.isReversal ? "Reversal: " : "")\(what) \(entry.event.subject), \(entry.posting.day)"
  }
}

extension JournalLine: TableRow {
  static let table = ReportTable.journal

  static let shape = ReportTable.Shape(
    title: "Journal", formulaName: "JournalTable", fileName: "journal.csv",
    meaning: "Lines for the ledger, posted for the days of the period. A posted line is never edited.",
    sheetNote: "Lines for the ledger. A fact that changes later posts a reversal and a new line on a later day.",
    primaryKey: ["line_id"], totalLabelColumn: "line_id",
    emptyNote: "No line is posted for these days. An incomplete night posts none.",
    moneyNote: " Commission, tax and payout: Apple's amounts for a fiscal period.",
    pageNote: "&LCustomer amounts; commission, tax and payout are Apple's&RPage &P of &N")

  static let columns: [Column<JournalLine>] = [
    Column("line_id", .digest, 34, "The stable ID of the line.") { .text(hexadecimal($0.digest)) },
    Column("posted_for", .day, 13, "The business day that the line is posted for.") { .day($0.entry.postedFor) },
    Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.currency.code) },
    Column("account", .text, 22, "The ledger's account (journal.accounts).") { .text($0.account) },
    Column("debit", .amount, 14, "The amount on the debit side.") { $0.amount(debit: true) },
    Column("credit", .amount, 14, "The amount on the credit side.") { $0.amount(debit: false) },
    Column("text", .prose, 48, "The event and its day.") { .text($0.text) },
    Column("source", .id, 24, "The order's ID; of Apple's amounts fiscal period and currency.") {
      .id($0.entry.event.subject)
    },
    .app { $0.entry.posting.app },
  ]
}

/// A row of `stripe-import.csv`, the general import of Stripe Revenue Recognition.
package struct StripeImportLine: Sendable {
  let entry: JournalEntry

  /// - Returns: nil for an entry that is no revenue: commission, tax and payout.
  package init?(_ entry: JournalEntry) {
    switch entry.event.kind {
    case .sale, .refund: self.entry = entry
    case .commission, .tax, .payout: return nil
    }
  }

  /// Sorts rows by day, order and posting.
  package var sortingKey: [UInt8] {
    [UInt8](entry.postedFor.utf8) + [0] + entry.event.subject.bytes + [0] + [UInt8](splitId.utf8)
  }

  private var splitId: String { "\(entry.event.kind.rawValue)-\(entry.version)\(entry.isReversal ? "-reversal" : "")" }

  private var amount: Cell {
    let units = entry.signedUnits
    return .decimal(entry.event.kind == .refund ? -units : units, digits: entry.posting.amount.currency.digits)
  }

  private var days: ClosedRange<String> { entry.posting.service ?? entry.posting.day...entry.posting.day }
}

extension StripeImportLine: TableRow {
  static let table = ReportTable.stripeImport

  static let shape = ReportTable.Shape(
    title: "Stripe import", formulaName: "StripeImportTable", fileName: "stripe-import.csv",
    meaning: "Sales and refunds of the journal as the general import of Stripe Revenue Recognition takes them.",
    sheetNote: "Sales and refunds for Stripe Revenue Recognition.",
    primaryKey: ["transaction_id", "split_transaction_id"],
    keysMayFail: true)

  static let columns: [Column<StripeImportLine>] = [
    Column("source", .text, 12, "The provider of the transaction.") { _ in .text("App Store") },
    Column("transaction_id", .id, 20, "Apple's transaction ID; the order's ID where no transaction is known.") {
      .id($0.entry.posting.transactionId ?? $0.entry.event.subject)
    },
    Column("split_transaction_id", .text, 22, "The posting of the transaction.") { .text($0.splitId) },
    Column("booked_date", .day, 13, "The business day that the entry is posted for.") { .day($0.entry.postedFor) },
    Column("recognition_start_date", .day, 13, "First day of the service period, else the day of the event.") {
      .day($0.days.lowerBound)
    },
    Column("recognition_end_date", .day, 13, "Last day of the service period, else the day of the event.") {
      .day($0.days.upperBound)
    },
    Column("amount", .amount, 14, "The amount; negative for a refund and for a reversed sale.") { $0.amount },
    Column("currency", .currency, 10, "ISO 4217 code.") { .text($0.entry.posting.amount.currency.code) },
    Column("description", .prose, 40, "The order.") {
      .text("\($0.entry.event.kind == .refund ? "Refund" : "Sale") of order \($0.entry.event.subject)")
    },
  ]
}
