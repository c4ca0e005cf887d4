import CLibPQ
import Glibc

/// A stream of the rows of `COPY ... TO STDOUT (FORMAT binary)`, in the server's order. The accessors read fields in
/// place. The reader keeps its connection alive and busy until the stream ends. One that is dropped earlier cancels the
/// query: an open transaction fails, the connection stays usable.
/// https://www.postgresql.org/docs/15/sql-copy.html#id-1.9.3.55.9.4
@safe
public struct CopyReader: ~Copyable {
  /// The columns of every row; empty before the first record.
  public private(set) var columns: [PostgresColumn]
  public private(set) var rowCount = 0

  private enum Phase { case header, rows, trailer, ended }

  /// The position of a field in the message; a negative length is a NULL.
  private struct Field {
    let offset: Int
    let length: Int
  }

  private let handle: ConnectionHandle?
  // Copied from the handle, because access through the handle for every row would count references.
  private let connection: OpaquePointer?
  private let records: (() throws(PostgresError) -> [UInt8]?)?
  private let sql: String
  private var phase = Phase.header
  private var message: UnsafeMutablePointer<CChar>?
  private var length = 0
  private var position = 0
  /// One per column; valid only while there is a current row.
  private var fields: UnsafeMutableBufferPointer<Field>
  private var hasRow = false
  /// The last text of each column, because long texts are mostly those of the row before.
  private(set) var lastTexts: UnsafeMutableBufferPointer<String>

  init(_ handle: ConnectionHandle, sql: String, columns: [PostgresColumn]) {
    self.handle = handle
    unsafe connection = unsafe handle.pointer
    records = nil
    (self.sql, self.columns) = (sql, columns)
    unsafe fields = .allocate(capacity: columns.count)
    unsafe lastTexts = .allocate(capacity: columns.count)
    unsafe lastTexts.initialize(repeating: "")
  }

  /// Reads rows as `record_send` encodes them instead of a connection's. `next` returns nil after the last.
  public init(records next: @escaping () throws(PostgresError) -> [UInt8]?) {
    handle = nil
    unsafe connection = nil
    records = next
    sql = "records"
    columns = []
    unsafe fields = .allocate(capacity: 0)
    unsafe lastTexts = .allocate(capacity: 0)
  }

  deinit {
    unsafe PQfreemem(message)
    unsafe fields.deallocate()
    unsafe lastTexts.deinitialize().deallocate()
    if phase != .ended, let handle {
      // libpq accepts no other statement before a COPY has been read to its end.
      handle.abandonCopy(sql)
      handle.endStreaming()
    }
  }

  /// Moves to the next row; false after the last. After an error there is no current row.
  public mutating func advance() throws(PostgresError) -> Bool {
    hasRow = false
    if handle == nil {
      hasRow = try readRecord(records?())
      return hasRow
    }
    while phase != .ended {
      if position == length {
        try receive()
      } else if phase == .header {
        try readHeader()
      } else if phase == .rows, try readRow() {
        rowCount += 1
        hasRow = true
        return true
      } else if phase == .trailer {
        // After the trailer libpq still has to return -1.
        position = length
      }
    }
    return false
  }

  /// The bytes of a field; nil for NULL.
  @inline(__always)
  func field(_ column: Int) throws(PostgresError) -> UnsafeRawBufferPointer? {
    guard hasRow, columns.indices.contains(column) else {
      throw PostgresError(.usage, "there is no column \(column), or no current row", statement: sql)
    }
    let field = unsafe fields[column]
    if field.length < 0 { return nil }
    return unsafe UnsafeRawBufferPointer(
      start: UnsafeRawPointer(message).map { unsafe $0 + field.offset }, count: field.length)
  }

  private mutating func receive() throws(PostgresError) {
    unsafe PQfreemem(message)
    unsafe message = nil
    position = 0
    // Fast path: nearly every row has already arrived.
    let ready = unsafe PQgetCopyData(connection, &message, 1)
    if ready > 0 {
      length = Int(ready)
      return
    }
    guard let handle else { return }
    let received: Int32
    do throws(PostgresError) { received = try unsafe ready == 0 ? handle.copyData(into: &message, sql) : ready } catch {
      phase = .ended
      handle.endStreaming()
      throw error
    }
    length = Int(max(0, received))
    if received > 0 { return }
    let ended = phase
    // The reason of -2 must be read before the next call overwrites it.
    let failure = received == -2 ? handle.connectionError(sql) : nil
    let reported = handle.endOfCopy(sql)
    phase = .ended
    handle.endStreaming()
    if let error = reported ?? failure { throw error }
    if ended != .trailer { throw malformed("the stream ended without its trailer") }
  }

