import Reconciliation

/// The columns of a report by their names: Apple has changed their order and added to them before.
struct ReportHeader {
  private let positions: [String: Int]
  private let line: Int

  init(_ fields: ReportFields, line: Int) {
    var positions: [String: Int] = [:]
    for column in 0..<fields.count {
      let name = Self.canonical(String(decoding: fields[column], as: UTF8.self))
      // The first of two equal names: nothing says which one is meant, and the order is Apple's.
      if !name.isEmpty, positions[name] == nil { positions[name] = column }
    }
    self.positions = positions
    self.line = line
  }

  /// Columns beyond `known`, which are tolerated and told.
  func unknown(besides known: Set<String>) -> [String] { positions.keys.filter { !known.contains($0) }.sorted() }

  func has(_ name: String) -> Bool { positions[Self.canonical(name)] != nil }

  /// The position of a column that must be there.
  func position(_ names: String...) throws(ReportProblem) -> Int {
    for name in names {
      if let position = positions[Self.canonical(name)] { return position }
    }
    throw ReportProblem(line: line, "the column “\(names[0])” is missing")
  }

  func optional(_ name: String) -> Int? { positions[Self.canonical(name)] }

  /// Trimmed by `ReportFields`; compared without case.
  static func canonical(_ name: String) -> String { name.lowercased() }
}

extension ReportFields {
  /// The most bytes of an id, of which Apple's have 100 characters, and of a SKU, in which Apple lists all items of an
  /// Advanced Commerce purchase. A SKU and three ids are a key of ours, which takes 2,704 bytes.
  private static let (longestIdentifier, longestSKU) = (200, 2_000)

  /// The field as a product id, an app's SKU, or the items of one purchase.
  func sku(_ column: Int) throws(ReportProblem) -> Identifier {
    try identifier(column, "SKU", longest: Self.longestSKU)
  }

  /// The field as an id or a name.
  func identifier(_ column: Int, _ name: String) throws(ReportProblem) -> Identifier {
    try identifier(column, name, longest: Self.longestIdentifier)
  }

  /// No control characters, which no database column takes.
  private func identifier(_ column: Int, _ name: String, longest: Int) throws(ReportProblem) -> Identifier {
    let bytes = self[column]
    if bytes.count > longest { throw problem(column, name, "at most \(longest) bytes") }
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return Identifier(utf8: bytes) }
    guard let text = String(validating: bytes, as: UTF8.self),
      text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
    else { throw problem(column, name, "text in UTF-8 without control characters") }
    return Identifier(text)
  }
}
