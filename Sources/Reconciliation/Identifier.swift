/// An id or name as a record carries it, compared byte by byte.
///
/// `String` treats canonically equivalent spellings as equal and sorts by Unicode rules; ids that differ in their bytes
/// are different ids, and reports are sorted in byte order.
package struct Identifier: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The id as it was read.
  package let text: String

  package init(_ text: String) { self.text = text }
  package init(stringLiteral value: String) { text = value }

  package var description: String { text }

  package static func == (left: Identifier, right: Identifier) -> Bool {
    left.compareBytes(right) == 0
  }

  package static func < (left: Identifier, right: Identifier) -> Bool {
    left.compareBytes(right) < 0
  }

  package func hash(into hasher: inout Hasher) {
    let isHashed: Void? = text.utf8.withContiguousStorageIfAvailable {
      hasher.combine(bytes: UnsafeRawBufferPointer($0))
    }
    // Strings that were read from bytes are stored as bytes; any other one hashes the same, only slower.
    if isHashed == nil { Array(text.utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
  }

  /// Negative, zero or positive as this id sorts before, equal to or after the other in byte order.
  package func compareBytes(_ other: Identifier) -> Int {
    // No copies of the strings: a comparison that counts references costs twice as much.
    let order = text.utf8.withContiguousStorageIfAvailable { left in
      other.text.utf8.withContiguousStorageIfAvailable { right in Identifier.order(left, right) }
    }
    if let order, let order { return order }
    return Identifier.order(Array(text.utf8), Array(other.text.utf8))
  }

  private static func order<Bytes: RandomAccessCollection<UInt8>>(_ left: Bytes, _ right: Bytes) -> Int
  where Bytes.Index == Int {
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      return Int(left[index]) - Int(right[index])
    }
    return left.count - right.count
  }
}
