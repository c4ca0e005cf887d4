import CXLSXWriter

/// The actions allowed on a protected sheet, besides changing unlocked cells.
package struct SheetPermissions: OptionSet, Sendable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// Needed to read long texts and to copy.
  package static let selectLockedCells = SheetPermissions(rawValue: 1 << 0)
  /// Needed to fill in unlocked cells.
  package static let selectUnlockedCells = SheetPermissions(rawValue: 1 << 1)
  package static let formatColumns = SheetPermissions(rawValue: 1 << 3)
  package static let formatRows = SheetPermissions(rawValue: 1 << 4)
  /// Sort ranges whose cells are all unlocked.
  package static let sort = SheetPermissions(rawValue: 1 << 5)
  package static let filter = SheetPermissions(rawValue: 1 << 6)
}

extension Sheet {
  /// Protects the sheet without a password, against accidental changes. Excel sorts it only if all cells are unlocked.
  package func protect(allowing permissions: SheetPermissions) throws(SpreadsheetError) {
    try ensureOpen("protect sheet")
    func flag(_ permission: SheetPermissions) -> UInt8 { permissions.contains(permission) ? 1 : 0 }
    var options = lxw_protection()
    options.no_select_locked_cells = 1 - flag(.selectLockedCells)
    options.no_select_unlocked_cells = 1 - flag(.selectUnlockedCells)
    options.format_columns = flag(.formatColumns)
    options.format_rows = flag(.formatRows)
    options.sort = flag(.sort)
    options.autofilter = flag(.filter)
    unsafe worksheet_protect(worksheet, nil, &options)
  }
}
