/// An ID or a name in borrowed bytes, valid as long as they are, without copy or reference count.
public struct BorrowedText: Comparable {
  public let bytes: UnsafeRawBufferPointer

  public static var empty: BorrowedText { BorrowedText(UnsafeRawBufferPointer(start: nil, count: 0)) }

  public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  public var id: Identifier { Identifier(utf8: bytes) }

  public var text: String { String(decoding: bytes, as: UTF8.self) }

  public static func == (left: BorrowedText, right: BorrowedText) -> Bool {
    left.bytes.count == right.bytes.count && left.begins(with: right.bytes)
  }

  public static func < (left: BorrowedText, right: BorrowedText) -> Bool {
    let count = min(left.bytes.count, right.bytes.count)
    var place = 0
    while count - place >= 8 {
      let (one, other) = (left.word(left.bytes, place), right.word(right.bytes, place))
      if one != other { return one.bigEndian < other.bigEndian }
      place += 8
    }
    while place < count {
      if left.bytes[place] != right.bytes[place] { return left.bytes[place] < right.bytes[place] }
      place += 1
    }
    return left.bytes.count < right.bytes.count
  }

  public func isSame(as text: String) -> Bool {
    text.utf8.withContiguousStorageIfAvailable { self == BorrowedText(UnsafeRawBufferPointer($0)) }
      ?? (self.text == text)
  }

  /// The text without ASCII white space at its ends.
  public var trimmed: BorrowedText {
    var (start, end) = (0, bytes.count)
    while start < end, isBlank(bytes[start]) { start += 1 }
    while start < end, isBlank(bytes[end - 1]) { end -= 1 }
    return BorrowedText(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
  }

  /// A hash of the bytes (FNV-1a), the same in every process.
  public var fingerprint: UInt64 { bytes.reduce(Self.fingerprintOfNothing, Self.fingerprint) }

  static let fingerprintOfNothing: UInt64 = 0xCBF2_9CE4_8422_2325

  static func fingerprint(_ before: UInt64, _ byte: UInt8) -> UInt64 { (before ^ UInt64(byte)) &* 0x100_0000_01B3 }

  public func isSame(as id: Identifier) -> Bool { id.withUTF8 { self == BorrowedText($0) } }

  /// Assumes that `other` is not longer.
  private func begins(with other: UnsafeRawBufferPointer) -> Bool {
    let count = other.count
    guard count >= 8 else {
      for place in 0..<count where bytes[place] != other[place] { return false }
      return true
    }
    // Eight bytes at a time; the last ones may be compared twice.
    for place in stride(from: 0, to: count - 8, by: 8) where word(bytes, place) != word(other, place) { return false }
    return word(bytes, count - 8) == word(other, count - 8)
  }

  private func word(_ bytes: UnsafeRawBufferPointer, _ place: Int) -> UInt64 {
    bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self)
  }
}

public func isBlank(_ character: UInt8) -> Bool { character == 0x20 || (0x09...0x0D).contains(character) }

extension BorrowedText? {
  public var id: Identifier? { self?.id }
}
