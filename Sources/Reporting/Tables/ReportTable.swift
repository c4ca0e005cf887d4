import Spreadsheet

/// The tables of a report, in the order of their sheets. Macros and imports depend on the names.
///
/// `stripeImport` has a file and no sheet.
enum ReportTable: CaseIterable {
  case findings, periodFindings, changes, days, tieOut, settlement, products, users, amounts, refunds, refundRequests,
    journal, sandbox, receipts, orders, stripeImport

  /// The fixed properties of a table.
  struct Shape: Sendable {
    /// The title on the tab.
    let title: StaticString
    /// The Excel table name on the first sheet; further sheets append a number.
    let formulaName: StaticString
    /// nil for a table without a file.
    let fileName: String?
    /// The meaning of a row.
    let meaning: String
    /// A sentence for readers of the sheet.
    let sheetNote: String
    let primaryKey: [String]
    /// True if rows may lack a part of the key, or share it.
    var keysMayFail = false
    /// The order of the sheet's columns; empty for the file's order.
    var sheetOrder: [String] = []
    var frozenColumns = 1
    /// The column of the label of sums; nil for a sheet without sums by currency.
    ///
    /// Sandbox money is in no total, and an order may have several findings.
    var totalLabelColumn: String?
    /// Printed pages side by side; twenty columns on one page would be too small to read.
    var pagesWide = 1
    /// Number of printed columns from the left; nil for all.
    var printedColumns: Int?
    var takesEntries = false
    /// A sentence on the sheet if it has no rows.
    var emptyNote: String?
    /// A remark on its amounts besides ``moneyRule``.
    var moneyNote = ""
    var tabColour = Palette.grey
    /// The footer of every printed page.
    var pageNote: StaticString = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"

    /// The key that machines may enforce; empty if rows may violate it.
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
    case .refundRequests: RefundRequestRow.shape
    case .journal: JournalLine.shape
    case .stripeImport: StripeImportLine.shape
    case .sandbox: SandboxRow.shape
    case .receipts: ReceiptLine.shape
    case .orders: OrderLine.shape
    }
  }

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
    case .refundRequests: RefundRequestRow.columns.map(\.head)
    case .journal: JournalLine.columns.map(\.head)
    case .stripeImport: StripeImportLine.columns.map(\.head)
    case .sandbox: SandboxRow.columns.map(\.head)
    case .receipts: ReceiptLine.columns.map(\.head)
    case .orders: OrderLine.columns.map(\.head)
    }
  }

  var fileName: String? { shape.fileName }

  /// The name of the file for Excel.
  static func excelFileName(_ name: String) -> String { String(name.prefix { $0 != "." }) + ".excel.csv" }

  /// The sheet of a table, or a continuation of it.
  func sheetName(part: Int) -> SheetName { SheetName(shape.title, part: part) }

  /// For each sheet column its position in the file.
  var sheetColumns: [Int] {
    let columns = columns
    let order = shape.sheetOrder
    if order.isEmpty { return Array(columns.indices) }
    let first = order.compactMap { name in columns.firstIndex { $0.name == name } }
    return first + columns.indices.filter { !first.contains($0) }
  }

  /// The remark on amounts of every table.
  static let moneyRule =
    "Customer amount as the shop recorded it, in the currency of the row. "
    + "Not Apple's proceeds, and not for revenue recognition."
}
