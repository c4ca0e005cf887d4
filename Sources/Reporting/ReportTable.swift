import Reconciliation
import Spreadsheet

/// What a column holds. Files and sheets show the same value each in its own way.
enum ColumnKind {
  case text
  /// A word of the program's own that a sheet prints as people write it.
  case word
  /// The order that a sheet links to.
  case orderLink
  /// Filled in by people in the sheet.
  case people
  /// One of the statuses that people choose from.
  case status
  /// Sentences.
  case prose
  case count
  /// A count of its own rows, added up below a sheet by currency.
  case tally
  /// A number that is a name: never grouped.
  case code
  /// Money, added up below a sheet by currency.
  case amount
  /// The part of such money that one disposition has: mostly none of it.
  case share
  /// Money that means nothing added up.
  case price
  case percentage
  case instant

  var isMoney: Bool {
    switch self {
    case .amount, .share, .price: true
    case .text, .word, .orderLink, .people, .status, .prose, .count, .tally, .code, .percentage, .instant: false
    }
  }

  var isNumber: Bool {
    switch self {
    case .count, .tally, .code, .amount, .share, .price, .percentage: true
    case .text, .word, .orderLink, .people, .status, .prose, .instant: false
    }
  }
}

struct Column {
  /// As CSV heads it.
  let name: String
  let kind: ColumnKind
  /// In characters.
  let width: Double

  init(_ name: String, _ kind: ColumnKind, _ width: Double) {
    self.name = name
    self.kind = kind
    self.width = width
  }

  /// As a sheet heads it: underscores as spaces, the first letter a capital.
  var title: String { name.asWords }
}

/// The tables of a report. Their columns are a contract: macros and imports depend on names and order.
enum ReportTable: CaseIterable {
  case findings, users, amounts, refunds, sandbox, receipts, orders

  var fileName: String {
    switch self {
    case .findings: "findings.csv"
    case .users: "users.csv"
    case .amounts: "amounts.csv"
    case .refunds: "refunds.csv"
    case .sandbox: "sandbox.csv"
    case .receipts: "receipts.csv"
    case .orders: "orders.csv"
    }
  }

  var columns: [Column] {
    switch self {
    case .findings:
      [
        Column("finding_id", .text, 12), Column("kind", .word, 24), Column("severity", .text, 10),
        Column("order_id", .orderLink, 21), Column("user_id", .text, 19), Column("product_id", .text, 18),
        Column("transaction_id", .text, 20), Column("receipt_id", .text, 16), Column("delivery_id", .text, 16),
        Column("environment", .text, 13), Column("currency", .text, 10), Column("amount", .price, 14),
        Column("at_stake", .amount, 14), Column("paid_at", .instant, 20), Column("delivered_at", .instant, 20),
        Column("first_seen", .instant, 20), Column("age_days", .count, 10), Column("status", .status, 14),
        Column("owner", .people, 16), Column("reason", .prose, 64), Column("suggested_action", .prose, 58),
      ]
    case .users:
      [Column("user_id", .text, 20), Column("currency", .text, 10)] + ReportTable.money
    case .amounts:
      [Column("currency", .text, 10), Column("amount", .price, 14), Column("product_id", .text, 24)] + ReportTable.money
    case .refunds:
      [
        Column("transaction_id", .text, 20), Column("order_id", .text, 21), Column("user_id", .text, 19),
        Column("product_id", .text, 18), Column("currency", .text, 10), Column("amount", .amount, 14),
        Column("percentage", .percentage, 12), Column("purchased_at", .instant, 20),
        Column("refunded_at", .instant, 20),
        Column("reason", .text, 14), Column("disposition", .text, 24),
      ]
    case .sandbox:
      [
        Column("user_id", .text, 20), Column("product_id", .text, 24), Column("currency", .text, 10),
        Column("orders", .tally, 10), Column("amount", .amount, 14), Column("allowed", .text, 10),
      ]
    case .receipts:
      [
        Column("receipt_id", .text, 18), Column("order_id", .text, 21), Column("user_id", .text, 19),
        Column("kind", .text, 12), Column("channel", .text, 14), Column("environment", .text, 13),
        Column("outcome", .text, 12), Column("apple_status", .code, 13), Column("attempts", .count, 10),
        Column("last_attempt", .instant, 20), Column("next_attempt", .instant, 20), Column("age_days", .count, 10),
        Column("reason", .text, 20),
      ]
    case .orders:
      [
        Column("order_id", .text, 21), Column("user_id", .text, 19), Column("product_id", .text, 18),
        Column("quantity", .count, 10), Column("currency", .text, 10), Column("amount", .amount, 14),
        Column("status", .text, 11), Column("disposition", .text, 24), Column("payment", .text, 13),
        Column("payment_reason", .text, 18), Column("transaction_id", .text, 20), Column("environment", .text, 13),
        Column("created_at", .instant, 20), Column("paid_at", .instant, 20), Column("delivered_at", .instant, 20),
        Column("refunded_at", .instant, 20), Column("checked_at", .instant, 20), Column("findings", .text, 40),
      ]
    }
  }

