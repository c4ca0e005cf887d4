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
  /// The most bytes of an id. Apple's have 100 characters; four of them are a key of ours, which takes 2,704 bytes.
  private static let longestIdentifier = 500

  /// The field as an id or a name. No control characters, which no database column takes.
  func identifier(_ column: Int, _ name: String) throws(ReportProblem) -> Identifier {
    let bytes = self[column]
    if bytes.count > Self.longestIdentifier { throw problem(column, name, "at most \(Self.longestIdentifier) bytes") }
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return Identifier(utf8: bytes) }
    guard let text = String(validating: bytes, as: UTF8.self),
      text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
    else { throw problem(column, name, "text in UTF-8 without control characters") }
    return Identifier(text)
  }
}
