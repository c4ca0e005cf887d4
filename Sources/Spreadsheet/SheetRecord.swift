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
  private var rows = 0
  private var lastCounted: lxw_row_t?
  /// The temporary file that its rows wait in.
  private var file: (descriptor: CInt, device: dev_t, node: ino_t)?

  init(name: String, worksheet: UnsafeMutablePointer<lxw_worksheet>) {
    self.name = name
    unsafe self.worksheet = worksheet
    isStreamed = unsafe worksheet.pointee.optimize != 0
    let descriptor = unsafe na_rows_descriptor(worksheet)
    var status = stat()
    if descriptor >= 0, unsafe fstat(descriptor, &status) == 0 { file = (descriptor, status.st_dev, status.st_ino) }
  }

  /// Rows that the library has written or will write; nil for a sheet in memory, which nobody counts.
  var expectedRows: Int? { isStreamed ? rows : nil }

  /// Counts the row that a streamed sheet is at, if anything is in it: the library writes no other.
  func countCurrentRow() {
    guard isStreamed else { return }
    let row = unsafe worksheet.pointee.optimize_row.pointee
    guard unsafe row.data_changed != 0 || row.row_changed != 0, unsafe row.row_num != lastCounted else { return }
    lastCounted = unsafe row.row_num
    rows += 1
  }

  /// `errno` of a write of its rows that failed; nil when every byte has arrived.
  func flushError() -> Int32? {
    let error = unsafe na_flush_rows(worksheet)
    return error == 0 ? nil : error
  }

  /// Closes its temporary file before the workbook is freed without having been written.
  func discard() { unsafe na_discard_rows(worksheet) }

  /// Closes its temporary file if the library, failing, has left it open.
  func closeLeftover() {
    guard let file else { return }
    var status = stat()
    if unsafe fstat(file.descriptor, &status) == 0, status.st_dev == file.device, status.st_ino == file.node {
      _ = close(file.descriptor)
    }
  }
}
