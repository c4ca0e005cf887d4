/// One row of a finished statement, with the accessors of `CopyReader`.
public struct PostgresRow: Sendable {
  let rows: PostgresRows
  let index: Int

  public func isNull(_ key: some PostgresColumnKey) throws(PostgresError) -> Bool {
    try unsafe rows.field(row: index, column: key.position(in: rows.columns)) { unsafe $0 == nil }
  }

  /// True if the field is NULL or valid UTF-8. A server in `SQL_ASCII` may send other bytes.
  public func isText(_ key: some PostgresColumnKey) throws(PostgresError) -> Bool {
    let column = try key.position(in: rows.columns)
    return try unsafe rows.field(row: index, column: column) { bytes throws(PostgresError) in
      guard let bytes = unsafe bytes else { return true }
      return unsafe rows.columns[column].type.isText && BinaryFormat.isText(bytes)
    }
  }

  public func text(_ key: some PostgresColumnKey) throws(PostgresError) -> String {
    try unsafe required(key, "text", where: \.isText, BinaryFormat.text)
  }

  public func optionalText(_ key: some PostgresColumnKey) throws(PostgresError) -> String? {
    try unsafe optional(key, "text", where: \.isText, BinaryFormat.text)
  }

  /// A text for display; of a text that is not valid UTF-8, bytes other than ASCII as `\xE9`. nil for NULL.
  public func shownText(_ key: some PostgresColumnKey) throws(PostgresError) -> String? {
    try unsafe optional(key, "text", where: \.isText, BinaryFormat.shownText)
  }

  public func int64(_ key: some PostgresColumnKey) throws(PostgresError) -> Int64 {
    try unsafe required(key, "an integer", where: \.isInteger, BinaryFormat.integer)
  }

  public func optionalInt64(_ key: some PostgresColumnKey) throws(PostgresError) -> Int64? {
    try unsafe optional(key, "an integer", where: \.isInteger, BinaryFormat.integer)
  }

  public func int32(_ key: some PostgresColumnKey) throws(PostgresError) -> Int32 {
    try unsafe required(key, "a 32-bit integer", where: \.isInteger) { unsafe int32($0) }
  }

  public func optionalInt32(_ key: some PostgresColumnKey) throws(PostgresError) -> Int32? {
    try unsafe optional(key, "a 32-bit integer", where: \.isInteger) { unsafe int32($0) }
  }

  public func bool(_ key: some PostgresColumnKey) throws(PostgresError) -> Bool {
    try unsafe required(key, "a boolean", where: { $0 == .bool }, BinaryFormat.bool)
  }

  public func optionalBool(_ key: some PostgresColumnKey) throws(PostgresError) -> Bool? {
    try unsafe optional(key, "a boolean", where: { $0 == .bool }, BinaryFormat.bool)
  }

  /// `timestamptz` in microseconds since 1970-01-01T00:00:00Z. Throws for infinity.
  public func timestamp(_ key: some PostgresColumnKey) throws(PostgresError) -> Int64 {
    try unsafe required(key, "a finite timestamptz", where: { $0 == .timestamptz }, BinaryFormat.timestamp)
  }

  public func optionalTimestamp(_ key: some PostgresColumnKey) throws(PostgresError) -> Int64? {
    try unsafe optional(key, "a finite timestamptz", where: { $0 == .timestamptz }, BinaryFormat.timestamp)
  }

  public func numeric(_ key: some PostgresColumnKey) throws(PostgresError) -> PostgresNumeric {
    try unsafe required(key, "a numeric", where: { $0 == .numeric }, BinaryFormat.numeric)
  }

  public func optionalNumeric(_ key: some PostgresColumnKey) throws(PostgresError) -> PostgresNumeric? {
    try unsafe optional(key, "a numeric", where: { $0 == .numeric }, BinaryFormat.numeric)
  }

  public func bytes(_ key: some PostgresColumnKey) throws(PostgresError) -> [UInt8] {
    try unsafe required(key, "bytea", where: { $0 == .bytea }) { unsafe [UInt8]($0) }
  }

  /// `text[]` or `varchar[]` of one dimension.
  public func textArray(_ key: some PostgresColumnKey) throws(PostgresError) -> [String?] {
    try unsafe required(key, "a text[]", where: \.isTextArray, BinaryFormat.textArray)
  }

  private func int32(_ bytes: UnsafeRawBufferPointer) -> Int32? {
    unsafe BinaryFormat.integer(bytes).flatMap(Int32.init(exactly:))
  }

  private func required<Value>(
    _ key: some PostgresColumnKey, _ expected: String, where fits: (PostgresType) -> Bool,
    _ decode: (UnsafeRawBufferPointer) -> Value?
  ) throws(PostgresError) -> Value {
    guard let value = try unsafe optional(key, expected, where: fits, decode) else {
      throw .null(rows.columns[try key.position(in: rows.columns)])
    }
    return value
  }

  private func optional<Value>(
    _ key: some PostgresColumnKey, _ expected: String, where fits: (PostgresType) -> Bool,
    _ decode: (UnsafeRawBufferPointer) -> Value?
  ) throws(PostgresError) -> Value? {
    let position = try key.position(in: rows.columns)
    let column = rows.columns[position]
    guard fits(column.type) else { throw .mismatch(column, expected: expected) }
    return try unsafe rows.field(row: index, column: position) { bytes throws(PostgresError) in
      guard let bytes = unsafe bytes else { return nil }
      guard let value = unsafe decode(bytes) else { throw .mismatch(column, expected: expected) }
      return value
    }
  }
}

extension PostgresError {
  static func null(_ column: PostgresColumn) -> PostgresError {
    PostgresError(.unexpectedData, "the column is NULL", column: column.name)
  }

  static func mismatch(_ column: PostgresColumn, expected: String) -> PostgresError {
    PostgresError(
      .unexpectedData, "expected \(expected), not this value of type \(column.type.rawValue)", column: column.name)
  }
}
