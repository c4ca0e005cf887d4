import Reconciliation
import Spreadsheet

/// The tables of a report, in the order of their sheets. Macros and imports depend on the names. `stripeImport` has a
/// file and no sheet.
enum ReportTable: Int, CaseIterable {
  case findings, periodFindings, changes, days, tieOut, settlement, products, users, amounts, refunds, refundRequests,
    journal, sandbox, receipts, orders, stripeImport

  struct Shape: Sendable {
    let title: StaticString
    /// The Excel table name on the first sheet; further sheets append a number.
    let formulaName: StaticString
    /// nil for a table without a file.
    let fileName: String?
    let meaning: String
    let sheetNote: String
    let primaryKey: [String]
    /// True if rows may lack a part of the key, or share it.
    var keysMayFail = false
    /// The order of the sheet's columns; empty for the file's order.
    var sheetOrder: [String] = []
    var frozenColumns = 1
    /// The column of the label of sums; nil for a sheet without sums by currency. Sandbox money is in no total, and an
    /// order may have several findings.
    var totalLabelColumn: String?
    /// Printed pages side by side; twenty columns on one page would be too small to read.
    var pagesWide = 1
    /// Number of printed columns from the left; nil for all.
    var printedColumns: Int?
    var takesEntries = false
    var emptyNote: String?
    /// A remark on its amounts besides ``moneyRule``.
    var moneyNote = ""
    var tabColour = Palette.grey
    var pageNote: StaticString = "&LCustomer amounts as recorded, not proceeds&RPage &P of &N"

    /// The key that machines may enforce; empty if rows may violate it.
    var surePrimaryKey: [String] { keysMayFail ? [] : primaryKey }
  }

  static func excelFileName(_ name: String) -> String { String(name.prefix { $0 != "." }) + ".excel.csv" }

  static let moneyRule =
    "Customer amount as the shop recorded it, in the currency of the row. "
    + "Not Apple's proceeds, and not for revenue recognition."
}
