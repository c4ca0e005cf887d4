import CExpat
import CMiniZip
import CXLSXWriter
import Glibc

/// The proof of a finished workbook: every part is read back.
///
/// libxlsxwriter looks at no write to a temporary file, so a disk that was full for a while makes a file with less in it
/// and a return code of 0. Here each part must inflate to its check sum and be XML from its declaration to the end of its
/// first element, and each streamed sheet must have as many rows as were written.
struct FinishedFile {
  private static let pieceSize = 1 << 18
  /// Room in front of a piece for what may be the beginning of a tag at the end of the piece before.
  private static let overlap = 4
  private static let rowTag = "<row "
  private static let declaration = Array("<?xml ".utf8)
  private static let oldDrawing = Array("<xml ".utf8)

  /// - Parameter sheets: in the order of their tabs.
  /// - Throws: `cannotWriteFile` for an archive that cannot be read, `temporaryFileFailed` for one with less in it.
  static func prove(_ path: String, sheets: [SheetRecord]) throws(SpreadsheetError) {
    let operation: StaticString = "read the finished workbook back"
    guard let archive = unsafe unzOpen64(path) else { throw SpreadsheetError(.cannotWriteFile, operation) }
    defer { unsafe _ = unzClose(archive) }
    var expected: [String: SheetRecord] = [:]
    for (place, sheet) in sheets.enumerated() { expected["xl/worksheets/sheet\(place + 1).xml"] = sheet }
    var status = unsafe unzGoToFirstFile(archive)
    while status == NA_UNZ_OK {
      let name = unsafe name(in: archive)
      let isXML = [".xml", ".rels", ".vml"].contains { name.hasSuffix($0) }
      let sheet = expected.removeValue(forKey: name)
      let part = try unsafe part(in: archive, isXML: isXML, operation)
      guard part.isWhole else { throw SpreadsheetError(.temporaryFileFailed, operation, sheet: sheet?.name) }
      if let rows = sheet?.expectedRows, rows != part.rows {
        throw SpreadsheetError(.temporaryFileFailed, operation, sheet: sheet?.name, row: part.rows)
      }
      status = unsafe unzGoToNextFile(archive)
    }
    guard status == NA_UNZ_END_OF_LIST, expected.isEmpty else {
      throw SpreadsheetError(.cannotWriteFile, operation, sheet: expected.values.map(\.name).min())
    }
  }

  /// What was seen of one part.
  private struct Part {
    var rows = 0
    var isEmpty = true
    var isWhole = true
  }

  private static func name(in archive: unzFile) -> String {
    var name = [CChar](repeating: 0, count: 256)
    unsafe _ = unzGetCurrentFileInfo64(archive, nil, &name, UInt(name.count - 1), nil, 0, nil, 0)
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func part(
    in archive: unzFile, isXML: Bool, _ operation: StaticString
  ) throws(SpreadsheetError) -> Part {
    guard unsafe unzOpenCurrentFile(archive) == NA_UNZ_OK else { throw SpreadsheetError(.cannotWriteFile, operation) }
    var part = Part()
    let parser = unsafe isXML ? XML_ParserCreate(nil) : nil
    defer { unsafe XML_ParserFree(parser) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: overlap + pieceSize, alignment: 16)
    defer { unsafe buffer.deallocate() }
    unsafe buffer.initializeMemory(as: UInt8.self, repeating: 0)
    var isReadable = true
    while true {
      let count = unsafe Int(
        unzReadCurrentFile(archive, buffer.baseAddress.map { unsafe $0 + overlap }, UInt32(pieceSize)))
      isReadable = count >= 0
      if count <= 0 { break }
      let piece = unsafe UnsafeRawBufferPointer(rebasing: buffer[overlap..<overlap + count])
      if part.isEmpty {
        part.isEmpty = false
        // What the library writes for drawings of old programs has none.
        part.isWhole = unsafe parser == nil || piece.starts(with: declaration) || piece.starts(with: oldDrawing)
      }
      if let parser = unsafe parser, part.isWhole {
        let start = unsafe piece.baseAddress?.assumingMemoryBound(to: CChar.self)
        part.isWhole = unsafe XML_Parse(parser, start, Int32(count), 0) == XML_STATUS_OK
      }
      unsafe buffer.baseAddress.map { unsafe $0.assumingMemoryBound(to: CChar.self) }.map { start in
        unsafe part.rows += Int(na_count(start, overlap + count, rowTag))
      }
      // A tag that lies across two pieces is found with the second one; four bytes hold no whole tag.
      unsafe buffer.copyBytes(from: UnsafeRawBufferPointer(rebasing: buffer[count..<overlap + count]))
    }
    if let parser = unsafe parser, part.isWhole {
      part.isWhole = unsafe XML_Parse(parser, nil, 0, 1) == XML_STATUS_OK
    }
    let isClosed = unsafe unzCloseCurrentFile(archive) == NA_UNZ_OK
    guard isReadable, isClosed else { throw SpreadsheetError(.cannotWriteFile, operation) }
    return part
  }
}
