/// The binary forms that the types' receive functions read. Integers are big-endian.
enum BinaryFormat {
  /// Postgres' epoch 2000-01-01T00:00:00Z in microseconds since 1970.
  static let epoch: Int64 = 946_684_800_000_000

  enum NumericSign {
    static let positive: UInt16 = 0x0000
    static let negative: UInt16 = 0x4000
    static let nan: UInt16 = 0xC000
    static let infinity: UInt16 = 0xD000
    static let minusInfinity: UInt16 = 0xF000
  }

  static func append(integer value: some FixedWidthInteger, to bytes: inout [UInt8]) {
    unsafe withUnsafeBytes(of: value.bigEndian) { unsafe bytes.append(contentsOf: $0) }
  }

  static func append(text: String, to bytes: inout [UInt8]) throws(PostgresError) {
    let utf8 = text.utf8
    if utf8.contains(0) { throw .nul(in: "a text value") }
    bytes.append(contentsOf: utf8)
  }

  static func append(bool: Bool, to bytes: inout [UInt8]) { bytes.append(bool ? 1 : 0) }
  static func append(bytes value: [UInt8], to bytes: inout [UInt8]) { bytes.append(contentsOf: value) }

  /// Throws outside Postgres' range; its ends would mean infinity.
  static func append(timestamp microseconds: Int64, to bytes: inout [UInt8]) throws(PostgresError) {
    let (value, overflow) = microseconds.subtractingReportingOverflow(epoch)
    if overflow || value == .min || value == .max { throw PostgresError(.usage, "a timestamp is out of range") }
    append(integer: value, to: &bytes)
  }

  static func append(numeric: PostgresNumeric, to bytes: inout [UInt8]) {
    let number = numeric.wireForm
    let sign =
      switch numeric.storage {
      case .short, .long: number.isNegative ? NumericSign.negative : NumericSign.positive
      case .nan: NumericSign.nan
      case .infinity: NumericSign.infinity
      case .minusInfinity: NumericSign.minusInfinity
      }
    append(integer: Int16(number.groups.count), to: &bytes)
    append(integer: Int16(number.weight), to: &bytes)
    append(integer: sign, to: &bytes)
    append(integer: Int16(number.scale), to: &bytes)
    for group in number.groups { append(integer: group, to: &bytes) }
  }

  // One dimension that starts at 1; the empty array has no dimension.
  static func append<Value>(
    array values: [Value?], of type: PostgresType, to bytes: inout [UInt8],
    _ encode: (Value, inout [UInt8]) throws(PostgresError) -> Void
  ) throws(PostgresError) {
    append(integer: Int32(values.isEmpty ? 0 : 1), to: &bytes)
    append(integer: Int32(values.contains { $0 == nil } ? 1 : 0), to: &bytes)
    append(integer: type.rawValue, to: &bytes)
    if values.isEmpty { return }
    append(integer: Int32(clamping: values.count), to: &bytes)
    append(integer: Int32(1), to: &bytes)
    for value in values { try appendField(value, to: &bytes, encode) }
  }

  /// A value after its length in bytes, with -1 for NULL, as in arrays and COPY.
  static func appendField<Value>(
    _ value: Value?, to bytes: inout [UInt8], _ encode: (Value, inout [UInt8]) throws(PostgresError) -> Void
  ) throws(PostgresError) {
    let start = bytes.count
    append(integer: Int32(-1), to: &bytes)
    guard let value else { return }
    try encode(value, &bytes)
    let length = bytes.count - start - 4
    guard let length = Int32(exactly: length) else { throw PostgresError(.usage, "a value is larger than 2 GB") }
    for index in 0..<4 { bytes[start + index] = UInt8(truncatingIfNeeded: length >> Int32(24 - 8 * index)) }
  }

  static func append<Value>(
    _ value: Value?, to bytes: inout [UInt8], _ encode: (Value, inout [UInt8]) throws(PostgresError) -> Void
  ) throws(PostgresError) -> Bool {
    guard let value else { return false }
    try encode(value, &bytes)
    return true
  }
}
