/// The name of a sheet. It comes from the program's own text alone: libxlsxwriter 1.1.4 copies sheet names into
/// buffers of fixed size, so nothing from a database may get there.
package struct SheetName: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// As on the tab.
  package let description: String

  /// A name from a literal; `addSheet` checks it.
  package init(stringLiteral value: StaticString) {
    description = value.description
  }

  /// One of several sheets that carry on where the one before is full: `Orders`, `Orders 2`, `Orders 3`.
  package init(_ title: StaticString, part: Int) {
    description = part == 1 ? title.description : "\(title) \(part)"
  }

  /// The name as formulas and links need it.
  package var quoted: String { "'\(description)'" }

  /// Excel's rules, and ASCII besides: 31 characters are then 31 bytes, whoever counts.
  /// "History" is reserved by Excel. An apostrophe is refused anywhere, not only at the ends: see ``quoted``.
  var isAllowed: Bool {
    let bytes = description.utf8
    return (1...31).contains(bytes.count)
      && bytes.allSatisfy { (0x20...0x7E).contains($0) && !Self.forbidden.contains($0) }
      && description.lowercased() != "history"
  }

  private static let forbidden = Set("[]:*?/\\'".utf8)
}
