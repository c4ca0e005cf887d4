import Postgres
import Reconciliation

/// Reads values from the columns of a row, one after the other. Texts in borrowed bytes are valid until the next row.
public struct RowReader<Row: RowFields & ~Copyable>: FieldCoder {
  public typealias Failure = PostgresError

  public static var isReading: Bool { true }

  private let row: UnsafePointer<Row>
  private var column: Int

  /// The row must outlive the reader.
  fileprivate init(_ row: UnsafePointer<Row>, from column: Int) { (self.row, self.column) = (row, column) }

  private mutating func next() -> Int {
    defer { column += 1 }
    return column
  }

  public mutating func code(flag: inout Bool) throws(PostgresError) {
    if let read = try row.pointee.optionalBool(next()) { flag = read } else { try fail() }
  }

  public mutating func code(optionalFlag flag: inout Bool?) throws(PostgresError) {
    flag = try row.pointee.optionalBool(next())
  }

  public mutating func code(number: inout Int64) throws(PostgresError) {
    if let read = try row.pointee.optionalInt64(next()) { number = read } else { try fail() }
  }

  public mutating func code(integer: inout Int32) throws(PostgresError) {
    if let read = try row.pointee.optionalInt32(next()) { integer = read } else { try fail() }
  }

  public mutating func code(instant: inout Instant) throws(PostgresError) {
    guard let read = try row.pointee.optionalTimestamp(next()) else { return try fail() }
    instant = Instant(microseconds: read)
  }

  public mutating func code<Text: FieldText>(text: inout Text) throws(PostgresError) {
    text = try row.pointee.text(next(), as: Text.self)
  }

  public mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) throws(PostgresError) {
    word = try row.pointee.word(next(), of: vocabulary)
  }

  public mutating func code<Value: FieldCoded>(optional value: inout Value?) throws(PostgresError) {
    if try row.pointee.isNull(column) {
      value = nil
      column += Value.fieldCount
      return
    }
    var present = Value.blank
    try code(&present)
    value = present
  }

  public func fail() throws(PostgresError) {
    throw PostgresError(.unexpectedData, "column \(column) of a row has no value of its type")
  }
}

extension RowFields where Self: ~Copyable {
  /// Reads values from a column on.
  public func read<Result>(
    from column: Int = 0, _ body: (inout RowReader<Self>) throws(PostgresError) -> Result
  ) throws(PostgresError) -> Result {
    try withUnsafePointer(to: self) { (row) throws(PostgresError) in
      var reader = RowReader(row, from: column)
      return try body(&reader)
    }
  }
}

// Public, because the compiler specialises it in the modules that call it for every row.
extension ProofStateFields {
  /// The state from the column `first` on; nil if there is no check.
  public init?(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) {
    self = .blank
    guard try read(row, from: first) else { return nil }
  }

  /// False, with nothing read, if there is no check.
  public mutating func read(_ row: borrowing CopyReader, from first: Int) throws(PostgresError) -> Bool {
    if try row.isNull(first) { return false }
    try row.read(from: first) { (reader) throws(PostgresError) in try code(with: &reader) }
    return true
  }
}
