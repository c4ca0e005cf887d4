import Glibc

/// Fields of the current row by position from 0. Accessors without `optional` throw `.unexpectedData` for NULL; all of
/// them throw it for another column type.
extension CopyReader {
  public func isNull(_ column: Int) throws(PostgresError) -> Bool { try unsafe field(column) == nil }

  /// `text`, `varchar`, `char`, `name`, `json`, or an enum.
  public func text(_ column: Int) throws(PostgresError) -> String {
    let bytes = try unsafe present(column)
    guard columns[column].type.isText else { throw .mismatch(columns[column], expected: "text") }
    if unsafe isLast(bytes, of: column) { return unsafe lastTexts[column] }
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

  public func optionalText(_ column: Int) throws(PostgresError) -> String? { try isNull(column) ? nil : text(column) }

  /// True if the field is valid UTF-8 or NULL. A server without an encoding may send invalid text.
  public func isText(_ column: Int) throws(PostgresError) -> Bool {
    guard let bytes = try unsafe field(column) else { return true }
    return unsafe columns[column].type.isText && BinaryFormat.isText(bytes)
  }

  /// The text of a field that `isText` rejects, for display: bytes other than ASCII as `\xE9`.
  public func escapedText(_ column: Int) throws(PostgresError) -> String {
    let bytes = try unsafe present(column)
    return unsafe BinaryFormat.escapedText(bytes)
  }

  /// Passes the valid UTF-8 of a `text` to `body` without copying; valid only during the call.
  public func withText<R>(_ column: Int, _ body: (Span<UInt8>) -> R) throws(PostgresError) -> R {
    let bytes = try unsafe present(column)
    guard columns[column].type.isText, unsafe BinaryFormat.isText(bytes) else {
      throw .mismatch(columns[column], expected: "text")
    }
    return body(unsafe bytes.assumingMemoryBound(to: UInt8.self).span)
  }

  public func int64(_ column: Int) throws(PostgresError) -> Int64 { try unsafe int64(present(column), column) }

  private func int64(_ bytes: UnsafeRawBufferPointer, _ column: Int) throws(PostgresError) -> Int64 {
    guard columns[column].type.isInteger, let value = unsafe BinaryFormat.integer(bytes) else {
      throw .mismatch(columns[column], expected: "an integer")
    }
    return value
  }

  public func optionalInt64(_ column: Int) throws(PostgresError) -> Int64? {
    guard let bytes = try unsafe field(column) else { return nil }
    return try unsafe int64(bytes, column)
  }

  public func int32(_ column: Int) throws(PostgresError) -> Int32 {
    guard let value = Int32(exactly: try int64(column)) else {
      throw .mismatch(columns[column], expected: "a 32-bit integer")
    }
    return value
  }

  public func optionalInt32(_ column: Int) throws(PostgresError) -> Int32? {
    guard let value = try optionalInt64(column) else { return nil }
    guard let value = Int32(exactly: value) else { throw .mismatch(columns[column], expected: "a 32-bit integer") }
    return value
  }

  public func bool(_ column: Int) throws(PostgresError) -> Bool {
    let bytes = try unsafe present(column)
    guard columns[column].type == .bool, let value = unsafe BinaryFormat.bool(bytes) else {
      throw .mismatch(columns[column], expected: "a boolean")
    }
    return value
  }

  public func optionalBool(_ column: Int) throws(PostgresError) -> Bool? { try isNull(column) ? nil : bool(column) }

  /// `timestamptz` in microseconds since 1970-01-01T00:00:00Z. Throws for infinity; see `isInfinite`.
  public func timestamp(_ column: Int) throws(PostgresError) -> Int64 { try unsafe timestamp(present(column), column) }

  private func timestamp(_ bytes: UnsafeRawBufferPointer, _ column: Int) throws(PostgresError) -> Int64 {
    guard columns[column].type == .timestamptz, let value = unsafe BinaryFormat.timestamp(bytes) else {
      throw .mismatch(columns[column], expected: "a finite timestamptz")
    }
    return value
  }

  public func optionalTimestamp(_ column: Int) throws(PostgresError) -> Int64? {
    guard let bytes = try unsafe field(column) else { return nil }
    return try unsafe timestamp(bytes, column)
  }

  /// As `timestamp`; nil for infinity and for the last years of Postgres' range, which do not fit.
  public func representableTimestamp(_ column: Int) throws(PostgresError) -> Int64? {
    let bytes = try unsafe present(column)
    guard columns[column].type == .timestamptz else { throw .mismatch(columns[column], expected: "a timestamptz") }
    return unsafe BinaryFormat.timestamp(bytes)
  }

  public func isInfinite(_ column: Int) throws(PostgresError) -> Bool {
    guard let bytes = try unsafe field(column) else { return false }
    return unsafe columns[column].type == .timestamptz && BinaryFormat.isInfiniteTimestamp(bytes)
  }

  public func numeric(_ column: Int) throws(PostgresError) -> PostgresNumeric {
    let bytes = try unsafe present(column)
    guard columns[column].type == .numeric, let value = unsafe BinaryFormat.numeric(bytes) else {
      throw .mismatch(columns[column], expected: "a numeric")
    }
    return value
  }

  public func optionalNumeric(_ column: Int) throws(PostgresError) -> PostgresNumeric? {
    try isNull(column) ? nil : numeric(column)
  }

  /// The bytes in the server's message, valid until the next row is read; nil for NULL.
  @unsafe @inline(__always)
  public func bytes(_ column: Int) throws(PostgresError) -> UnsafeRawBufferPointer? { try unsafe field(column) }

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
