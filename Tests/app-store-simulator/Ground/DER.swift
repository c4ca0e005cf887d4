/// DER encoding (X.690), as far as receipts need it.
enum DER {
  static func sequence(_ elements: [UInt8]...) -> [UInt8] { element(0x30, elements.flatMap(\.self)) }
  static func set(_ elements: [[UInt8]]) -> [UInt8] { element(0x31, elements.flatMap(\.self)) }
  static func octets(_ bytes: some Sequence<UInt8>) -> [UInt8] { element(0x04, Array(bytes)) }
  static func utf8(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }
  static func ia5(_ text: String) -> [UInt8] { element(0x16, Array(text.utf8)) }
  static let null: [UInt8] = [0x05, 0x00]

  static func context(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { element(0xA0 | number, content) }

  static func identifier(_ content: [UInt8]) -> [UInt8] { element(0x06, content) }

  static func integer(_ value: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = value
    repeat {
      bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    } while rest != 0 && rest != -1 || (bytes[0] ^ UInt8(truncatingIfNeeded: rest)) & 0x80 != 0
    return element(0x02, bytes)
  }

  /// Tag, length and content (X.690, 8.1).
  static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    guard content.count > 0x7F else { return [tag, UInt8(content.count)] + content }
    var length: [UInt8] = []
    var rest = content.count
    while rest > 0 {
      length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    }
    return [tag, 0x80 | UInt8(length.count)] + length + content
  }

  /// 1.2.840.113549.1.7.x: the content types of PKCS#7 (RFC 2315, 14).
  static func contentType(_ lastArc: UInt8) -> [UInt8] {
    identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, lastArc])
  }
}