  private mutating func readHeader() throws(PostgresError) {
    let signature: [UInt8] = [0x50, 0x47, 0x43, 0x4F, 0x50, 0x59, 0x0A, 0xFF, 0x0D, 0x0A, 0x00]
    let bytes = unsafe UnsafeRawBufferPointer(start: message, count: length)
    guard length >= 19, unsafe bytes.prefix(11).elementsEqual(signature) else {
      throw malformed("the stream has no binary header")
    }
    // The upper half of the flags marks incompatible changes of the format.
    let flags: UInt32 = unsafe BinaryFormat.load(bytes, at: 11)
    let extensionLength: Int32 = unsafe BinaryFormat.load(bytes, at: 15)
    guard flags >> 16 == 0, extensionLength >= 0, length >= 19 + Int(extensionLength) else {
      throw malformed("the stream has an unknown header")
    }
    position = 19 + Int(extensionLength)
    phase = .rows
  }

  // Indexes the fields without copying them. False at the trailer.
  private mutating func readRow() throws(PostgresError) -> Bool {
    let bytes = unsafe UnsafeRawBufferPointer(start: message, count: length)
    guard length - position >= 2 else { throw malformed("a row is cut off") }
    let count = unsafe Int(BinaryFormat.load(bytes, at: position) as Int16)
    position += 2
    if count == -1 {
      phase = .trailer
      return false
    }
    guard count == columns.count else { throw malformed("a row has \(count) columns instead of \(columns.count)") }
    var offset = position
    for column in 0..<count {
      guard length - offset >= 4 else { throw cutOff(column) }
      let fieldLength = unsafe Int(BinaryFormat.load(bytes, at: offset) as Int32)
      offset += 4
      guard length - offset >= fieldLength else { throw cutOff(column) }
      unsafe fields[column] = Field(offset: offset, length: fieldLength)
      offset += max(0, fieldLength)
    }
    position = offset
    return true
  }

  // The format of `record_send`: the number of fields, then type, length and bytes of each.
  private mutating func readRecord(_ record: [UInt8]?) throws(PostgresError) -> Bool {
    unsafe PQfreemem(message)
    unsafe message = nil
    phase = .ended
    guard let record else { return false }
    length = record.count
    // malloc, because PQfreemem frees it.
    unsafe message = malloc(max(1, length)).assumingMemoryBound(to: CChar.self)
    unsafe UnsafeMutableRawBufferPointer(start: message, count: length).copyBytes(from: record)
    let bytes = unsafe UnsafeRawBufferPointer(start: message, count: length)
    guard length >= 4 else { throw malformed("a record is cut off") }
    let count = unsafe Int(BinaryFormat.load(bytes) as Int32)
    guard (0...1_664).contains(count), rowCount == 0 || count == columns.count else {
      throw malformed("a record has \(count) fields instead of \(columns.count)")
    }
    if rowCount == 0 { adopt(count) }
    var offset = 4
    for column in 0..<count {
      guard length - offset >= 8 else { throw cutOff(column) }
      let type = unsafe PostgresType(rawValue: BinaryFormat.load(bytes, at: offset))
      if type != columns[column].type { columns[column] = PostgresColumn(name: columns[column].name, type: type) }
      let fieldLength = unsafe Int(BinaryFormat.load(bytes, at: offset + 4) as Int32)
      offset += 8
      guard length - offset >= fieldLength else { throw cutOff(column) }
      unsafe fields[column] = Field(offset: offset, length: fieldLength)
      offset += max(0, fieldLength)
    }
    guard offset == length else { throw malformed("a record has bytes behind its last field") }
    rowCount += 1
    return true
  }

  private mutating func adopt(_ count: Int) {
    columns = (0..<count).map { PostgresColumn(name: "column \($0 + 1)", type: .unspecified) }
    unsafe fields.deallocate()
    unsafe fields = .allocate(capacity: count)
    unsafe lastTexts.deallocate()
    unsafe lastTexts = .allocate(capacity: count)
    unsafe lastTexts.initialize(repeating: "")
  }

  private mutating func cutOff(_ column: Int) -> PostgresError {
    PostgresError(.unexpectedData, "a row is cut off", column: columns[column].name, statement: sql)
  }

  private func malformed(_ what: String) -> PostgresError { PostgresError(.unexpectedData, what, statement: sql) }
}

extension BlockingConnection {
  /// Streams the rows of a SELECT without a semicolon. COPY takes no parameters: write constants with
  /// `PostgresLiteral`. Until the stream ends or the reader is dropped, every other statement throws `.usage`.
  public func copyOut(_ query: String) throws(PostgresError) -> CopyReader {
    // The binary stream has no types, so they are requested first.
    let columns = try describe(query)
    let sql = "COPY (\(query)) TO STDOUT (FORMAT binary)"
    try beginCopy(sql)
    return CopyReader(handle, sql: sql, columns: columns)
  }
}
