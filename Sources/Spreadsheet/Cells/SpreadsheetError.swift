import CXLSXWriter

/// An error of writing a workbook. Its description has no content of cells, so it is safe to log.
package struct SpreadsheetError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The reason, with its text in messages.
  package enum Code: String, Sendable {
    case closed = "the workbook is closed"
    case wrongWorkbook = "the format belongs to another workbook"
    case outOfRange = "outside Excel's 1,048,576 rows by 16,384 columns"
    case rowAlreadyWritten = "the sheet is streamed and has moved past this row"
    /// Longer than Excel's limit; see ``CellText/maximumLength`` and ``CellText/fitting(_:marker:)``.
    case textTooLong = "the text is longer than Excel takes here"
    /// NUL in a cell; control or non-characters where the file format cannot represent them.
    case textNotRepresentable = "the text has a character that the file format cannot carry here"
    case notFinite = "not a finite number"
    /// Write the number as text.
    case integerTooLarge = "more than 15 digits: Excel would change the number"
    case dateOutOfRange = "not a day and time between 1900 and 9999"
    case tooManyLinks = "65,530 hyperlinks are Excel's limit for a sheet"
    /// An invalid or duplicate name of a sheet, table, column or range.
    case nameNotAllowed = "a name that Excel does not take, or one used twice"
    case filterConflict = "a sheet has either a table or an autofilter"
    case parameterNotAllowed = "outside Excel's limits"
    case directoryNotUsable = "the directory is missing or not writable"
    case fileExists = "the file exists already"
    case cannotCreateFile = "the file cannot be created"
    case temporaryFileFailed = "a temporary file cannot be created, written or read; is the disk full?"
    case cannotWriteFile = "the file cannot be written; is the disk full?"
    case cannotSynchronize = "the file cannot be forced to disk"
    case outOfMemory = "out of memory"
    case unexpected = "refused by libxlsxwriter"
  }

  package let code: Code
  package let operation: String
  package private(set) var sheet: String?
  /// The zero-based row, if the error concerns a cell.
  package private(set) var row: Int?
  package private(set) var column: Int?
  /// The library's `lxw_error`, if the library refused.
  package let libraryCode: UInt32?
  package let systemError: Int32?

  init(
    _ code: Code, _ operation: StaticString, sheet: String? = nil, row: Int? = nil, column: Int? = nil,
    libraryCode: lxw_error? = nil, systemError: Int32? = nil
  ) {
    self.code = code
    self.operation = operation.description
    (self.sheet, self.row, self.column) = (sheet, row, column)
    self.libraryCode = libraryCode?.rawValue
    self.systemError = systemError
  }

  func at(_ sheet: SheetName, row: Int?, column: Int?) -> SpreadsheetError {
    var error = self
    (error.sheet, error.row, error.column) = (sheet.description, row, column)
    return error
  }

  package var description: String {
    var text = "workbook: cannot \(operation)"
    if let sheet { text += " on sheet \(sheet)" }
    if let row, let column { text += " at \(CellReference(row: row, column: column).a1)" }
    text += ": \(code.rawValue)"
    if let systemError { text += " (errno \(systemError))" }
    if let libraryCode { text += " (libxlsxwriter error \(libraryCode))" }
    return text
  }
}

extension SpreadsheetError.Code {
  init(_ error: lxw_error) {
    switch error {
    case LXW_ERROR_MEMORY_MALLOC_FAILED: self = .outOfMemory
    case LXW_ERROR_CREATING_XLSX_FILE: self = .cannotCreateFile
    case LXW_ERROR_CREATING_TMPFILE, LXW_ERROR_READING_TMPFILE: self = .temporaryFileFailed
    case LXW_ERROR_ZIP_FILE_OPERATION, LXW_ERROR_ZIP_PARAMETER_ERROR, LXW_ERROR_ZIP_BAD_ZIP_FILE,
      LXW_ERROR_ZIP_INTERNAL_ERROR, LXW_ERROR_ZIP_FILE_ADD, LXW_ERROR_ZIP_CLOSE:
      self = .cannotWriteFile
    case LXW_ERROR_SHEETNAME_LENGTH_EXCEEDED, LXW_ERROR_INVALID_SHEETNAME_CHARACTER,
      LXW_ERROR_SHEETNAME_START_END_APOSTROPHE, LXW_ERROR_SHEETNAME_ALREADY_USED:
      self = .nameNotAllowed
    case LXW_ERROR_32_STRING_LENGTH_EXCEEDED, LXW_ERROR_128_STRING_LENGTH_EXCEEDED,
      LXW_ERROR_255_STRING_LENGTH_EXCEEDED, LXW_ERROR_MAX_STRING_LENGTH_EXCEEDED:
      self = .textTooLong
    case LXW_ERROR_WORKSHEET_INDEX_OUT_OF_RANGE: self = .outOfRange
    case LXW_ERROR_WORKSHEET_MAX_NUMBER_URLS_EXCEEDED: self = .tooManyLinks
    case LXW_ERROR_PARAMETER_VALIDATION: self = .parameterNotAllowed
    default: self = .unexpected
    }
  }
}