  /// The sheet of this table, part 1, and those that carry it on, each when the one before is full.
  func sheetName(part: Int) -> SheetName { SheetName(title, part: part) }

  private var title: StaticString {
    switch self {
    case .findings: "Findings"
    case .users: "Users"
    case .amounts: "Amounts"
    case .refunds: "Refunds"
    case .sandbox: "Sandbox"
    case .receipts: "Receipts"
    case .orders: "Orders"
    }
  }

  /// The name by which formulas call the table on its first sheet; the next ones have a number behind it.
  var tableName: StaticString {
    switch self {
    case .findings: "FindingsTable"
    case .users: "UsersTable"
    case .amounts: "AmountsTable"
    case .refunds: "RefundsTable"
    case .sandbox: "SandboxTable"
    case .receipts: "ReceiptsTable"
    case .orders: "OrdersTable"
    }
  }

  /// The columns of its sheet: the file's, and what people add.
  var sheetColumns: [Column] {
    switch self {
    case .findings: columns + [Column("remark", .people, 36)]
    case .users, .amounts, .refunds, .sandbox, .receipts, .orders: columns
    }
  }

  /// Columns that stay in view when the sheet is scrolled sideways.
  var frozenColumns: Int {
    switch self {
    case .findings: 4
    case .amounts: 3
    case .users: 2
    case .refunds, .sandbox, .receipts, .orders: 1
    }
  }

  /// Whether lines with the sums per currency stand below the rows. Sandbox money is in no total, and one order may have
  /// several findings.
  var hasTotals: Bool {
    switch self {
    case .users, .amounts, .refunds: true
    case .findings, .sandbox, .receipts, .orders: false
    }
  }

  /// How many pages of paper the columns are spread over. At one page, some twenty columns would be too small to read.
  var pagesWide: Int {
    switch self {
    case .findings, .orders: 2
    case .users, .amounts, .refunds, .sandbox, .receipts: 1
    }
  }

  /// The column that says what a line of sums is.
  var totalLabelColumn: String? {
    switch self {
    case .users: "user_id"
    case .amounts: "product_id"
    case .refunds: "transaction_id"
    case .findings, .sandbox, .receipts, .orders: nil
    }
  }

  /// What a reader of its amounts must not take them for.
  var moneyNote: String {
    let rule =
      "Customer amount as the shop recorded it, in the currency of the row. "
      + "Not Apple's proceeds, and not for revenue recognition."
    return switch self {
    case .findings, .users, .amounts, .orders: rule
    case .refunds: rule + " Negative: the share of it that Apple gave back."
    case .sandbox: rule + " Sandbox purchases are play money and in no total."
    case .receipts: rule
    }
  }

  var tabColour: Colour {
    switch self {
    case .findings: Palette.red
    case .users, .amounts: Palette.blue
    case .refunds, .sandbox, .receipts, .orders: Palette.grey
    }
  }

  /// How many orders, what they come to, and that sum by disposition.
  private static let money =
    [Column("orders", .tally, 10), Column("ordered", .amount, 14)]
    + Disposition.inMoneyTotals.map { Column($0.rawValue, .share, 14) }
}
