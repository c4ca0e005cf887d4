import CXLSXWriter
import Glibc

/// What the finished file must hold of one sheet.
///
/// Owned by the workbook's handle; its pointer is used only while the workbook is open.
@safe
final class SheetRecord {
  /// As on its tab.
  let name: String
  private let worksheet: UnsafeMutablePointer<lxw_worksheet>
  private let isStreamed: Bool
  private var rowBytes: Int?

  init(name: String, worksheet: UnsafeMutablePointer<lxw_worksheet>) {
    self.name = name
    unsafe self.worksheet = worksheet
    isStreamed = unsafe worksheet.pointee.optimize != 0
  }

  /// The sheet that the file must hold, once its rows are flushed.
  var expected: FinishedFile.Sheet { FinishedFile.Sheet(name: name, rowBytes: rowBytes) }

  /// Flushes the rows of a streamed sheet to its temporary file.
  /// - Returns: `errno` of a write that failed; nil when every byte has arrived.
  func flush() -> Int32? {
    guard isStreamed else { return nil }
    let bytes = unsafe na_flush_rows(worksheet)
    guard bytes >= 0 else { return errno }
    rowBytes = bytes
    return nil
  }

  /// Closes its temporary file before the workbook is freed without having been written.
  func discard() { unsafe na_discard_rows(worksheet) }

  /// Closes its temporary file where the library will not: it looks for no rows where no cell was written.
  ///
  /// Later the file's state is unknown: another thread may own the same descriptor by then.
  func discardIfEmpty() {
    if unsafe isStreamed && worksheet.pointee.dim_rowmin == LXW_ROW_MAX { discard() }
  }
}
