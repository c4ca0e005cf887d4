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

  mutating func put(_ byte: UInt8) { bytes.append(byte) }

  mutating func put(_ text: String) {
    var text = text
    text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
  }

  private mutating func put(_ text: UnsafeRawBufferPointer) {
    withUnsafeBytes(of: UInt32(clamping: text.count).littleEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: text)
  }

  mutating func put(_ text: String?) {
    bytes.append(text == nil ? 0 : 1)
    if let text { put(text) }
  }

  mutating func put(_ id: Identifier) { id.withUTF8 { put($0) } }

  mutating func put(_ id: Identifier?) {
    bytes.append(id == nil ? 0 : 1)
    if let id { put(id) }
  }

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

  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func byte() throws(Mismatch) -> UInt8 { try number() }

  mutating func int() throws(Mismatch) -> Int64 { try number() }

  private mutating func number<Number: FixedWidthInteger>() throws(Mismatch) -> Number {
    let size = MemoryLayout<Number>.size
    guard bytes.count - position >= size else { throw Mismatch() }
    defer { position += size }
    return bytes.withUnsafeBytes {
      Number(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Number.self))
    }
  }

  mutating func optionalInt() throws(Mismatch) -> Int64? { try isPresent() ? int() : nil }

  mutating func text() throws(Mismatch) -> String {
    let range = try nextText()
    return bytes.withUnsafeBytes { String(decoding: $0[range], as: UTF8.self) }
  }

  mutating func id() throws(Mismatch) -> Identifier {
    let range = try nextText()
    return bytes.withUnsafeBytes { Identifier(utf8: UnsafeRawBufferPointer(rebasing: $0[range])) }
  }

  /// Where the next text lies.
  private mutating func nextText() throws(Mismatch) -> Range<Int> {
    let count = Int(try number() as UInt32)
    guard bytes.count - position >= count else { throw Mismatch() }
    defer { position += count }
    return position..<position + count
  }

  mutating func optionalText() throws(Mismatch) -> String? { try isPresent() ? text() : nil }
  mutating func optionalId() throws(Mismatch) -> Identifier? { try isPresent() ? id() : nil }
  mutating func optionalInstant() throws(Mismatch) -> Instant? { try optionalInt().map { Instant(microseconds: $0) } }

  mutating func optionalMoney() throws(Mismatch) -> Money? {
    guard let minorUnits = try optionalInt() else { return nil }
    guard let currency = Currency(try id()) else { throw Mismatch() }
    return Money(minorUnits: minorUnits, currency: currency)
  }

  private mutating func isPresent() throws(Mismatch) -> Bool {
    try byte() == 1
  }
}

extension Instant {
  /// Eight bytes that sort as the instants do.
  var sortingBytes: [UInt8] {
    // Flipping the sign bit makes the bytes of a signed number sort like the number.
    withUnsafeBytes(of: (UInt64(bitPattern: microseconds) ^ (1 << 63)).bigEndian) { [UInt8]($0) }
  }
}

extension Finding {
  func write(to record: inout RecordBytes) {
    record.put(UInt8(clamping: kind.index))
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
    let index = Int(try record.byte())
    guard FindingKind.allCases.indices.contains(index) else { throw RecordReader.Mismatch() }
    self.init(kind: FindingKind.allCases[index], subject: try record.id(), reason: "")
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
