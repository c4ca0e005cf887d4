/// The name of a sheet, from the program's own text only. libxlsxwriter 1.1.4 copies it into buffers of fixed size.
package struct SheetName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  package let description: String

  package init(stringLiteral value: StaticString) { description = value.description }

  /// Creates the name of a continuation sheet: `Orders`, `Orders 2`, `Orders 3`.
  package init(_ title: StaticString, part: Int) { description = part == 1 ? title.description : "\(title) \(part)" }

  package var quoted: String { "'\(description)'" }

  /// Excel's rules, restricted to ASCII, so that 31 characters are 31 bytes. Excel reserves "History"; `quoted` needs
  /// names without an apostrophe.
  var isAllowed: Bool {
    let bytes = description.utf8
    return (1...31).contains(bytes.count)
      && bytes.allSatisfy { (0x20...0x7E).contains($0) && !Self.forbidden.contains($0) }
      && description.lowercased() != "history"
  }

  private static let forbidden = Set("[]:*?/\\'".utf8)
}
