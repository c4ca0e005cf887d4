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
    var copy = text
    copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  /// Negative, zero or positive as this id sorts before, equal to or after the other in byte order.
  package func compareBytes(_ other: Identifier) -> Int {
    var (left, right) = (text, other.text)
    return left.withUTF8 { leftBytes in
      right.withUTF8 { rightBytes in
        for index in 0..<min(leftBytes.count, rightBytes.count) where leftBytes[index] != rightBytes[index] {
          return Int(leftBytes[index]) - Int(rightBytes[index])
        }
        return leftBytes.count - rightBytes.count
      }
    }
  }
}
