import Postgres
import Reconciliation

/// A COPY stream with one row of look-ahead, for merging by key.
struct OrderedStream<Row>: ~Copyable {
  private var reader: CopyReader
  private let decode: (borrowing CopyReader) throws -> Row
  private let key: (Row) -> Identifier?
  private var head: Row?
  /// The key of the next row; nil when that row has none, or after the last.
  private(set) var nextKey: Identifier?

  /// Whether there is no row left.
  var isAtEnd: Bool { head == nil }

  init(
    _ reader: consuming CopyReader, key: @escaping (Row) -> Identifier?,
    decode: @escaping (borrowing CopyReader) throws -> Row
  ) throws {
    self.reader = reader
    self.decode = decode
    self.key = key
    try advance()
  }

  /// Takes the next row out; nil after the last.
  mutating func next() throws -> Row? {
    // Taken, not copied: a row is some twenty references.
    guard let row = head.take() else { return nil }
    try advance()
    return row
  }

  private mutating func advance() throws {
    head = try reader.advance() ? try decode(reader) : nil
    nextKey = head.flatMap(key)
  }
}

/// A transaction and the order that it is filed under.
struct FiledTransaction {
  var orderId: Identifier?
  var record: TransactionRecord
  /// What the last run decided.
  var isUnclaimed: Bool

  init(_ row: borrowing CopyReader) throws(PostgresError) {
    orderId = try row.optionalId(0)
    record = try TransactionTable.record(row)
    isUnclaimed = try row.bool(TransactionTable.unclaimedColumn)
  }
}
