import Glibc

/// Fields of the current row by their position from 0.
///
/// An accessor without `optional` throws `.unexpectedData` for NULL; all of them throw it for a column of another type.
/// Nothing is allocated but what is returned.
extension CopyReader {
  /// Whether the field is NULL.
  public func isNull(_ column: Int) throws(PostgresError) -> Bool { try unsafe field(column) == nil }

  /// `text`, `varchar`, `char`, `name`, `json`, or an enum.
  public func text(_ column: Int) throws(PostgresError) -> String {
    let bytes = try unsafe present(column)
    guard columns[column].type.isText else { throw .mismatch(columns[column], expected: "text") }
    if unsafe isLast(bytes, of: column) {
      return unsafe lastTexts[column]
    }
    guard let value = unsafe BinaryFormat.text(bytes) else { throw .mismatch(columns[column], expected: "text") }
    unsafe lastTexts[column] = value
    return value
  }

  private func isLast(_ bytes: UnsafeRawBufferPointer, of column: Int) -> Bool {
    let isEqual = unsafe lastTexts[column].utf8.withContiguousStorageIfAvailable { last in
      unsafe last.count == bytes.count && byteOrder(UnsafeRawBufferPointer(last), bytes) == 0
    }
    return isEqual ?? false
  }

  /// As `text`; nil for NULL.
  public func optionalText(_ column: Int) throws(PostgresError) -> String? {
    try isNull(column) ? nil : text(column)
  }

  /// Whether a field can be read as a text; also for NULL. A server without an encoding can hold bytes that are none.
  public func isText(_ column: Int) throws(PostgresError) -> Bool {
    guard let bytes = try unsafe field(column) else { return true }
    return unsafe columns[column].type.isText && BinaryFormat.isText(bytes)
  }

