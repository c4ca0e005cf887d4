import CXLSXWriter
import Glibc

/// What the finished file must hold of one sheet.
///
/// Owned by the workbook's handle and shared with the sheet; its pointer is used only while the workbook is open.
@safe
final class SheetRecord {
  /// As on its tab.
  let name: String
  private let worksheet: UnsafeMutablePointer<lxw_worksheet>
  private let isStreamed: Bool
  private var rows = FinishedFile.Rows()
  private var lastCounted: lxw_row_t?

  init(name: String, worksheet: UnsafeMutablePointer<lxw_worksheet>) {
    self.name = name
    unsafe self.worksheet = worksheet
    isStreamed = unsafe worksheet.pointee.optimize != 0
  }

  /// The sheet that the file must hold, with the rows that the library has written or will write.
  var expected: FinishedFile.Sheet { FinishedFile.Sheet(name: name, rows: isStreamed ? rows : nil) }

  /// Counts the row that a streamed sheet is at, if anything is in it: the library writes no other.
  func countCurrentRow() {
    guard isStreamed else { return }
    let row = unsafe worksheet.pointee.optimize_row.pointee
    guard unsafe row.data_changed != 0 || row.row_changed != 0, unsafe row.row_num != lastCounted else { return }
    lastCounted = unsafe row.row_num
    rows.begun += 1
    if unsafe row.data_changed != 0 { rows.ended += 1 }
  }

  /// `errno` of a write of its rows that failed; nil when every byte has arrived.
  func flushError() -> Int32? {
    let error = unsafe na_flush_rows(worksheet)
    return error == 0 ? nil : error
  }

  /// Closes its temporary file before the workbook is freed without having been written.
  func discard() { unsafe na_discard_rows(worksheet) }

  /// Closes its temporary file where the library will not: it looks for no rows where no cell was written.
  ///
  /// Afterwards nobody can tell. The number of a descriptor, and that of a file, may be another thread's by then.
  func discardIfEmpty() {
    if unsafe isStreamed && worksheet.pointee.dim_rowmin == LXW_ROW_MAX { discard() }
  }
}
