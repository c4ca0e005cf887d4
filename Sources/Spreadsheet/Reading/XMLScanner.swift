import CExpat

/// Receives the elements of a workbook part. Names have no namespace prefix.
protocol XMLHandler: AnyObject {
  func start(_ name: String, _ attributes: borrowing XMLAttributes) throws(WorkbookReadError)
  /// Receives a piece of text, which may be incomplete.
  func text(_ bytes: UnsafeBufferPointer<UInt8>) throws(WorkbookReadError)
  func end(_ name: String) throws(WorkbookReadError)
  var isDone: Bool { get }
}

extension XMLHandler {
  var isDone: Bool { false }
  func text(_ bytes: UnsafeBufferPointer<UInt8>) {}
  func end(_ name: String) {}
}

@safe
struct XMLAttributes: ~Copyable {
  fileprivate let pairs: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?

  subscript(name: String) -> String? {
    guard let pairs = unsafe pairs else { return nil }
    var index = 0
    while let key = unsafe pairs[index], let value = unsafe pairs[index + 1] {
      if unsafe String(cString: key).localName == name { return unsafe String(cString: value) }
      index += 2
    }
    return nil
  }

  fileprivate var names: [String] {
    guard let pairs = unsafe pairs else { return [] }
    var names: [String] = []
    var index = 0
    while let key = unsafe pairs[index] {
      unsafe names.append(String(cString: key))
      index += 2
    }
    return names
  }
}

/// Parses the XML of one part incrementally, with limits that no honest workbook reaches. The parser, expat, keeps open
/// elements, names and unfinished tokens in memory. A document type is refused, because it can define entities and
/// workbooks have none (ECMA-376 part 1, 11.2).
@safe
final class XMLScanner {
  private let parser: XML_Parser
  private let part: String
  private let handler: any XMLHandler
  private var failure: WorkbookReadError?
  private var depth = 0
  private var names: Set<String> = []
  private var given = 0

  private static let maximumDepth = 64
  private static let maximumNames = 4_096
  private static let maximumToken = 1 << 20

  init(part: String, handler: any XMLHandler) throws(WorkbookReadError) {
    guard let parser = unsafe XML_ParserCreate(nil) else { throw .tooLarge(part: part, "out of memory") }
    unsafe self.parser = parser
    (self.part, self.handler) = (part, handler)
    unsafe XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
    unsafe XML_SetElementHandler(
      parser, { unsafe XMLScanner.of($0)?.start($1, $2) }, { unsafe XMLScanner.of($0)?.end($1) })
    unsafe XML_SetCharacterDataHandler(parser) { unsafe XMLScanner.of($0)?.text($1, $2) }
    unsafe XML_SetStartDoctypeDeclHandler(parser) { data, _, _, _, _ in
      guard let scanner = unsafe XMLScanner.of(data) else { return }
      scanner.stop(.damaged(part: scanner.part, "it has a document type, which workbooks do not have"))
    }
  }

  deinit { unsafe XML_ParserFree(parser) }

  private static func of(_ data: UnsafeMutableRawPointer?) -> XMLScanner? {
    unsafe data.map { unsafe Unmanaged<XMLScanner>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Parses the next bytes; returns false if the handler needs no more.
  func feed(_ bytes: UnsafeRawBufferPointer, isLast: Bool = false) throws(WorkbookReadError) -> Bool {
    given += bytes.count
    let status = unsafe XML_Parse(
      parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(clamping: bytes.count), isLast ? 1 : 0)
    if let failure { throw failure }
    if handler.isDone { return false }
    guard status == XML_STATUS_OK else {
      let reason = unsafe XML_ErrorString(XML_GetErrorCode(parser)).map { unsafe String(cString: $0) } ?? "no XML"
      throw .damaged(part: part, "line \(unsafe XML_GetCurrentLineNumber(parser)): \(reason)")
    }
    // The parser's position is the start of its unfinished token.
    if !isLast, given - Int(unsafe XML_GetCurrentByteIndex(parser)) > XMLScanner.maximumToken + bytes.count {
      throw .tooLarge(part: part, "one element is larger than 1 MB")
    }
    return true
  }

  func finish() throws(WorkbookReadError) {
    if handler.isDone { return }
    _ = try unsafe feed(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
  }

  private func stop(_ error: WorkbookReadError?) {
    if failure == nil { failure = error }
    unsafe _ = XML_StopParser(parser, XML_Bool(XML_FALSE))
  }

  private func attempt(_ work: () throws(WorkbookReadError) -> Void) {
    guard failure == nil, !handler.isDone else { return }
    do {
      try work()
      if handler.isDone { stop(nil) }
    } catch {
      stop(error)
    }
  }

  private func start(_ name: UnsafePointer<XML_Char>?, _ pairs: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?) {
    guard let name = unsafe name.map({ unsafe String(cString: $0) }) else { return }
    let attributes = unsafe XMLAttributes(pairs: pairs)
    attempt { () throws(WorkbookReadError) in
      depth += 1
      if depth > XMLScanner.maximumDepth { throw .tooLarge(part: part, "elements are nested too deeply") }
      names.insert(name)
      for name in attributes.names { names.insert(name) }
      if names.count > XMLScanner.maximumNames { throw .tooLarge(part: part, "it has too many kinds of elements") }
      try handler.start(name.localName, attributes)
    }
  }

  private func end(_ name: UnsafePointer<XML_Char>?) {
    guard let name = unsafe name.map({ unsafe String(cString: $0) }) else { return }
    attempt { () throws(WorkbookReadError) in
      depth -= 1
      try handler.end(name.localName)
    }
  }

  private func text(_ bytes: UnsafePointer<XML_Char>?, _ count: Int32) {
    guard let bytes = unsafe bytes else { return }
    unsafe bytes.withMemoryRebound(to: UInt8.self, capacity: Int(count)) { start in
      let text = unsafe UnsafeBufferPointer(start: start, count: Int(count))
      attempt { () throws(WorkbookReadError) in try unsafe handler.text(text) }
    }
  }
}

extension String {
  fileprivate var localName: String {
    guard let colon = utf8.lastIndex(of: UInt8(ascii: ":")) else { return self }
    return String(self[utf8.index(after: colon)...])
  }
}

extension ZipArchive {
  /// Parses one part with a handler; returns false if the part does not exist.
  func scan(_ part: String, limit: Int, _ handler: any XMLHandler) throws(WorkbookReadError) -> Bool {
    let scanner = try XMLScanner(part: part, handler: handler)
    let isThere = try unsafe read(part, limit: limit) { bytes throws(WorkbookReadError) in
      try unsafe scanner.feed(bytes)
    }
    if isThere { try scanner.finish() }
    return isThere
  }
}