  /// The characters of a field that `isText` refuses, so that a person can find the row: ASCII as it is, every other byte
  /// and zero as `\xE9`. Throws for NULL.
  public func escapedText(_ column: Int) throws(PostgresError) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var characters: [UInt8] = []
    for byte in unsafe [UInt8](try present(column)) {
      if (1..<0x80).contains(byte) {
        characters.append(byte)
      } else {
        characters += [UInt8(ascii: "\\"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// The characters of a `text` as they lie in the server's message, valid UTF-8; `body` gets them for its own duration
  /// only. For values that are made from characters without a `String` between.
  public func withText<R>(_ column: Int, _ body: (Span<UInt8>) -> R) throws(PostgresError) -> R {
    let bytes = try unsafe present(column)
    guard columns[column].type.isText, unsafe BinaryFormat.isText(bytes) else {
      throw .mismatch(columns[column], expected: "text")
    }
    return body(unsafe bytes.assumingMemoryBound(to: UInt8.self).span)
  }

  /// `smallint`, `integer` or `bigint`.
  public func int64(_ column: Int) throws(PostgresError) -> Int64 {
    try unsafe int64(present(column), column)
  }

  private func int64(_ bytes: UnsafeRawBufferPointer, _ column: Int) throws(PostgresError) -> Int64 {
    guard columns[column].type.isInteger, let value = unsafe BinaryFormat.integer(bytes) else {
      throw .mismatch(columns[column], expected: "an integer")
    }
    return value
  }

  /// As `int64`; nil for NULL.
  public func optionalInt64(_ column: Int) throws(PostgresError) -> Int64? {
    guard let bytes = try unsafe field(column) else { return nil }
    return try unsafe int64(bytes, column)
  }

  /// `smallint`, `integer` or `bigint` within 32 bits.
  public func int32(_ column: Int) throws(PostgresError) -> Int32 {
    guard let value = Int32(exactly: try int64(column)) else {
      throw .mismatch(columns[column], expected: "a 32-bit integer")
    }
    return value
  }

  /// As `int32`; nil for NULL.
  public func optionalInt32(_ column: Int) throws(PostgresError) -> Int32? {
    guard let value = try optionalInt64(column) else { return nil }
    guard let value = Int32(exactly: value) else { throw .mismatch(columns[column], expected: "a 32-bit integer") }
    return value
  }

  /// `boolean`.
  public func bool(_ column: Int) throws(PostgresError) -> Bool {
    let bytes = try unsafe present(column)
    guard columns[column].type == .bool, let value = unsafe BinaryFormat.bool(bytes) else {
      throw .mismatch(columns[column], expected: "a boolean")
    }
    return value
  }

  /// As `bool`; nil for NULL.
  public func optionalBool(_ column: Int) throws(PostgresError) -> Bool? {
    try isNull(column) ? nil : bool(column)
  }

  /// `timestamptz` in microseconds since 1970-01-01T00:00:00Z. Throws for infinity; see `isInfinite`.
  public func timestamp(_ column: Int) throws(PostgresError) -> Int64 {
    try unsafe timestamp(present(column), column)
  }

  private func timestamp(_ bytes: UnsafeRawBufferPointer, _ column: Int) throws(PostgresError) -> Int64 {
    guard columns[column].type == .timestamptz, let value = unsafe BinaryFormat.timestamp(bytes) else {
      throw .mismatch(columns[column], expected: "a finite timestamptz")
    }
    return value
  }

  /// As `timestamp`; nil for NULL.
  public func optionalTimestamp(_ column: Int) throws(PostgresError) -> Int64? {
    guard let bytes = try unsafe field(column) else { return nil }
    return try unsafe timestamp(bytes, column)
  }

  /// As `timestamp`; nil for infinity and for the last years that Postgres knows, which no count of microseconds since 1970
  /// reaches.
  public func representableTimestamp(_ column: Int) throws(PostgresError) -> Int64? {
    let bytes = try unsafe present(column)
    guard columns[column].type == .timestamptz else { throw .mismatch(columns[column], expected: "a timestamptz") }
    return unsafe BinaryFormat.timestamp(bytes)
  }

  /// Whether a `timestamptz` is `infinity` or `-infinity`; false for NULL.
  public func isInfinite(_ column: Int) throws(PostgresError) -> Bool {
    guard let bytes = try unsafe field(column) else { return false }
    return unsafe columns[column].type == .timestamptz && BinaryFormat.isInfiniteTimestamp(bytes)
  }

  /// `numeric`.
  public func numeric(_ column: Int) throws(PostgresError) -> PostgresNumeric {
    let bytes = try unsafe present(column)
    guard columns[column].type == .numeric, let value = unsafe BinaryFormat.numeric(bytes) else {
      throw .mismatch(columns[column], expected: "a numeric")
    }
    return value
  }

  /// As `numeric`; nil for NULL.
  public func optionalNumeric(_ column: Int) throws(PostgresError) -> PostgresNumeric? {
    try isNull(column) ? nil : numeric(column)
  }

  /// `text[]` or `varchar[]` of one dimension.
  public func textArray(_ column: Int) throws(PostgresError) -> [String?] {
    let bytes = try unsafe present(column)
    guard columns[column].type.isTextArray, let value = unsafe BinaryFormat.textArray(bytes) else {
      throw .mismatch(columns[column], expected: "a text[]")
    }
    return value
  }

  /// The bytes of a field as they lie in the server's message, until the next row is read; nil for NULL.
  @unsafe @inline(__always)
  public func bytes(_ column: Int) throws(PostgresError) -> UnsafeRawBufferPointer? { try unsafe field(column) }

  /// The bytes of a field of any type as the server sent them; `body` gets them for its own duration only.
  public func withBytes<R>(
    _ column: Int, _ body: (Span<UInt8>) throws(PostgresError) -> R
  ) throws(PostgresError) -> R {
    let bytes = try unsafe present(column)
    return try unsafe body(bytes.assumingMemoryBound(to: UInt8.self).span)
  }

  /// The order of a field's bytes and those of `text`, which is that of `COLLATE "C"`: negative when the field comes
  /// first, 0 when they are equal, positive when `text` comes first. Throws for NULL.
  public func compareBytes(_ column: Int, to text: String) throws(PostgresError) -> Int {
    let bytes = try unsafe present(column)
    var text = text
    return text.withUTF8 { unsafe byteOrder(bytes, UnsafeRawBufferPointer($0)) }
  }

  /// The order of two fields' bytes, as `compareBytes(_:to:)`. Throws for NULL.
  public func compareBytes(
    _ column: Int, to other: borrowing CopyReader, _ otherColumn: Int
  ) throws(PostgresError) -> Int {
    try unsafe byteOrder(present(column), other.present(otherColumn))
  }

  @inline(__always)
  private func present(_ column: Int) throws(PostgresError) -> UnsafeRawBufferPointer {
    guard let bytes = try unsafe field(column) else { throw .null(columns[column]) }
    return unsafe bytes
  }
}

private func byteOrder(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
  guard let first = left.baseAddress, let second = right.baseAddress else { return left.count - right.count }
  let order = unsafe memcmp(first, second, min(left.count, right.count))
  return order == 0 ? left.count - right.count : Int(order)
}
