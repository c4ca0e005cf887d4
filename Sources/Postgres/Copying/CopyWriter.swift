import CLibPQ

/// Writes rows with `COPY ... FROM STDIN (FORMAT binary)`; each row calls one method per column, in order. A value of
/// another type throws `.usage`; an error of the server is thrown when the COPY ends.
public struct CopyWriter: ~Copyable {
  public let columns: [PostgresColumn]
  public private(set) var rowCount = 0
  fileprivate private(set) var isEnded = false

  private let handle: ConnectionHandle
  private let sql: String
  private var buffer: [UInt8] = []
  private var next: Int?

  // Large enough that the call per buffer is cheap, small enough for a processor's cache.
  private static let chunkSize = 256 * 1_024

  init(_ handle: ConnectionHandle, sql: String, columns: [PostgresColumn]) {
    (self.handle, self.sql, self.columns) = (handle, sql, columns)
    buffer.reserveCapacity(Self.chunkSize + 4_096)
    buffer += [0x50, 0x47, 0x43, 0x4F, 0x50, 0x59, 0x0A, 0xFF, 0x0D, 0x0A, 0x00]
    BinaryFormat.append(integer: Int32(0), to: &buffer)
    BinaryFormat.append(integer: Int32(0), to: &buffer)
  }

  /// Writes one row. If `fields` throws or leaves a column empty, the row is discarded and the error is thrown.
  public mutating func row(_ fields: (inout CopyWriter) throws(PostgresError) -> Void) throws(PostgresError) {
    if next != nil { throw PostgresError(.usage, "a row cannot hold a row", statement: sql) }
    let start = buffer.count
    BinaryFormat.append(integer: Int16(columns.count), to: &buffer)
    next = 0
    do throws(PostgresError) {
      try fields(&self)
      if let next, next < columns.count { throw refusal(columns[next], "the row has no value for the column") }
    } catch {
      buffer.removeSubrange(start...)
      next = nil
      throw error
    }
    next = nil
    rowCount += 1
    if buffer.count >= Self.chunkSize { try flush() }
  }

  /// `text`, `varchar`, `char`, `name`, `json`, or an enum.
  public mutating func text(_ value: String?) throws(PostgresError) {
    _ = try nextColumn("text", where: \.isText)
    try BinaryFormat.appendField(value, to: &buffer, BinaryFormat.append(text:to:))
  }

  /// `smallint`, `integer` or `bigint`. Throws `.usage` if the column's type cannot hold the value.
  public mutating func int(_ value: Int64?) throws(PostgresError) {
    let column = try nextColumn("an integer", where: \.isInteger)
    guard let value else { return BinaryFormat.append(integer: Int32(-1), to: &buffer) }
    switch column.type {
    case .int2: try integer(Int16(exactly: value), column)
    case .int4: try integer(Int32(exactly: value), column)
    default: try integer(value, column)
    }
  }

  public mutating func bool(_ value: Bool?) throws(PostgresError) {
    _ = try nextColumn("a boolean") { $0 == .bool }
    try BinaryFormat.appendField(value, to: &buffer, BinaryFormat.append(bool:to:))
  }

  /// `timestamptz` in microseconds since 1970-01-01T00:00:00Z.
  public mutating func timestamp(_ value: Int64?) throws(PostgresError) {
    _ = try nextColumn("a timestamptz") { $0 == .timestamptz }
    try BinaryFormat.appendField(value, to: &buffer, BinaryFormat.append(timestamp:to:))
  }

  public mutating func numeric(_ value: PostgresNumeric?) throws(PostgresError) {
    _ = try nextColumn("a numeric") { $0 == .numeric }
    try BinaryFormat.appendField(value, to: &buffer, BinaryFormat.append(numeric:to:))
  }

  mutating func finish() throws(PostgresError) {
    BinaryFormat.append(integer: Int16(-1), to: &buffer)
    try flush()
  }

  private mutating func flush() throws(PostgresError) {
    if handle.interruption.isCancelled {
      throw PostgresError(.cancelled, "cancelled while rows were written", statement: sql)
    }
    var sent: Int32 = 0
    while true {
      sent = unsafe buffer.withUnsafeBytes { bytes in
        unsafe PQputCopyData(
          handle.pointer, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(clamping: bytes.count))
      }
      if sent != 0 { break }
      try handle.exchange(sql)
    }
    // Without flushing, libpq would keep all rows in memory.
    if sent == 1 { try handle.flush(sql) }
    guard sent == 1, handle.hear() else {
      isEnded = true
      throw handle.endOfCopy(sql) ?? handle.connectionError(sql)
    }
    buffer.removeAll(keepingCapacity: true)
  }

  private mutating func integer(_ value: (some FixedWidthInteger)?, _ column: PostgresColumn) throws(PostgresError) {
    guard let value else { throw refusal(column, "the column's type cannot hold the integer") }
    BinaryFormat.append(integer: Int32(value.bitWidth / 8), to: &buffer)
    BinaryFormat.append(integer: value, to: &buffer)
  }

  private mutating func nextColumn(
    _ given: String, where fits: (PostgresType) -> Bool
  ) throws(PostgresError) -> PostgresColumn {
    guard let position = next, position < columns.count else {
      throw PostgresError(.usage, "a value outside a row, or more values than columns", statement: sql)
    }
    let column = columns[position]
    guard fits(column.type) else {
      throw refusal(column, "\(given) does not fit a column of type \(column.type.rawValue)")
    }
    next = position + 1
    return column
  }

  private func refusal(_ column: PostgresColumn, _ message: String) -> PostgresError {
    PostgresError(.usage, message, column: column.name, statement: sql)
  }
}

extension BlockingConnection {
  /// Writes the rows that `body` passes to its writer, all or none, and returns their number.
  @discardableResult
  public func copyIn(
    into table: PostgresIdentifier, columns names: [String], _ body: (inout CopyWriter) throws -> Void
  ) throws -> Int {
    var quoted: [String] = []
    for name in names { quoted.append(try PostgresIdentifier(name).sql) }
    let list = quoted.joined(separator: ", ")
    // The binary form depends on the column's type. Describing a query needs no right to read the table.
    let columns = try describe("SELECT \(list) FROM \(table.sql)")
    let sql = "COPY \(table.sql) (\(list)) FROM STDIN (FORMAT binary)"
    try beginCopy(sql)
    defer { handle.endStreaming() }
    var writer = CopyWriter(handle, sql: sql, columns: columns)
    do {
      try body(&writer)
      try writer.finish()
    } catch {
      if !writer.isEnded { handle.abandonCopy(sql) }
      throw error
    }
    try handle.sendCopyEnd(sql)
    if let failure = handle.endOfCopy(sql) { throw failure }
    return writer.rowCount
  }
}
