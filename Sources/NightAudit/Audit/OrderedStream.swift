import Postgres
import Reconciliation

/// A COPY stream with one row of look-ahead, for merging.
struct OrderedStream<Row>: ~Copyable {
  private var reader: CopyReader
  private let decode: (borrowing CopyReader) throws -> Row
  /// The next row; nil after the last.
  private(set) var head: Row?

  init(_ reader: consuming CopyReader, decode: @escaping (borrowing CopyReader) throws -> Row) throws {
    self.reader = reader
    self.decode = decode
    try advance()
  }

  /// Goes to the next row.
  mutating func advance() throws {
    head = try reader.advance() ? try decode(reader) : nil
  }
}

/// A transaction and the order that it is filed under.
struct FiledTransaction {
  var orderId: Identifier?
  var record: TransactionRecord
  /// What the last run decided.
  var isUnclaimed: Bool

  init(_ row: borrowing CopyReader) throws(PostgresError) {
    orderId = try row.optionalText(0).map { Identifier($0) }
    record = try TransactionTable.record(row)
    isUnclaimed = try row.bool(TransactionTable.unclaimedColumn)
  }
}
