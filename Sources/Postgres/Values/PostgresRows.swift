import CLibPQ

/// The rows of a finished statement, copied, so that the connection can be used or closed.
public struct PostgresRows: Sendable {
  public let columns: [PostgresColumn]
  /// The number of rows inserted, updated, deleted, copied or returned.
  public let affectedRows: Int
  private let bytes: [UInt8]
  /// The range of each field in `bytes`, row by row; nil is a NULL.
  private let fields: [Range<Int>?]
  private let rowCount: Int

  init(_ result: borrowing ServerResult) {
    columns = result.columns
    affectedRows = result.affectedRows
    rowCount = unsafe Int(PQntuples(result.pointer))
    var bytes: [UInt8] = []
    var fields: [Range<Int>?] = []
    fields.reserveCapacity(rowCount * columns.count)
    for row in 0..<Int32(rowCount) {
      for column in 0..<Int32(columns.count) {
        guard unsafe PQgetisnull(result.pointer, row, column) == 0,
          let value = unsafe PQgetvalue(result.pointer, row, column)
        else {
          fields.append(nil)
          continue
        }
        let start = bytes.count
        let length = unsafe Int(PQgetlength(result.pointer, row, column))
        unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(start: value, count: length))
        fields.append(start..<bytes.count)
      }
    }
    (self.bytes, self.fields) = (bytes, fields)
  }

  public func single() throws(PostgresError) -> PostgresRow {
    guard count == 1, let row = first else {
      throw PostgresError(.unexpectedData, "one row was expected, not \(count)")
    }
    return row
  }

  /// The first column of all rows. Throws for a NULL.
  public func texts() throws(PostgresError) -> [String] {
    try map { row throws(PostgresError) in try row.text(0) }
  }

  func field<R>(
    row: Int, column: Int, _ body: (UnsafeRawBufferPointer?) throws(PostgresError) -> R
  ) throws(PostgresError) -> R {
    guard let range = fields[row * columns.count + column] else { return try body(nil) }
    return try unsafe bytes.withUnsafeBufferPointer { bytes throws(PostgresError) in
      try unsafe body(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[range])))
    }
  }
}

extension PostgresRows: RandomAccessCollection {
  public var startIndex: Int { 0 }
  public var endIndex: Int { rowCount }

  public subscript(position: Int) -> PostgresRow {
    precondition(indices.contains(position), "row out of range")
    return PostgresRow(rows: self, index: position)
  }
}

/// A column's position from 0, or its name in the result.
public protocol PostgresColumnKey {
  func position(in columns: [PostgresColumn]) throws(PostgresError) -> Int
}

extension Int: PostgresColumnKey {
  public func position(in columns: [PostgresColumn]) throws(PostgresError) -> Int {
    guard columns.indices.contains(self) else { throw PostgresError(.usage, "there is no column \(self)") }
    return self
  }
}

extension String: PostgresColumnKey {
  public func position(in columns: [PostgresColumn]) throws(PostgresError) -> Int {
    guard let position = columns.firstIndex(where: { $0.name == self }) else {
      throw PostgresError(.usage, "there is no column \(self)")
    }
    return position
  }
}
