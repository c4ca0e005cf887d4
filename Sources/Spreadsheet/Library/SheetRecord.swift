import CXLSXWriter
import Glibc

/// The expected content of one sheet in the finished file. Its pointer is used only while the workbook is open.
@safe
final class SheetRecord {
  let name: String
  private let worksheet: UnsafeMutablePointer<lxw_worksheet>
  private let isStreamed: Bool
  private var rowBytes: Int?

  init(name: String, worksheet: UnsafeMutablePointer<lxw_worksheet>) {
    self.name = name
    unsafe self.worksheet = worksheet
    isStreamed = unsafe worksheet.pointee.optimize != 0
  }

  /// Valid after `flush()`.
  var expected: FinishedFile.ExpectedSheet { FinishedFile.ExpectedSheet(name: name, rowBytes: rowBytes) }

  /// Flushes a streamed sheet's rows to its temporary file; returns `errno` of a failed write, or nil.
  func flush() -> Int32? {
    guard isStreamed else { return nil }
    let bytes = unsafe na_flush_rows(worksheet)
    guard bytes >= 0 else { return errno }
    rowBytes = bytes
    return nil
  }

  func discard() { unsafe na_discard_rows(worksheet) }

  /// Closes the temporary file of a sheet without cells, which the library would leave open. Later another thread may
  /// own the descriptor.
  func discardIfEmpty() {
    if unsafe isStreamed && worksheet.pointee.dim_rowmin == LXW_ROW_MAX { discard() }
  }
}
