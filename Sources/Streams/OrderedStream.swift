import Postgres
import Reconciliation

/// A COPY stream for merging by the id in its first column, whose rows come in the byte order of it, NULLs last.
public struct OrderedStream<Row>: ~Copyable {
  private var reader: CopyReader
  private let decode: (borrowing CopyReader) throws -> Row
  /// The key of the next row, where it lies in the server's message; nil when that row has none, or after the last.
  public private(set) var nextKey: BorrowedText?
  /// Whether there is no row left.
  public private(set) var isAtEnd = false

  public init(_ reader: consuming CopyReader, decode: @escaping (borrowing CopyReader) throws -> Row) throws {
    self.reader = reader
    self.decode = decode
    try advance()
  }

  /// The next row as it lies in the server's message.
  public var front: CopyReader { @inline(__always) _read { yield reader } }

  /// The next row; nil after the last.
  public mutating func next() throws -> Row? {
    if isAtEnd { return nil }
    let row = try decode(reader)
    try advance()
    return row
  }

  /// Passes over the next row.
  public mutating func skip() throws { if !isAtEnd { try advance() } }

  /// Passes over all that is left: a stream that is dropped before its end takes its transaction with it.
  public mutating func skipRest() throws { while !isAtEnd { try advance() } }

  /// Passes over the rows of lesser keys. Whether the next row is of this one.
  public mutating func isNext(_ key: BorrowedText) throws -> Bool {
    while let next = nextKey, next < key { try advance() }
    return nextKey == key
  }

  private mutating func advance() throws {
    isAtEnd = try !reader.advance()
    nextKey = isAtEnd ? nil : try reader.optionalKey(0)
  }
}
