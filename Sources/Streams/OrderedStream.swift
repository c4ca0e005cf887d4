import Postgres
import Reconciliation

/// A COPY stream for a merge join by its first column, which is in byte order, NULLs last.
public struct OrderedStream<Row>: ~Copyable {
  private var reader: CopyReader
  private let decode: (borrowing CopyReader) throws -> Row
  /// The key of the next row in the server's message; nil if the row has none, or after the last.
  public private(set) var nextKey: BorrowedText?
  public private(set) var isAtEnd = false

  public init(_ reader: consuming CopyReader, decode: @escaping (borrowing CopyReader) throws -> Row) throws {
    self.reader = reader
    self.decode = decode
    try advance()
  }

  public var front: CopyReader { @inline(__always) _read { yield reader } }

  public mutating func next() throws -> Row? {
    if isAtEnd { return nil }
    let row = try decode(reader)
    try advance()
    return row
  }

  public mutating func skip() throws { if !isAtEnd { try advance() } }

  /// Skips the remaining rows, because a stream dropped before its end makes its transaction fail.
  public mutating func skipRemaining() throws { while !isAtEnd { try advance() } }

  /// Skips rows with smaller keys; returns true if the next row has this key.
  public mutating func isNext(_ key: BorrowedText) throws -> Bool {
    while let next = nextKey, next < key { try advance() }
    return nextKey == key
  }

  private mutating func advance() throws {
    isAtEnd = try !reader.advance()
    nextKey = isAtEnd ? nil : try reader.optionalKey(0)
  }
}
