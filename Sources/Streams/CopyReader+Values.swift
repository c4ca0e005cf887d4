import Postgres
import Reconciliation

/// The fields of a row by position from 0, so that each relation has one decoder for all sources.
public protocol RowFields: ~Copyable {
  func isNull(_ column: Int) throws(PostgresError) -> Bool
  func text<Text: FieldText>(_ column: Int, as type: Text.Type) throws(PostgresError) -> Text
  func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word?
  func optionalInt32(_ column: Int) throws(PostgresError) -> Int32?
  func optionalInt64(_ column: Int) throws(PostgresError) -> Int64?
  func optionalBool(_ column: Int) throws(PostgresError) -> Bool?
  func optionalTimestamp(_ column: Int) throws(PostgresError) -> Int64?
}

extension PostgresRow: RowFields {
  /// - Parameter type: a text of its own, because the row's bytes may move.
  public func text<Text: FieldText>(_ column: Int, as type: Text.Type) throws(PostgresError) -> Text {
    try id(column).withBytes { Text(copying: BorrowedText($0)) }
  }

  public func id(_ column: Int) throws(PostgresError) -> Identifier { Identifier(try text(column)) }

  public func optionalId(_ key: some PostgresColumnKey) throws(PostgresError) -> Identifier? {
    try optionalText(key).map { Identifier($0) }
  }

  public func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word? {
    guard var spelling = try optionalText(column) else { return nil }
    return spelling.withUTF8 { vocabulary.word(BorrowedText(UnsafeRawBufferPointer($0))) }
  }

  public func instant(_ key: some PostgresColumnKey) throws(PostgresError) -> Instant {
    Instant(microseconds: try timestamp(key))
  }

  public func optionalInstant(_ key: some PostgresColumnKey) throws(PostgresError) -> Instant? {
    try optionalTimestamp(key).map { Instant(microseconds: $0) }
  }
}

// Without a `String`, because most fields of a night's rows are ids and enum words.
extension CopyReader: RowFields {
  public func id(_ column: Int) throws(PostgresError) -> Identifier {
    try withText(column) { text in text.withUnsafeBytes { Identifier(utf8: $0) } }
  }

  public func text<Text: FieldText>(_ column: Int, as type: Text.Type) throws(PostgresError) -> Text {
    Text(copying: try borrowed(column))
  }

  public func optionalId(_ column: Int) throws(PostgresError) -> Identifier? { try isNull(column) ? nil : id(column) }

  /// The bytes of a field for comparison, valid UTF-8 or not, until the next row is read; nil for NULL.
  public func optionalKey(_ column: Int) throws(PostgresError) -> BorrowedText? {
    try bytes(column).map { BorrowedText($0) }
  }

  public func word<Word>(_ column: Int, of vocabulary: Vocabulary<Word>) throws(PostgresError) -> Word? {
    guard let spelling = try optionalBorrowed(column) else { return nil }
    return vocabulary.word(spelling)
  }

  /// A text without copying, valid until the next row is read.
  public func borrowed(_ column: Int) throws(PostgresError) -> BorrowedText {
    try withText(column) { text in text.withUnsafeBytes { BorrowedText($0) } }
  }

  public func optionalBorrowed(_ column: Int) throws(PostgresError) -> BorrowedText? {
    try isNull(column) ? nil : borrowed(column)
  }

  public func optionalInstant(_ column: Int) throws(PostgresError) -> Instant? {
    try optionalTimestamp(column).map { Instant(microseconds: $0) }
  }
}
