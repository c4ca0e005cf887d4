import Postgres
import Reconciliation
import Streams

/// Reads values from the columns of any row, and notes where it breaks the contract.
struct CheckedRow: FieldCoder {
  typealias Failure = PostgresError

  static var isReading: Bool { true }

  private(set) var defects = Defects()
  /// As stored, for the report of a bad row.
  private(set) var quantity: Int64?
  private(set) var amountText = ""
  private(set) var currencyText = ""
  private(set) var statusText = ""
  /// True if a date that must be there is not. The as-of stands in for it.
  private(set) var isUndated = false

  private let row: UnsafePointer<CopyReader>
  private let asOf: Instant
  private let bundleIds: [String]?
  private var column = 0
  private var name = ""
  private var isRequired = true
  private var isTrimmed = false
  /// True if the field that was read last has no value.
  private var isMissing = false
  /// Reports name them after the status.
  private var amountDefects = Defects()

  init(_ row: UnsafePointer<CopyReader>, asOf: Instant, bundleIds: [String]?) {
    (self.row, self.asOf, self.bundleIds) = (row, asOf, bundleIds)
  }

  private mutating func next() -> Int {
    defer { column += 1 }
    return column
  }

  mutating func name(_ column: String) { name = column }

  mutating func code<Text: FieldText>(text: inout Text) throws(PostgresError) {
    let read = try isTrimmed ? row.pointee.salesText(next()).trimmed : row.pointee.salesText(next())
    defects.note(
      name == "bundle_id"
        ? SalesRows.defect(ofBundle: read, among: bundleIds) : read.defect(name, isRequired: isRequired))
    isMissing = read.present == nil
    text = read.shown.withBytes { Text(copying: BorrowedText($0)) }
  }

  mutating func code<Text: FieldText>(trimmed text: inout Text?) throws(PostgresError) {
    isTrimmed = true
    try code(&text)
    isTrimmed = false
  }

  mutating func code<Value: FieldCoded>(optional value: inout Value?) throws(PostgresError) {
    isRequired = false
    var read = Value.blank
    try code(&read)
    isRequired = true
    value = isMissing ? nil : read
  }

  mutating func code(number: inout Int64) throws(PostgresError) {
    quantity = try row.pointee.optionalInt64(next())
    defects.note(SalesRows.defect(ofQuantity: quantity))
    isMissing = quantity == nil
    number = quantity ?? 0
  }

  mutating func code(integer: inout Int32) throws(PostgresError) {
    var number: Int64 = 0
    try code(number: &number)
    integer = Int32(clamping: number)
  }

  mutating func code(amount: inout Money, currency column: String) throws(PostgresError) {
    let decimal = try row.pointee.optionalNumeric(next())
    let text = try row.pointee.salesText(next())
    let currency = Currency(text.shown)
    (amountText, currencyText) = (decimal.map { SalesRows.written($0, in: currency) } ?? "", text.shown.text)
    if let currency {
      amountDefects.note(SalesRows.defect(of: decimal, in: currency))
      let minorUnits = (try? decimal?.scaledInt64(decimals: Int(currency.digits))) ?? 0
      amount = Money(minorUnits: minorUnits, currency: currency)
    } else {
      let unknown = "\(column) '\(text.shown)' is not a code of ISO 4217"
      amountDefects.note(text.defect(column, isRequired: true) ?? unknown)
      if decimal == nil { amountDefects.note("\(name) is missing") }
    }
  }

  mutating func code<Word>(spelling word: inout Word, of vocabulary: Vocabulary<Word>) throws(PostgresError) {
    let text = try row.pointee.salesText(next())
    statusText = text.shown.text
    if let read = text.shown.withBytes({ vocabulary.word(BorrowedText($0)) }) {
      word = read
    } else {
      defects.note(SalesRows.defect(text, name, among: Word.allCases.map(\.rawValue)))
    }
    defects.note(amountDefects.text)
  }

  mutating func code(instant: inout Instant) throws(PostgresError) {
    let read = try SalesRows.timestamp(row.pointee, next())
    defects.note(read.defect(name, isRequired: isRequired))
    isMissing = read.instant == nil
    if isRequired, isMissing { isUndated = true }
    instant = read.instant ?? asOf
  }

  // The shop's relations have no such columns.
  mutating func code(flag: inout Bool) {}
  mutating func code(optionalFlag: inout Bool?) {}
  mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) {}

  mutating func fail() {}
}

/// The defects of a row; needs no allocation for a valid one.
struct Defects {
  private(set) var text: String?

  mutating func note(_ defect: String?) {
    guard let defect else { return }
    text = text.map { "\($0); \(defect)" } ?? defect
  }
}
