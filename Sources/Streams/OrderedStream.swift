import Postgres
import Reconciliation

/// A COPY stream for merging by the id in its first column, whose rows come in the byte order of it, NULLs last.
package struct OrderedStream<Row>: ~Copyable {
  private var reader: CopyReader
  private let decode: (borrowing CopyReader) throws -> Row
  /// The key of the next row; nil when that row has none, or after the last.
  package private(set) var nextKey: Identifier?
  /// Whether there is no row left.
  package private(set) var isAtEnd = false

  package init(_ reader: consuming CopyReader, decode: @escaping (borrowing CopyReader) throws -> Row) throws {
    self.reader = reader
    self.decode = decode
    try advance()
  }

  /// The next row; nil after the last.
  package mutating func next() throws -> Row? {
    if isAtEnd { return nil }
    let row = try decode(reader)
    try advance()
    return row
  }

  /// Passes over the next row.
  package mutating func skip() throws { if !isAtEnd { try advance() } }

  private mutating func advance() throws {
    isAtEnd = try !reader.advance()
    nextKey = isAtEnd ? nil : try reader.optionalKey(0)
  }
}
