import CExpat
import CMiniZip
import CXLSXWriter
import Glibc

/// Verifies a finished workbook by reading every part back. After a temporarily full disk libxlsxwriter returns 0 for a
/// truncated file, because it does not check writes to temporary files. Each part must have its checksum and be
/// well-formed XML. The rows of a streamed sheet are not parsed: their length must equal the number of bytes written.
struct FinishedFile {
  struct ExpectedSheet {
    var name: String
    /// The bytes between the tags of the rows; nil for a sheet in memory, which is parsed whole.
    var rowBytes: Int?
  }

  private static let pieceSize = 1 << 18
  // Space before a piece for a tag that begins at the end of the piece before.
  private static let overlap = 16
  private static let declaration = Array("<?xml ".utf8)
  private static let oldDrawing = Array("<xml ".utf8)

  /// Throws `cannotWriteFile` for an unreadable archive, `temporaryFileFailed` for missing content.
  static func prove(_ path: String, sheets: [ExpectedSheet]) throws(SpreadsheetError) {
    let operation: StaticString = "read the finished workbook back"
    guard let archive = unsafe unzOpen64(path) else { throw SpreadsheetError(.cannotWriteFile, operation) }
    defer { unsafe _ = unzClose(archive) }
    var expected: [String: ExpectedSheet] = [:]
    for (place, sheet) in sheets.enumerated() { expected["xl/worksheets/sheet\(place + 1).xml"] = sheet }
    var status = unsafe unzGoToFirstFile(archive)
    while status == NA_UNZ_OK {
      let name = unsafe name(in: archive)
      let isXML = [".xml", ".rels", ".vml"].contains { name.hasSuffix($0) }
      let sheet = expected.removeValue(forKey: name)
      var part = Part(isXML: isXML, hasRows: sheet?.rowBytes != nil)
      try unsafe part.read(archive, operation)
      guard part.isWhole else { throw SpreadsheetError(.temporaryFileFailed, operation, sheet: sheet?.name) }
      if let rowBytes = sheet?.rowBytes, rowBytes != part.rowBytes {
        throw SpreadsheetError(.temporaryFileFailed, operation, sheet: sheet?.name)
      }
      status = unsafe unzGoToNextFile(archive)
    }
    guard status == NA_UNZ_END_OF_LIST, expected.isEmpty else {
      throw SpreadsheetError(.cannotWriteFile, operation, sheet: expected.values.map(\.name).min())
    }
  }

  private static func name(in archive: unzFile) -> String {
    var name = [CChar](repeating: 0, count: 256)
    unsafe _ = unzGetCurrentFileInfo64(archive, nil, &name, UInt(name.count - 1), nil, 0, nil, 0)
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  @safe
  private struct Part: ~Copyable {
    private enum Place { case before, rows, behind }

    var rowBytes = 0
    var isWhole = true
    private var isEmpty = true
    /// The position relative to the rows; `.behind` for a part without counted rows.
    private var place: Place
    private let parser: XML_Parser?

    init(isXML: Bool, hasRows: Bool) {
      place = hasRows ? .before : .behind
      unsafe parser = isXML ? XML_ParserCreate(nil) : nil
    }

    deinit { unsafe XML_ParserFree(parser) }

    mutating func read(_ archive: unzFile, _ operation: StaticString) throws(SpreadsheetError) {
      guard unsafe unzOpenCurrentFile(archive) == NA_UNZ_OK else { throw SpreadsheetError(.cannotWriteFile, operation) }
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: overlap + pieceSize, alignment: 16)
      defer { unsafe buffer.deallocate() }
      unsafe buffer.initializeMemory(as: UInt8.self, repeating: 0)
      var isReadable = true
      while true {
        let count = unsafe Int(
          unzReadCurrentFile(archive, buffer.baseAddress.map { unsafe $0 + overlap }, UInt32(pieceSize)))
        isReadable = count >= 0
        if count <= 0 { break }
        unsafe take(UnsafeRawBufferPointer(rebasing: buffer[..<(overlap + count)]))
        // Keeps the last bytes, so that a tag across two pieces is found with the second.
        unsafe buffer.copyBytes(from: UnsafeRawBufferPointer(rebasing: buffer[count..<overlap + count]))
      }
      if let parser = unsafe parser, isWhole { isWhole = unsafe XML_Parse(parser, nil, 0, 1) == XML_STATUS_OK }
      let isClosed = unsafe unzCloseCurrentFile(archive) == NA_UNZ_OK
      guard isReadable, isClosed else { throw SpreadsheetError(.cannotWriteFile, operation) }
    }

    /// - Parameter content: the last bytes of the piece before, then the piece.
    private mutating func take(_ content: UnsafeRawBufferPointer) {
      if isEmpty {
        isEmpty = false
        let piece = unsafe content.dropFirst(overlap)
        // The library writes drawings for old programs (VML) without a declaration.
        isWhole = unsafe parser == nil || piece.starts(with: declaration) || piece.starts(with: oldDrawing)
      }
      var first = overlap
      if place == .before {
        let beginning: StaticString = "<sheetData>"
        let begin = unsafe end(of: beginning, in: content, from: earliest(first, beginning))
        unsafe parse(content[first..<(begin ?? content.count)])
        guard let begin else { return }
        (place, first) = (.rows, begin)
      }
      guard place == .rows else { return unsafe parse(content[first...]) }
      let ending: StaticString = "</sheetData>"
      guard let behind = unsafe end(of: ending, in: content, from: earliest(first, ending)) else {
        rowBytes += content.count - first
        return
      }
      place = .behind
      let start = behind - ending.utf8CodeUnitCount
      // Negative if the tag began in the piece before.
      rowBytes += start - first
      unsafe parse(content[start...])
    }

    private mutating func parse(_ bytes: Slice<UnsafeRawBufferPointer>) {
      guard let parser = unsafe parser, isWhole, unsafe !bytes.isEmpty else { return }
      let start = unsafe UnsafeRawBufferPointer(rebasing: bytes).baseAddress?.assumingMemoryBound(to: CChar.self)
      isWhole = unsafe XML_Parse(parser, start, Int32(clamping: bytes.count), 0) == XML_STATUS_OK
    }

    // At the start of a piece the tag may begin in the piece before.
    private func earliest(_ start: Int, _ tag: StaticString) -> Int {
      start == overlap ? overlap - tag.utf8CodeUnitCount + 1 : start
    }

    private func end(of tag: StaticString, in content: UnsafeRawBufferPointer, from start: Int) -> Int? {
      guard let base = content.baseAddress,
        let found = unsafe na_find(base + start, content.count - start, tag.utf8Start, tag.utf8CodeUnitCount)
      else { return nil }
      return unsafe UnsafeRawPointer(found) - base + tag.utf8CodeUnitCount
    }
  }
}
