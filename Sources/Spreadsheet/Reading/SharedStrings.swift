final class SharedStrings: XMLHandler {
  private var bytes: [UInt8] = []
  private var ends: [Int] = []
  private var collector = TextCollector()
  private let part: String

  // More text than any workbook of findings has.
  private static let maximumBytes = 256 << 20

  init(part: String) { self.part = part }

  subscript(index: Int) -> String? {
    guard ends.indices.contains(index) else { return nil }
    return String(decoding: bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]], as: UTF8.self)
  }

  func start(_ name: String, _ attributes: borrowing XMLAttributes) {
    if name == "si" { collector.begin() }
    collector.start(name)
  }

  func text(_ bytes: UnsafeBufferPointer<UInt8>) throws(WorkbookReadError) {
    guard unsafe collector.take(bytes) else { throw .tooLarge(part: part, TextCollector.limitText) }
  }

  func end(_ name: String) throws(WorkbookReadError) {
    collector.end(name)
    guard name == "si" else { return }
    // Decoded once for all cells that refer to it, which may be four million.
    let text = String(decoding: collector.bytes, as: UTF8.self)
    bytes += text.withoutCharacterMarks.utf8
    ends.append(bytes.count)
    if bytes.count + 8 * ends.count > SharedStrings.maximumBytes {
      throw .tooLarge(part: part, "its texts are more than \(SharedStrings.maximumBytes >> 20) MB")
    }
  }
}

/// Collects the text of one string item, without phonetic hints (ECMA-376 part 1, 18.4.8).
struct TextCollector {
  private(set) var bytes: [UInt8] = []
  private var isText = false
  private var isPhonetic = false

  // Excel's limit is 32,767 UTF-16 units of at most three bytes each, some written as `_xHHHH_`.
  private static let maximumBytes = 7 * 32_767
  static let limitText = "a text is longer than Excel allows"

  mutating func begin() {
    bytes.removeAll(keepingCapacity: true)
    (isText, isPhonetic) = (false, false)
  }

  mutating func start(_ name: String) {
    if name == "rPh" { isPhonetic = true }
    if name == "t" { isText = !isPhonetic }
  }

  mutating func end(_ name: String) {
    if name == "rPh" { isPhonetic = false }
    if name == "t" { isText = false }
  }

  mutating func take(_ piece: UnsafeBufferPointer<UInt8>) -> Bool {
    guard isText else { return true }
    guard bytes.count + piece.count <= TextCollector.maximumBytes else { return false }
    unsafe bytes.append(contentsOf: piece)
    return true
  }
}

extension String {
  /// Decodes `_xHHHH_` escapes (ECMA-376 part 1, 22.9.2.19), the reverse of `CellText.encoded`.
  var withoutCharacterMarks: String {
    guard contains("_x") else { return self }
    var units: [UInt16] = []
    var rest = Array(utf16)[...]
    while let unit = rest.first {
      if let marked = rest.characterMark {
        units.append(marked)
        rest = rest.dropFirst(7)
      } else {
        units.append(unit)
        rest = rest.dropFirst()
      }
    }
    return String(decoding: units, as: UTF16.self)
  }
}

extension ArraySlice<UInt16> {
  fileprivate var characterMark: UInt16? {
    guard count >= 7, self[startIndex] == 0x5F, self[startIndex + 1] == 0x78, self[startIndex + 6] == 0x5F else {
      return nil
    }
    var value: UInt16 = 0
    for unit in self[startIndex + 2..<startIndex + 6] {
      guard let digit = UInt8(exactly: unit).flatMap({ Character(UnicodeScalar($0)).hexDigitValue }) else { return nil }
      value = value << 4 | UInt16(digit)
    }
    return value
  }
}
