import CXLSXWriter
import Glibc

/// Owns the library's workbook. Sheets and formats keep it alive, so none of their pointers is used after it is freed:
/// once the workbook is finished or abandoned `workbook` is nil, and every call of theirs throws `closed`.
@safe
final class WorkbookHandle {
  private(set) var workbook: UnsafeMutablePointer<lxw_workbook>?
  private let path: String
  private let permissions: mode_t
  private let temporaryFiles: TemporaryFiles

  init(path: String, permissions: mode_t, temporaryDirectory: String) throws(SpreadsheetError) {
    let operation: StaticString = "create workbook"
    guard !path.utf8.contains(0), !temporaryDirectory.utf8.contains(0) else {
      throw SpreadsheetError(.parameterNotAllowed, operation)
    }
    // Found now rather than after the last row. What counts is still the exclusive creation in `finish`.
    for directory in [temporaryDirectory, Self.directory(of: path)] {
      guard unsafe access(directory, W_OK | X_OK) == 0 else {
        throw SpreadsheetError(.directoryNotUsable, operation, systemError: errno)
      }
    }
    guard unsafe access(path, F_OK) != 0 else { throw SpreadsheetError(.fileExists, operation) }

    var strings = CStrings()
    var options = unsafe lxw_workbook_options(
      constant_memory: 0, tmpdir: strings.copy(temporaryDirectory), use_zip64: 0)
    guard let workbook = unsafe workbook_new_opt(path, &options) else {
      throw SpreadsheetError(.outOfMemory, operation)
    }
    self.path = path
    self.permissions = permissions
    temporaryFiles = TemporaryFiles(directory: temporaryDirectory)
    unsafe self.workbook = workbook
    unsafe temporaryFiles.attach(to: UInt(bitPattern: workbook.pointee.options.tmpdir))
  }

  deinit {
    abandon()
  }

  func set(_ properties: DocumentProperties) throws(SpreadsheetError) {
    let operation: StaticString = "set document properties"
    var strings = CStrings()
    var values = unsafe lxw_doc_properties()
    unsafe values.title = strings.copy(properties.title)
    unsafe values.subject = strings.copy(properties.subject)
    unsafe values.author = strings.copy(properties.author)
    unsafe values.company = strings.copy(properties.company)
    unsafe values.comments = strings.copy(properties.comments)
    unsafe values.created = time_t(properties.created)
    var result = unsafe workbook_set_properties(workbook, &values)
    for (name, value) in properties.custom where result == LXW_NO_ERROR {
      result = unsafe workbook_set_custom_property_string(workbook, name, value)
    }
    guard result == LXW_NO_ERROR else {
      throw SpreadsheetError(.init(result), operation, libraryCode: result)
    }
  }

  /// Writes the file and forces it to disk. Whatever happens the workbook is gone afterwards, and after a failure so is
  /// the file.
  func finish() throws(SpreadsheetError) {
    let operation: StaticString = "write workbook"
    guard let workbook = unsafe workbook else { throw SpreadsheetError(.closed, operation) }
    // The library would create it readable and writable by all, and overwrite what is there.
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard descriptor >= 0 else {
      let error = errno
      abandon()
      throw SpreadsheetError(error == EEXIST ? .fileExists : .cannotCreateFile, operation, systemError: error)
    }
    var failure: SpreadsheetError?
    // workbook_close frees the workbook whether or not it succeeds.
    let (result, error) = release {
      errno = 0
      return unsafe (workbook_close(workbook), errno)
    }
    if let error = temporaryFiles.firstError {
      failure = SpreadsheetError(.temporaryFileFailed, operation, systemError: error)
    } else if result != LXW_NO_ERROR {
      failure = SpreadsheetError(.init(result), operation, libraryCode: result, systemError: error == 0 ? nil : error)
    } else if !temporaryFiles.areUsed {
      failure = SpreadsheetError(.unexpected, "take over temporary files")
    } else if fsync(descriptor) != 0 {
      failure = SpreadsheetError(.cannotSynchronize, "synchronize workbook", systemError: errno)
    }
    if close(descriptor) != 0, failure == nil {
      failure = SpreadsheetError(.cannotSynchronize, "close workbook", systemError: errno)
    }
    if let failure {
      _ = unsafe unlink(path)
      throw failure
    }
  }

  /// Frees everything without writing a file.
  func abandon() {
    guard let workbook = unsafe workbook else { return }
    release { unsafe lxw_workbook_free(workbook) }
  }

  /// The library's last call on this workbook, and what it leaves behind.
  private func release<Result>(_ lastCall: () -> Result) -> Result {
    let key = unsafe UInt(bitPattern: workbook?.pointee.options.tmpdir)
    unsafe workbook = nil
    let result = lastCall()
    TemporaryFiles.detach(from: key)
    temporaryFiles.closeAll()
    return result
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}
