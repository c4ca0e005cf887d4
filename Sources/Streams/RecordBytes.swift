import Reconciliation

/// Writes values into bytes that `RecordReader` reads back, for records that wait on disk.
public struct RecordBytes {
  public private(set) var bytes: [UInt8] = []

  public init() {}

  public mutating func clear() { bytes.removeAll(keepingCapacity: true) }

  public mutating func put(_ value: Int64) {
    withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
  }

  public mutating func put(_ value: Int64?) {
    bytes.append(value == nil ? 0 : 1)
    if let value { put(value) }
  }

  public mutating func put(_ byte: UInt8) { bytes.append(byte) }

  public mutating func put(_ text: String) {
    var text = text
    text.withUTF8 { put(UnsafeRawBufferPointer($0)) }
  }

  private mutating func put(_ text: UnsafeRawBufferPointer) {
    withUnsafeBytes(of: UInt32(clamping: text.count).littleEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: text)
  }

  public mutating func put(_ text: String?) {
    bytes.append(text == nil ? 0 : 1)
    if let text { put(text) }
  }

  public mutating func put(_ id: Identifier) { id.withUTF8 { put($0) } }

  public mutating func put(_ id: Identifier?) {
    bytes.append(id == nil ? 0 : 1)
    if let id { put(id) }
  }

  public mutating func put(_ instant: Instant?) { put(instant?.microseconds) }

  public mutating func put(_ number: Int32?) { put(number.map(Int64.init)) }

  public mutating func put(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  /// 2 for nil.
  public mutating func put(_ flag: Bool?) { bytes.append(flag.map { $0 ? 1 : 0 } ?? 2) }

  /// How many there are, then each of them.
  @inlinable public mutating func put<Value>(_ values: [Value], each: (Value, inout RecordBytes) -> Void) {
    put(Int64(values.count))
    for value in values { each(value, &self) }
  }

  public mutating func put(_ money: Money?) {
    put(money?.minorUnits)
    if let money { put(money.currency.code) }
  }
}

/// Reads what `RecordBytes` wrote, in the same order. A record that ends too early is a defect of this program.
public struct RecordReader {
  /// The record was written by another order of calls.
  public struct Mismatch: Error {
    public init() {}
  }

  private let bytes: [UInt8]
  private var position = 0

  public init(_ bytes: [UInt8]) { self.bytes = bytes }

  public mutating func byte() throws(Mismatch) -> UInt8 { try number() }

  public mutating func int() throws(Mismatch) -> Int64 { try number() }

  private mutating func number<Number: FixedWidthInteger>() throws(Mismatch) -> Number {
    let size = MemoryLayout<Number>.size
    guard bytes.count - position >= size else { throw Mismatch() }
    defer { position += size }
    return bytes.withUnsafeBytes {
      Number(littleEndian: $0.loadUnaligned(fromByteOffset: position, as: Number.self))
    }
  }

  public mutating func optionalInt() throws(Mismatch) -> Int64? { try isPresent() ? int() : nil }

  public mutating func text() throws(Mismatch) -> String {
    let range = try nextText()
    return bytes.withUnsafeBytes { String(decoding: $0[range], as: UTF8.self) }
  }

  public mutating func id() throws(Mismatch) -> Identifier {
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

  public mutating func optionalInt32() throws(Mismatch) -> Int32? { try optionalInt().map { Int32(clamping: $0) } }

  public mutating func flag() throws(Mismatch) -> Bool { try isPresent() }

  public mutating func optionalFlag() throws(Mismatch) -> Bool? {
    let byte = try byte()
    return byte == 2 ? nil : byte == 1
  }

  @inlinable public mutating func list<Value>(
    each: (inout RecordReader) throws(Mismatch) -> Value
  ) throws(Mismatch) -> [Value] {
    var values: [Value] = []
    for _ in 0..<(try int()) { values.append(try each(&self)) }
    return values
  }

  public mutating func optionalText() throws(Mismatch) -> String? { try isPresent() ? text() : nil }
  public mutating func optionalId() throws(Mismatch) -> Identifier? { try isPresent() ? id() : nil }
  public mutating func optionalInstant() throws(Mismatch) -> Instant? {
    try optionalInt().map { Instant(microseconds: $0) }
  }

  public mutating func optionalMoney() throws(Mismatch) -> Money? {
    guard let minorUnits = try optionalInt() else { return nil }
    guard let currency = Currency(try id()) else { throw Mismatch() }
    return Money(minorUnits: minorUnits, currency: currency)
  }

  private mutating func isPresent() throws(Mismatch) -> Bool {
    try byte() == 1
  }
}
