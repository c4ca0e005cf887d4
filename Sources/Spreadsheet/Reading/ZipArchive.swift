import CMiniZip
import CSystemCalls
import Glibc

/// An archive open for reading, whose parts are inflated in pieces by minizip (zlib's contrib).
@safe
struct ZipArchive: ~Copyable {
  private let file: unzFile

  private static let pieceSize = 1 << 16

  init(path: String) throws(WorkbookReadError) {
    try Self.rejectOtherFormats(path)
    guard let file = unsafe unzOpen64(path) else {
      throw .notAWorkbook("it is not a ZIP archive, or it is cut off; save it as .xlsx again")
    }
    unsafe self.file = file
  }

  deinit { unsafe _ = unzClose(file) }

  // Gives a better reason than "no ZIP archive".
  private static func rejectOtherFormats(_ path: String) throws(WorkbookReadError) {
    var (owner, mode): (UInt32, UInt32) = (0, 0)
    let descriptor = unsafe file_open_regular(path, &owner, &mode)
    guard descriptor >= 0 else {
      throw .cannotOpen(path: path, reason: unsafe String(cString: file_open_problem(errno)))
    }
    defer { close(descriptor) }
    var head = [UInt8](repeating: 0, count: 4)
    let count = unsafe Glibc.read(descriptor, &head, head.count)
    if count < 0 { throw .cannotOpen(path: path, reason: unsafe String(cString: strerror(errno))) }
    switch Array(head.prefix(count)) {
    case [0x50, 0x4B, 0x03, 0x04]: return
    case [0xD0, 0xCF, 0x11, 0xE0]:
      throw .notAWorkbook("it is an old .xls or protected by a password; save it as .xlsx without a password")
    default: throw .notAWorkbook("it does not start like one; save it as .xlsx")
    }
  }

  /// Inflates a part to at most `limit` bytes, in pieces until `body` returns false. Returns false if there is no such
  /// part.
  func read(
    _ part: String, limit: Int, _ body: (UnsafeRawBufferPointer) throws(WorkbookReadError) -> Bool
  ) throws(WorkbookReadError) -> Bool {
    guard unsafe unzLocateFile(file, part, NA_UNZ_ANY_CASE) == NA_UNZ_OK else { return false }
    guard unsafe unzOpenCurrentFile(file) == NA_UNZ_OK else {
      throw .damaged(part: part, "its entry in the archive cannot be opened, or it is encrypted")
    }
    var isWhole = false
    defer { if !isWhole { unsafe _ = unzCloseCurrentFile(file) } }
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceSize, alignment: 16)
    defer { unsafe piece.deallocate() }
    var total = 0
    while true {
      let count = unsafe unzReadCurrentFile(file, piece.baseAddress, UInt32(clamping: piece.count))
      if count < 0 { throw .damaged(part: part, "it cannot be inflated") }
      if count == 0 { break }
      total += Int(count)
      if total > limit { throw .tooLarge(part: part, "it inflates to more than \(limit >> 20) MB") }
      if try unsafe !body(UnsafeRawBufferPointer(rebasing: piece[..<Int(count)])) { return true }
    }
    isWhole = true
    // Only closing verifies the checksum.
    if unsafe unzCloseCurrentFile(file) != NA_UNZ_OK { throw .damaged(part: part, "its check sum is wrong") }
    return true
  }
}
