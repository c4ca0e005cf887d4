/// The text of a cell with the escapes of `ST_Xstring` (ECMA-376 part 1, 22.9.2.19): `_x0001_`, and for that literal
/// itself `_x005F_x0001_`. The library escapes neither that literal nor U+FFFE and U+FFFF.
package enum CellText {
  /// Excel's limit for a cell, in UTF-16 units; the library counts Unicode scalars.
  package static let maximumLength = 32_767

  /// Truncates text to the limit, with a marker at its end, and replaces NUL by U+FFFD.
  package static func fitting(_ text: String, marker: String = " [cut]") -> String {
    if isPlain(text) { return text }
    let visible = text.utf8.contains(0) ? text.replacing("\0", with: "\u{FFFD}") : text
    if (try? encoded(visible, "cut text")) != nil { return visible }
    var kept = ""
    var room = maximumLength - cost(of: marker.unicodeScalars)
    for character in visible {
      room -= cost(of: character.unicodeScalars)
      guard room >= 0 else { break }
      kept.append(character)
    }
    return kept + marker
  }

  private static func isPlain(_ text: String) -> Bool {
    let count = text.utf8.count
    guard count <= maximumLength else { return false }
    return unsafe text.withCString { bytes in
      let scanned = unsafe scan(bytes)
      return scanned.isPlain && scanned.length == count
    }
  }

  /// Scans up to the first NUL. `isPlain` is true if the library accepts the bytes unchanged.
  static func scan(_ bytes: UnsafePointer<CChar>) -> (length: Int, isPlain: Bool) {
    var index = 0
    var isPlain = true
    while true {
      let byte = unsafe UInt8(bitPattern: bytes[index])
      if byte > 0x5F {
        // U+FFFE and U+FFFF are EF BF BE and EF BF BF; the NUL at the end keeps the look-ahead in bounds.
        if byte == 0xEF, unsafe UInt8(bitPattern: bytes[index + 1]) == 0xBF,
          unsafe UInt8(bitPattern: bytes[index + 2]) >= 0xBE
        {
          isPlain = false
        }
      } else if byte == UInt8(ascii: "_") {
        if unsafe UInt8(bitPattern: bytes[index + 1]) == UInt8(ascii: "x") { isPlain = false }
      } else if byte < 0x20 {
        if byte == 0 { return (index, isPlain) }
        if byte != 0x09, byte != 0x0A { isPlain = false }
      }
      index += 1
    }
  }

  static func encoded(_ text: String, _ operation: StaticString) throws(SpreadsheetError) -> String {
    guard text.utf16.count <= maximumLength else { throw SpreadsheetError(.textTooLong, operation) }
    let scalars = Array(text.unicodeScalars)
    var result = String.UnicodeScalarView()
    for (index, scalar) in scalars.enumerated() {
      guard scalar.value != 0 else { throw SpreadsheetError(.textNotRepresentable, operation) }
      if needsEscape(scalar) || looksLikeEscape(scalars[index...]) {
        let digits = String(scalar.value, radix: 16, uppercase: true)
        result.append(contentsOf: "_x\(String(repeating: "0", count: 4 - digits.count))\(digits)_".unicodeScalars)
      } else {
        result.append(scalar)
      }
    }
    // The library's limit includes the escapes.
    guard result.count <= maximumLength else { throw SpreadsheetError(.textTooLong, operation) }
    return String(result)
  }

  // Control characters and non-characters that XML 1.0 excludes, and CR, which XML readers convert to LF.
  private static func needsEscape(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0A: false
    case 0..<0x20, 0xFFFE, 0xFFFF: true
    default: false
    }
  }

  // `_x`, four hexadecimal digits, and an underscore, which may be the first of the next escape.
  private static func looksLikeEscape(_ rest: ArraySlice<Unicode.Scalar>) -> Bool {
    guard rest.first == "_", rest.count > 6, rest.dropFirst().first == "x" else { return false }
    let end = rest[rest.startIndex + 6]
    return (end == "_" || needsEscape(end))
      && rest[(rest.startIndex + 2)..<(rest.startIndex + 6)].allSatisfy { $0.isASCII && $0.properties.isASCIIHexDigit }
  }

  private static func cost(of scalars: some Sequence<Unicode.Scalar>) -> Int {
    scalars.reduce(0) { sum, scalar in sum + (needsEscape(scalar) || scalar == "_" ? 7 : UTF16.width(scalar)) }
  }
}

/// Checks the program's own text where the format has no escapes, such as titles and names.
enum OwnText {
  /// Checks the length in UTF-16 units, and in bytes where the library has a buffer of fixed size.
  static func check(
    _ text: String, limit: Int, bytes: Int = .max, _ operation: StaticString
  ) throws(SpreadsheetError) {
    guard text.utf16.count <= limit, text.utf8.count <= bytes else {
      throw SpreadsheetError(.textTooLong, operation)
    }
    guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0xFFFE && $0.value != 0xFFFF }) else {
      throw SpreadsheetError(.textNotRepresentable, operation)
    }
  }
}
