import CXLSXWriter

/// An XLSX file being written: `init`, sheets, `close()`. `close()` creates the file at `path` and synchronizes it; the
/// caller renames it and synchronizes the directory. One task writes one workbook; neither it nor its sheets are
/// `Sendable`.
package struct Workbook: ~Copyable {
  package enum Storage: Sendable {
    /// In a temporary file: constant memory, ascending rows. For sheets of any length.
    case streamed
    /// In memory, about 120 bytes per cell: any order, and charts get cached values. For some thousand rows.
    case inMemory
  }

  private let handle: WorkbookHandle

  /// - Parameters:
  ///   - path: where `close()` creates the file; must not exist.
  ///   - temporaryDirectory: must have room for the uncompressed sheets, about 60 bytes per cell.
  package init(path: String, temporaryDirectory: String, properties: DocumentProperties) throws(SpreadsheetError) {
    try properties.check()
    let handle = try WorkbookHandle(path: path, temporaryDirectory: temporaryDirectory)
    try handle.set(properties)
    self.handle = handle
  }

  deinit { handle.abandon() }

  /// Writes the file and synchronizes it; after an error no file is left. The library also prints write errors to
  /// stderr.
  package consuming func close() throws(SpreadsheetError) { try handle.finish() }

  /// Appends a sheet. Throws `nameNotAllowed`, also for an existing name regardless of case.
  package func addSheet(named name: SheetName, storage: Storage) throws(SpreadsheetError) -> Sheet {
    let operation: StaticString = "add sheet"
    let workbook = unsafe try open(operation)
    guard name.isAllowed, unsafe workbook_validate_sheet_name(workbook, name.description) == LXW_NO_ERROR else {
      throw SpreadsheetError(.nameNotAllowed, operation, sheet: name.description)
    }
    if storage == .streamed, let error = handle.missingDirectory() {
      throw SpreadsheetError(.temporaryFileFailed, operation, sheet: name.description, systemError: error)
    }
    // The library has one option per workbook, but reads it only here, to copy it into the sheet.
    unsafe workbook.pointee.options.constant_memory = storage == .streamed ? 1 : 0
    guard let worksheet = unsafe workbook_add_worksheet(workbook, name.description) else {
      throw SpreadsheetError(
        storage == .streamed ? .temporaryFileFailed : .outOfMemory, operation, sheet: name.description)
    }
    handle.add(unsafe SheetRecord(name: name.description, worksheet: worksheet))
    return unsafe Sheet(name: name, worksheet: worksheet, handle: handle)
  }

  /// Defines a name for a range in the whole workbook. It has at most 100 bytes because of the library's buffers.
  package func defineName(_ name: String, for range: SheetRange) throws(SpreadsheetError) {
    let operation: StaticString = "define name"
    let workbook = unsafe try open(operation)
    guard DefinedName.isAllowed(name), name.utf8.count <= 100, range.sheet.isAllowed else {
      throw SpreadsheetError(.nameNotAllowed, operation)
    }
    guard range.range.isOnSheet else { throw SpreadsheetError(.outOfRange, operation) }
    guard unsafe workbook_define_name(workbook, name, "=\(range.sheet.quoted)!\(range.range.absolute)") == LXW_NO_ERROR
    else { throw SpreadsheetError(.nameNotAllowed, operation) }
  }

  /// Adds a format for cells of this workbook. Equal styles share one entry in the file.
  package func addFormat(_ style: CellStyle) throws(SpreadsheetError) -> CellFormat {
    try style.check()
    guard let format = unsafe workbook_add_format(try open("add format")) else {
      throw SpreadsheetError(.outOfMemory, "add format")
    }
    unsafe style.apply(to: format)
    return unsafe CellFormat(pointer: format, handle: handle)
  }

  package func addChart(_ chart: Chart, to sheet: Sheet, row: Int, column: Int) throws(SpreadsheetError) {
    let operation: StaticString = "add chart"
    let workbook = unsafe try open(operation)
    guard sheet.handle === handle else { throw SpreadsheetError(.wrongWorkbook, operation) }
    try chart.check()
    guard let pointer = unsafe workbook_add_chart(workbook, chart.kind.type) else {
      throw SpreadsheetError(.outOfMemory, operation)
    }
    unsafe try chart.fill(pointer)
    unsafe try sheet.insert(pointer, chart, row: row, column: column)
  }

  private func open(_ operation: StaticString) throws(SpreadsheetError) -> UnsafeMutablePointer<lxw_workbook> {
    guard let workbook = unsafe handle.workbook else { throw SpreadsheetError(.closed, operation) }
    return unsafe workbook
  }
}
