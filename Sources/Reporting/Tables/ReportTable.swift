import Spreadsheet

/// The tables of a report, in the order of their sheets. Names are a contract: macros and imports depend on them.
enum ReportTable: CaseIterable {
  case findings, periodFindings, changes, days, tieOut, settlement, products, users, amounts, refunds, sandbox,
    receipts, orders

  /// What is fixed about a table, whatever its rows.
  struct Shape: Sendable {
    /// As its tab says.
    let title: StaticString
    /// The name by which formulas call the table on its first sheet; the next ones have a number behind it.
    let formulaName: StaticString
    /// nil: there is a sheet only.
    let fileName: String?
    /// What its rows are.
    let meaning: String
    /// What a reader of the sheet should know, as one sentence.
    let sheetNote: String
    /// The columns that tell its rows apart.
    let primaryKey: [String]
    /// Whether a row may lack a part of that, or share it with another row.
    var keysMayFail = false
    /// The order of the sheet's columns; empty: the file's.
    var sheetOrder: [String] = []
    /// Columns that stay in view when the sheet is scrolled sideways.
    var frozenColumns = 1
    /// The column that says what a line of sums is; nil: no lines with the sums per currency stand below the rows.
    /// Sandbox money is in no total, and one order may have several findings.
    var totalLabelColumn: String?
    /// How many pages of paper the columns are spread over. At one page, some twenty columns would be too small to read.
    var pagesWide = 1
    /// How many columns from the left are printed; nil: all of them.
    var printedColumns: Int?
    /// Whether people fill in its columns for people.
    var takesEntries = false
    /// What a reader of its amounts must know besides ``moneyRule``.
    var moneyNote = ""
    var tabColour = Palette.grey
    /// What every printed page says about the figures.
    var pageNote: StaticString = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"

    /// The key that machines may count on; empty where there is none: who enforced one would refuse the file.
    var surePrimaryKey: [String] { keysMayFail ? [] : primaryKey }
  }

  var shape: Shape {
    switch self {
    case .findings: FindingLine.shape
    case .periodFindings: FindingLine.periodShape
    case .changes: ChangeRow.shape
    case .days: DayLine.shape
    case .tieOut: TieOutLine.shape
    case .settlement: SettlementLine.shape
    case .products: ProductLine.shape
    case .users: UserLine.shape
    case .amounts: PricePointLine.shape
    case .refunds: RefundRow.shape
    case .sandbox: SandboxRow.shape
    case .receipts: ReceiptLine.shape
    case .orders: OrderLine.shape
    }
  }

  /// The columns of its file.
  var columns: [ColumnHead] {
    switch self {
    case .findings, .periodFindings: FindingLine.columns.map(\.head)
    case .changes: ChangeRow.columns.map(\.head)
    case .days: DayLine.columns.map(\.head)
    case .tieOut: TieOutLine.columns.map(\.head)
    case .settlement: SettlementLine.columns.map(\.head)
    case .products: ProductLine.columns.map(\.head)
    case .users: UserLine.columns.map(\.head)
    case .amounts: PricePointLine.columns.map(\.head)
    case .refunds: RefundRow.columns.map(\.head)
    case .sandbox: SandboxRow.columns.map(\.head)
    case .receipts: ReceiptLine.columns.map(\.head)
    case .orders: OrderLine.columns.map(\.head)
    }
  }

  /// nil: there is a sheet only.
  var fileName: String? { shape.fileName }

  /// The twin of such a file for Excel.
  static func excelFileName(_ name: String) -> String { String(name.prefix { $0 != "." }) + ".excel.csv" }

  /// The sheet of this table, part 1, and those that carry it on, each when the one before is full.
  func sheetName(part: Int) -> SheetName { SheetName(shape.title, part: part) }

  /// For each column of the sheet its place in the file.
  var sheetColumns: [Int] {
    let columns = columns
    let order = shape.sheetOrder
    if order.isEmpty { return Array(columns.indices) }
    let first = order.compactMap { name in columns.firstIndex { $0.name == name } }
    return first + columns.indices.filter { !first.contains($0) }
  }

  /// What a reader of amounts must not take them for.
  static let moneyRule =
    "Customer amount as the shop recorded it, in the currency of the row. "
    + "Not Apple's proceeds, and not for revenue recognition."
}
