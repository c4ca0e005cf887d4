import Reconciliation
import Reporting

/// Writes values into bytes that `RecordReader` reads back, for records that wait on disk.
struct RecordBytes {
  private(set) var bytes: [UInt8] = []

  mutating func clear() { bytes.removeAll(keepingCapacity: true) }

  mutating func put(_ value: Int64) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func put(_ value: Int64?) {
    bytes.append(value == nil ? 0 : 1)
    if let value { put(value) }
  }

  mutating func put(_ text: String) {
    var text = text
    text.withUTF8 {
      put(Int64($0.count))
      bytes.append(contentsOf: $0)
    }
  }

  mutating func put(_ text: String?) {
    bytes.append(text == nil ? 0 : 1)
    if let text { put(text) }
  }

  mutating func put(_ id: Identifier) { put(id.text) }
  mutating func put(_ id: Identifier?) { put(id?.text) }
  mutating func put(_ instant: Instant?) { put(instant?.microseconds) }

  mutating func put(_ money: Money?) {
    put(money?.minorUnits)
    if let money { put(money.currency.code) }
  }
}

/// Reads what `RecordBytes` wrote, in the same order. A record that ends too early is a defect of this program.
struct RecordReader {
  /// The record was written by another order of calls.
  struct Mismatch: Error {}

  private let bytes: ArraySlice<UInt8>
  private var position: Int

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  mutating func int() throws(Mismatch) -> Int64 {
    guard bytes.endIndex - position >= 8 else { throw Mismatch() }
    var value: UInt64 = 0
    for index in (position..<position + 8).reversed() { value = value << 8 | UInt64(bytes[index]) }
    position += 8
    return Int64(bitPattern: value)
  }

  mutating func optionalInt() throws(Mismatch) -> Int64? { try isPresent() ? int() : nil }

  mutating func text() throws(Mismatch) -> String {
    let count = Int(try int())
    guard count >= 0, bytes.endIndex - position >= count else { throw Mismatch() }
    defer { position += count }
    return String(decoding: bytes[position..<position + count], as: UTF8.self)
  }

  mutating func optionalText() throws(Mismatch) -> String? { try isPresent() ? text() : nil }
  mutating func id() throws(Mismatch) -> Identifier { Identifier(try text()) }
  mutating func optionalId() throws(Mismatch) -> Identifier? { try isPresent() ? id() : nil }
  mutating func optionalInstant() throws(Mismatch) -> Instant? { try optionalInt().map { Instant(microseconds: $0) } }

  mutating func optionalMoney() throws(Mismatch) -> Money? {
    guard let minorUnits = try optionalInt() else { return nil }
    guard let currency = Currency(code: try text()) else { throw Mismatch() }
    return Money(minorUnits: minorUnits, currency: currency)
  }

  private mutating func isPresent() throws(Mismatch) -> Bool {
    guard position < bytes.endIndex else { throw Mismatch() }
    defer { position += 1 }
    return bytes[position] == 1
  }
}

extension Finding {
  func write(to record: inout RecordBytes) {
    record.put(kind.rawValue)
    record.put(subject)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(transactionId)
    record.put(receiptId)
    record.put(deliveryId)
    record.put(environment?.rawValue)
    record.put(bundleId)
    record.put(amount)
    record.put(atStake)
    record.put(paidAt)
    record.put(deliveredAt)
    record.put(reason)
    record.put(evidenceCheckedAt)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    guard let kind = FindingKind(rawValue: try record.text()) else { throw RecordReader.Mismatch() }
    self.init(kind: kind, subject: try record.id(), reason: "")
    orderId = try record.optionalId()
    userId = try record.optionalId()
    productId = try record.optionalId()
    transactionId = try record.optionalId()
    receiptId = try record.optionalId()
    deliveryId = try record.optionalId()
    environment = try record.optionalText().flatMap(AppleEnvironment.init)
    bundleId = try record.optionalText()
    amount = try record.optionalMoney()
    atStake = try record.optionalMoney()
    paidAt = try record.optionalInstant()
    deliveredAt = try record.optionalInstant()
    reason = try record.text()
    evidenceCheckedAt = try record.optionalInstant()
  }
}

extension Receipt {
  func write(to record: inout RecordBytes) {
    record.put(receiptId)
    record.put(orderId)
    record.put(userId)
    record.put(claimedEnvironment)
    record.put(Optional(receivedAt))
    record.put(defect)
    record.put(state.outcome.rawValue)
    record.put(state.reason?.rawValue)
    record.put(state.kind?.rawValue)
    record.put(state.channel?.rawValue)
    record.put(state.environment?.rawValue)
    record.put(state.bundleId)
    record.put(state.appleStatus.map(Int64.init))
    record.put(Int64(state.attempts))
    record.put(state.lastAttempt)
    record.put(state.nextAttempt)
    record.put(state.answeredAt)
    record.put(state.signedTransactionId)
    record.put(Int64(state.broughtCount))
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      receiptId: try record.id(), orderId: try record.optionalId(), userId: try record.optionalId(),
      claimedEnvironment: try record.optionalText(),
      receivedAt: try record.optionalInstant() ?? Instant(microseconds: 0), state: ProofState())
    defect = try record.optionalText()
    state.outcome = CheckOutcome(rawValue: try record.text()) ?? .pending
    state.reason = try record.optionalText().flatMap(PaymentReason.init)
    state.kind = try record.optionalText().flatMap(ReceiptKind.init)
    state.channel = try record.optionalText().flatMap(EvidenceChannel.init)
    state.environment = try record.optionalText().flatMap(AppleEnvironment.init)
    state.bundleId = try record.optionalText()
    state.appleStatus = try record.optionalInt().map { Int32(clamping: $0) }
    state.attempts = Int32(clamping: try record.int())
    state.lastAttempt = try record.optionalInstant()
    state.nextAttempt = try record.optionalInstant()
    state.answeredAt = try record.optionalInstant()
    state.signedTransactionId = try record.optionalId()
    state.broughtCount = Int32(clamping: try record.int())
  }
}

extension RefundRow {
  func write(to record: inout RecordBytes) {
    record.put(transactionId)
    record.put(orderId)
    record.put(userId)
    record.put(productId)
    record.put(refunded)
    record.put(milliPercent.map(Int64.init))
    record.put(purchasedAt)
    record.put(refundedAt.microseconds)
    record.put(reason)
    record.put(disposition?.rawValue)
  }

  init(from record: inout RecordReader) throws(RecordReader.Mismatch) {
    self.init(
      transactionId: try record.id(), orderId: try record.optionalId(), userId: try record.optionalId(),
      productId: try record.id(), refunded: try record.optionalMoney(),
      milliPercent: try record.optionalInt().map { Int32(clamping: $0) }, purchasedAt: try record.optionalInstant(),
      refundedAt: Instant(microseconds: try record.int()), reason: try record.optionalText(),
      disposition: try record.optionalText().flatMap(Disposition.init))
  }
}
