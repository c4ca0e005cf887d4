import Foundation
import Glibc
import Reconciliation

/// A JSON writer (RFC 8259) for objects of text and integers, as UTF-8. Foundation's encoder takes 30 microseconds for
/// each finding, twice the time of auditing and writing an order. A test compares every character with Foundation's
/// encoder.
struct JSONText {
  private(set) var bytes: [UInt8] = []
  private var isFirst = true

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  mutating func append(_ text: String) { bytes += text.utf8 }

  mutating func open(_ key: String? = nil) {
    if let key { begin(key) }
    bytes.append(UInt8(ascii: "{"))
    isFirst = true
  }

  mutating func close() {
    bytes.append(UInt8(ascii: "}"))
    isFirst = false
  }

  mutating func put(_ key: String, _ text: String?) {
    guard let text else { return }
    begin(key)
    quote(text)
  }

  mutating func put(_ key: String, _ id: Identifier?) {
    guard let id else { return }
    begin(key)
    id.withUTF8 { quote($0) }
  }

  mutating func put(_ key: String, _ number: Int64?) {
    guard let number else { return }
    begin(key)
    append("\(number)")
  }

  mutating func put(orNull key: String, _ text: String?) {
    begin(key)
    if let text { quote(text) } else { append("null") }
  }

  private mutating func begin(_ key: String) {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
    quote(key)
    bytes.append(UInt8(ascii: ":"))
  }

  private mutating func quote(_ text: String) {
    var text = text
    text.withUTF8 { quote(UnsafeRawBufferPointer($0)) }
  }

  private mutating func quote(_ text: UnsafeRawBufferPointer) {
    bytes.append(UInt8(ascii: "\""))
    defer { bytes.append(UInt8(ascii: "\"")) }
    if !text.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
      bytes.append(contentsOf: text)
      return
    }
    for byte in text {
      switch byte {
      case UInt8(ascii: "\""): bytes += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "\\"): bytes += [byte, byte]
      case 0x08: append("\\b")
      case 0x09: append("\\t")
      case 0x0A: append("\\n")
      case 0x0C: append("\\f")
      case 0x0D: append("\\r")
      case ..<0x20: append("\\u00\(hexadecimal([byte]))")
      default: bytes.append(byte)
      }
    }
  }
}

extension JSONText {
  static func document(
    _ content: some Encodable, named name: String, keys: JSONEncoder.KeyEncodingStrategy = .useDefaultKeys
  ) throws(ReportError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = keys
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    // Never fails, because text and numbers can always be encoded.
    guard let json = try? encoder.encode(content) else {
      throw ReportError.cannotWrite(file: name, systemError: EINVAL)
    }
    return Array(json) + [UInt8(ascii: "\n")]
  }
}
