import Reconciliation

struct ReportColumn {
  /// In messages about its fields.
  let name: String
  let position: Int
}

/// Columns by name, because Apple has reordered and added columns before.
struct ReportHeader {
  private let positions: [String: Int]
  private let line: Int

  init(_ fields: ReportFields, line: Int) {
    var positions: [String: Int] = [:]
    for column in 0..<fields.count {
      let name = Self.canonical(String(decoding: fields[column], as: UTF8.self))
      // Of two equal names the first counts.
      if !name.isEmpty, positions[name] == nil { positions[name] = column }
    }
    (self.positions, self.line) = (positions, line)
  }

  func unknown(besides known: Set<String>) -> [String] { positions.keys.filter { !known.contains($0) }.sorted() }

  func has(_ name: String) -> Bool { positions[Self.canonical(name)] != nil }

  /// - Parameter names: names of the same column in different years.
  func column(_ names: String...) throws(ReportProblem) -> ReportColumn {
    for name in names {
      if let position = positions[Self.canonical(name)] { return ReportColumn(name: names[0], position: position) }
    }
    throw ReportProblem(line: line, "the column “\(names[0])” is missing")
  }

  func optional(_ name: String) -> Int? { positions[Self.canonical(name)] }

  static func canonical(_ name: String) -> String { name.lowercased() }

  /// The names in a first line.
  static func names(in line: String) -> [String] { line.split(separator: "\t").map { canonical($0.trimmed) } }
}

extension ReportFields {
  /// Limits in bytes. A key of ours has one SKU and three IDs within Postgres' 2,704 bytes of an index entry. Apple's
  /// IDs have 100 characters; a SKU may list all items of an Advanced Commerce purchase.
  private static let (longestIdentifier, longestSKU) = (200, 2_000)

  /// The items of an Advanced Commerce purchase are in single quotes: `'a','b'` is the product `a,b` of transactions.
  func sku(_ column: ReportColumn) throws(ReportProblem) -> Identifier {
    let column = ReportColumn(name: "SKU", position: column.position)
    let sku = try identifier(column, longest: Self.longestSKU)
    guard sku.withUTF8({ $0.first == UInt8(ascii: "'") }) else { return sku }
    let items = sku.text.split(separator: ",").map { $0.drop { $0 == " " }.filter { $0 != "'" } }
    return Identifier(items.sorted().joined(separator: ","))
  }

  func identifier(_ column: ReportColumn) throws(ReportProblem) -> Identifier {
    try identifier(column, longest: Self.longestIdentifier)
  }

  /// Rejects control characters, which Postgres cannot store.
  private func identifier(_ column: ReportColumn, longest: Int) throws(ReportProblem) -> Identifier {
    let bytes = self[column.position]
    if bytes.count > longest { throw problem(column, "at most \(longest) bytes") }
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return Identifier(utf8: bytes) }
    guard let text = String(validating: bytes, as: UTF8.self),
      text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
    else { throw problem(column, "text in UTF-8 without control characters") }
    return Identifier(text)
  }
}
