import CXLSXWriter
import Glibc

/// The owner of the library's workbook, kept alive by sheets and formats. Once it is finished or abandoned, `workbook`
/// is nil and their calls throw `closed`, so that no freed pointer is used.
@safe
final class WorkbookHandle {
  private(set) var workbook: UnsafeMutablePointer<lxw_workbook>?
  private let path: String
  private let temporaryDirectory: String
  private var sheets: [SheetRecord] = []

  init(path: String, temporaryDirectory: String) throws(SpreadsheetError) {
    let operation: StaticString = "create workbook"
    guard !path.utf8.contains(0), !temporaryDirectory.utf8.contains(0) else {
      throw SpreadsheetError(.parameterNotAllowed, operation)
    }
    // Checked early, before the rows are written. The exclusive creation in `finish` decides.
    for directory in [temporaryDirectory, Self.directory(of: path)] {
      guard unsafe access(directory, W_OK | X_OK) == 0 else {
        throw SpreadsheetError(.directoryNotUsable, operation, systemError: errno)
      }
    }
    guard unsafe access(path, F_OK) != 0 else { throw SpreadsheetError(.fileExists, operation) }

    guard let workbook = unsafe na_workbook_new(path, temporaryDirectory) else {
      throw SpreadsheetError(.outOfMemory, operation)
    }
    (self.path, self.temporaryDirectory) = (path, temporaryDirectory)
    unsafe self.workbook = workbook
  }

  deinit { abandon() }

  func set(_ properties: DocumentProperties) throws(SpreadsheetError) {
    let operation: StaticString = "set document properties"
    var strings = CStrings()
    var values = unsafe lxw_doc_properties()
    unsafe na_set_properties(
      &values, strings.copy(properties.title), strings.copy(properties.subject), strings.copy(properties.author),
      strings.copy(properties.comments))
    unsafe values.created = time_t(properties.created)
    var result = unsafe workbook_set_properties(workbook, &values)
    for (name, value) in properties.custom where result == LXW_NO_ERROR {
      result = unsafe workbook_set_custom_property_string(workbook, name, value)
    }
    guard result == LXW_NO_ERROR else { throw SpreadsheetError(.init(result), operation, libraryCode: result) }
  }

  /// Writes the file and synchronizes it. The workbook is always freed, and a failed file is removed.
  func finish() throws(SpreadsheetError) {
    let operation: StaticString = "write workbook"
    guard let workbook = unsafe workbook else { throw SpreadsheetError(.closed, operation) }
    // The library would create it with access for all, and overwrite an existing file.
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else {
      let error = errno
      abandon()
      throw SpreadsheetError(error == EEXIST ? .fileExists : .cannotCreateFile, operation, systemError: error)
    }
    var failure: SpreadsheetError?
    for sheet in sheets {
      if let error = sheet.flush(), failure == nil {
        failure = SpreadsheetError(.temporaryFileFailed, operation, sheet: sheet.name, systemError: error)
      }
    }
    if let error = missingDirectory(), failure == nil {
      failure = SpreadsheetError(.temporaryFileFailed, operation, systemError: error)
    }
    if failure == nil {
      for sheet in sheets { sheet.discardIfEmpty() }
      errno = 0
      // workbook_close frees the workbook even if it fails. Temporary files that it had not reached then stay open
      // until the process ends.
      let (result, error) = unsafe (workbook_close(workbook), errno)
      unsafe self.workbook = nil
      if result != LXW_NO_ERROR {
        failure = SpreadsheetError(.init(result), operation, libraryCode: result, systemError: error == 0 ? nil : error)
      } else if fsync(descriptor) != 0 {
        failure = SpreadsheetError(.cannotSynchronize, "synchronize workbook", systemError: errno)
      }
    } else {
      abandon()
    }
    if close(descriptor) != 0, failure == nil {
      failure = SpreadsheetError(.cannotSynchronize, "close workbook", systemError: errno)
    }
    do throws(SpreadsheetError) {
      if let failure { throw failure }
      try FinishedFile.prove(path, sheets: sheets.map(\.expected))
    } catch {
      _ = unsafe unlink(path)
      throw error
    }
  }

  func abandon() {
    guard let workbook = unsafe workbook else { return }
    for sheet in sheets { sheet.discard() }
    unsafe self.workbook = nil
    unsafe lxw_workbook_free(workbook)
  }

  func add(_ sheet: SheetRecord) { sheets.append(sheet) }

  /// Returns `errno` if no temporary files can be created. The library would silently use another directory.
  func missingDirectory() -> Int32? { unsafe access(temporaryDirectory, W_OK | X_OK) == 0 ? nil : errno }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

/// A format of one workbook, made by ``Workbook/addFormat(_:)``. It keeps the workbook's memory alive.
@safe
package struct CellFormat {
  let pointer: UnsafeMutablePointer<lxw_format>
  let handle: WorkbookHandle
}
