/// The binary forms that the types' send functions write. Decoding returns nil for malformed bytes.
extension BinaryFormat {
  @inline(__always)
  static func load<Value: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, at offset: Int = 0) -> Value {
    unsafe Value(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Value.self))
  }

  static func text(_ bytes: UnsafeRawBufferPointer) -> String? {
    let characters = unsafe bytes.assumingMemoryBound(to: UInt8.self).span
    guard let text = try? UTF8Span(validating: characters) else { return nil }
    return String(copying: text)
  }

  /// Text for display, valid UTF-8 or not.
  static func shownText(_ bytes: UnsafeRawBufferPointer) -> String {
    if let text = unsafe text(bytes) { return text }
    return unsafe escapedText(bytes)
  }

  /// Bytes other than ASCII are shown as `\xE9`.
  static func escapedText(_ bytes: UnsafeRawBufferPointer) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var characters: [UInt8] = []
    for byte in unsafe [UInt8](bytes) {
      if (1..<0x80).contains(byte) {
        characters.append(byte)
      } else {
        characters += [UInt8(ascii: "\\"), UInt8(ascii: "x"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// True for valid UTF-8 without a zero byte. Postgres text has no zero byte, but records from other sources may.
  static func isText(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if unsafe isASCII(bytes) { return true }
    guard unsafe (try? UTF8Span(validating: bytes.assumingMemoryBound(to: UInt8.self).span)) != nil else {
      return false
    }
    return unsafe !bytes.contains(0)
  }

  private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var seen: UInt64 = 0
    var position = 0
    while bytes.count - position >= 8 {
      let word = unsafe bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
      // Sets the highest bit of a zero byte. It may also set one after a zero byte, which does not matter.
      seen |= word | (word &- 0x0101_0101_0101_0101)
      position += 8
    }
    if position > 0, position < bytes.count {
      // The last word overlaps the one before.
      let word = unsafe bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self)
      seen |= word | (word &- 0x0101_0101_0101_0101)
      position = bytes.count
    }
    while position < bytes.count {
      let byte = unsafe bytes[position]
      seen |= UInt64(byte == 0 ? 0x80 : byte)
      position += 1
    }
    return seen & 0x8080_8080_8080_8080 == 0
  }

  static func integer(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    switch bytes.count {
    case 8: unsafe load(bytes) as Int64
    case 4: unsafe Int64(load(bytes) as Int32)
    case 2: unsafe Int64(load(bytes) as Int16)
    default: nil
    }
  }

  static func bool(_ bytes: UnsafeRawBufferPointer) -> Bool? { unsafe bytes.count == 1 ? bytes[0] != 0 : nil }

  /// Microseconds since 1970. Nil for infinity and for the last years before 294277, which do not fit.
  static func timestamp(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    guard bytes.count == 8 else { return nil }
    let value: Int64 = unsafe load(bytes)
    if value == .min || value == .max { return nil }
    let (microseconds, overflow) = value.addingReportingOverflow(epoch)
    return overflow ? nil : microseconds
  }

  static func isInfiniteTimestamp(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count == 8 else { return false }
    let value: Int64 = unsafe load(bytes)
    return value == .min || value == .max
  }

  static func numeric(_ bytes: UnsafeRawBufferPointer) -> PostgresNumeric? {
    guard bytes.count >= 8 else { return nil }
    let count = unsafe Int(load(bytes) as Int16)
    let weight = unsafe Int(load(bytes, at: 2) as Int16)
    let scale = unsafe Int(load(bytes, at: 6) as Int16)
    guard count >= 0, bytes.count == 8 + 2 * count else { return nil }
    switch unsafe load(bytes, at: 4) as UInt16 {
    case NumericSign.positive:
      return unsafe numeric(bytes, isNegative: false, count: count, weight: weight, scale: scale)
    case NumericSign.negative:
      return unsafe numeric(bytes, isNegative: true, count: count, weight: weight, scale: scale)
    case NumericSign.nan: return PostgresNumeric(.nan)
    case NumericSign.infinity: return PostgresNumeric(.infinity)
    case NumericSign.minusInfinity: return PostgresNumeric(.minusInfinity)
    default: return nil
    }
  }

  private static func numeric(
    _ bytes: UnsafeRawBufferPointer, isNegative: Bool, count: Int, weight: Int, scale: Int
  ) -> PostgresNumeric? {
    guard count <= 9 else {
      let groups = (0..<count).map { unsafe load(bytes, at: 8 + 2 * $0) as UInt16 }
      return PostgresNumeric(.long(isNegative: isNegative, weight: weight, groups: groups, scale: scale))
    }
    // Four groups are below 10^16, so 64 bits suffice for nearly all values.
    var low: UInt64 = 0
    for index in 0..<min(count, 4) { low = unsafe low * 10_000 + UInt64(load(bytes, at: 8 + 2 * index) as UInt16) }
    var magnitude = UInt128(low)
    if count > 4 {
      for index in 4..<count {
        magnitude = unsafe magnitude * 10_000 + UInt128(load(bytes, at: 8 + 2 * index) as UInt16)
      }
    }
    return PostgresNumeric(
      .short(isNegative: isNegative, magnitude: magnitude, exponent: weight - count + 1, scale: scale))
  }

  // An array of one dimension, or the empty array.
  static func textArray(_ bytes: UnsafeRawBufferPointer) -> [String?]? {
    guard bytes.count >= 12 else { return nil }
    let dimensions: Int32 = unsafe load(bytes)
    if dimensions == 0 { return [] }
    guard dimensions == 1, bytes.count >= 20 else { return nil }
    let count: Int32 = unsafe load(bytes, at: 12)
    var values: [String?] = []
    var position = 20
    for _ in 0..<max(0, count) {
      guard bytes.count >= position + 4 else { return nil }
      let length = unsafe Int(load(bytes, at: position) as Int32)
      position += 4
      if length < 0 {
        values.append(nil)
        continue
      }
      guard bytes.count >= position + length,
        let value = unsafe text(UnsafeRawBufferPointer(rebasing: bytes[position..<position + length]))
      else { return nil }
      values.append(value)
      position += length
    }
    return values
  }
}
