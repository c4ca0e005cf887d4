/// The name of a sheet, always from the program's own text: libxlsxwriter 1.1.4 copies sheet names into buffers of
/// fixed size, so no data may become a name. `addSheet` checks it.
package struct SheetName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  package let description: String

  package init(stringLiteral value: StaticString) {
    description = value.description
  }

  /// Creates the name of a continuation sheet: `Orders`, `Orders 2`, `Orders 3`.
  package init(_ title: StaticString, part: Int) {
    description = part == 1 ? title.description : "\(title) \(part)"
  }

  /// The name as formulas and links need it.
  package var quoted: String { "'\(description)'" }

  /// Excel's rules, restricted to ASCII, so that 31 characters are 31 bytes. Excel reserves "History". An apostrophe is
  /// refused anywhere because of ``quoted``.
  var isAllowed: Bool {
    let bytes = description.utf8
    return (1...31).contains(bytes.count)
      && bytes.allSatisfy { (0x20...0x7E).contains($0) && !Self.forbidden.contains($0) }
      && description.lowercased() != "history"
  }

  private static let forbidden = Set("[]:*?/\\'".utf8)
}
