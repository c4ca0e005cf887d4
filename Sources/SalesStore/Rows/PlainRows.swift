import Postgres
import Reconciliation
import Streams

// The fast path: valid rows, as nearly all are, decoded in place. `SalesRows` decodes the others and names each defect.

extension CopyReader {
  /// A valid text; empty if missing. Nil means that the row needs the full check, here and in the accessors below.
  fileprivate func plainText(_ column: Int) throws(PostgresError) -> BorrowedText? {
    guard let bytes = try bytes(column) else { return .empty }
    guard bytes.count <= SalesContract.longestId, try isText(column) else { return nil }
    return BorrowedText(bytes)
  }

  // Nil also for a missing text.
  fileprivate func plainId(_ column: Int) throws(PostgresError) -> BorrowedText? {
    guard let text = try plainText(column), !text.bytes.isEmpty else { return nil }
    return text
  }

  fileprivate func optionalPlainId(_ column: Int) throws(PostgresError) -> BorrowedText?? {
    guard let text = try plainText(column) else { return nil }
    return .some(text.bytes.isEmpty ? nil : text)
  }

  fileprivate func optionalPlainInstant(_ column: Int) throws(PostgresError) -> Instant?? {
    switch try SalesRows.timestamp(self, column) {
    case .missing: .some(nil)
    case .finite(let instant): .some(instant)
    case .infinite, .beyond: nil
    }
  }
}

/// Reads values from the columns of a row that keeps the contract.
private struct PlainRow: FieldCoder {
  typealias Failure = PostgresError

  static var isReading: Bool { true }

  private let row: UnsafePointer<CopyReader>
  private var column = 0
  /// False if the row may break the contract. Its values are incomplete then.
  private(set) var isPlain = true

  init(_ row: UnsafePointer<CopyReader>) { self.row = row }

  private mutating func next() -> Int {
    defer { column += 1 }
    return column
  }

  mutating func code<Text: FieldText>(text: inout Text) throws(PostgresError) {
    if let plain = try row.pointee.plainId(next()) { text = Text(copying: plain) } else { fail() }
  }

  mutating func code<Text: FieldText>(trimmed text: inout Text?) throws(PostgresError) {
    guard let plain = try row.pointee.plainText(next())?.trimmed else { return fail() }
    text = plain.bytes.isEmpty ? nil : Text(copying: plain)
  }

  mutating func code<Value: FieldCoded>(optional value: inout Value?) throws(PostgresError) {
    if try row.pointee.bytes(column)?.isEmpty ?? true {
      column += Value.fieldCount
      value = nil
    } else {
      var present = Value.blank
      try code(&present)
      value = present
    }
  }

  mutating func code(number: inout Int64) throws(PostgresError) {
    if let read = try row.pointee.optionalInt64(next()) { number = read } else { fail() }
  }

  mutating func code(integer: inout Int32) throws(PostgresError) {
    guard let read = try row.pointee.optionalInt64(next()).flatMap(Int32.init(exactly:)) else { return fail() }
    integer = read
  }

  mutating func code(amount: inout Money, currency column: String) throws(PostgresError) {
    let decimal = try row.pointee.optionalNumeric(next())
    guard let currency = try row.pointee.plainId(next()).flatMap({ Currency($0) }),
      let minorUnits = try? decimal?.scaledInt64(decimals: Int(currency.digits)), minorUnits >= 0
    else { return fail() }
    amount = Money(minorUnits: minorUnits, currency: currency)
  }

  mutating func code(instant: inout Instant) throws(PostgresError) {
    if case .finite(let read) = try SalesRows.timestamp(row.pointee, next()) { instant = read } else { fail() }
  }

  // The shop's relations have no such columns.
  mutating func code(flag: inout Bool) { fail() }
  mutating func code(optionalFlag: inout Bool?) { fail() }
  mutating func code<Word>(word: inout Word?, of vocabulary: Vocabulary<Word>) { fail() }

  mutating func fail() { isPlain = false }
}

extension SalesRows {
  /// As `order(_:asOf:)`; nil if the row may break the contract.
  package func plainOrder(_ row: borrowing CopyReader) throws(PostgresError) -> BorrowedOrder? {
    var order = BorrowedOrder.blank
    let keepsContract = try withUnsafePointer(to: row) { (row) throws(PostgresError) in
      var reader = PlainRow(row)
      try order.codeColumns(with: &reader)
      return reader.isPlain
    }
    guard keepsContract, order.quantity >= 1, isPlain(order.bundleId),
      case .finite(let updatedAt) = try Self.timestamp(row, Self.updated)
    else { return nil }
    Self.complete(&order, updatedAt: updatedAt, horizon)
    return order
  }

  /// As `receipt(_:asOf:)`, all but the state. False if the row may break the contract.
  package static func readPlain(
    _ row: borrowing CopyReader, into receipt: inout BorrowedReceipt
  ) throws(PostgresError) -> Bool {
    guard let receiptId = try row.plainId(0), let orderId = try row.optionalPlainId(1),
      let userId = try row.optionalPlainId(2), let environment = try row.optionalPlainId(3),
      let status = try row.plainId(4), receiptStatuses.contains(where: { status.isSame(as: $0) }),
      case .finite(let receivedAt) = try timestamp(row, 5), try row.optionalPlainInstant(6) != nil, try !row.bool(7)
    else { return false }
    (receipt.receiptId, receipt.orderId, receipt.userId) = (receiptId, orderId, userId)
    (receipt.claimedEnvironment, receipt.receivedAt) = (environment, receivedAt)
    return true
  }

  /// As `delivery(_:asOf:)`; nil if the row may break the contract.
  package func plainDelivery(_ row: borrowing CopyReader) throws(PostgresError) -> BorrowedDelivery? {
    var delivery = BorrowedDelivery.blank
    let keepsContract = try withUnsafePointer(to: row) { (row) throws(PostgresError) in
      var reader = PlainRow(row)
      try delivery.codeColumns(with: &reader)
      return reader.isPlain
    }
    guard keepsContract, let quantity = delivery.quantity, (1...Int64(Int32.max)).contains(quantity) else { return nil }
    if let date = delivery.revokedAt, hides(date) { delivery.revokedAt = nil }
    return delivery
  }

  private func isPlain(_ bundleId: BorrowedText?) -> Bool {
    guard let bundleIds else { return true }
    guard let bundleId else { return bundleIds.count == 1 }
    return bundleIds.contains { bundleId.isSame(as: $0) }
  }
}
