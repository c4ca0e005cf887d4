package enum ReadCell: Hashable, Sendable {
  case text(String)
  /// As in the file; a date is a number too.
  case number(String)
  case boolean(Bool)
  case error(String)
  /// The saved text result; nil for a number, or if the program saved none.
  case formula(result: String?)

  package var result: String? {
    switch self {
    case .text(let text): text
    case .formula(let result): result
    case .number, .boolean, .error: nil
    }
  }
}

/// A row below the header with its non-empty cells of the requested columns.
package struct ReadRow: Hashable, Sendable {
  package var number: Int
  package var cells: [String: ReadCell]

  package init(number: Int, cells: [String: ReadCell]) { (self.number, self.cells) = (number, cells) }
}

/// Parses the rows of a sheet (ECMA-376 part 1, 18.3.1). Only requested columns are kept.
final class SheetRows: XMLHandler {
  private enum Kind { case number, shared, inline, formulaText, boolean, error }

  private let part: String
  private let sheet: String
  private let wanted: [String]
  /// The required column; its heading identifies the header row.
  private let key: String
  private let shared: SharedStrings
  private let endsWithHeader: Bool
  private let body: (ReadRow) throws(WorkbookReadError) -> Void

  private(set) var columns: [Int: String] = [:]
  private var row = ReadRow(number: 0, cells: [:])
  private var headings: [Int: String] = [:]
  private var column = -1
  private var kind = Kind.number
  private var isFormula = false
  private var isValue = false
  private var content = TextCollector()
  private var value: [UInt8] = []

  // People may insert rows above the header.
  private static let headerRows = 50

  var isDone: Bool { endsWithHeader && hasHeader }
  var hasHeader: Bool { !columns.isEmpty }

  init(
    part: String, sheet: String, wanted: [String], key: String, shared: SharedStrings, columns: [Int: String] = [:],
    endsWithHeader: Bool = false, _ body: @escaping (ReadRow) throws(WorkbookReadError) -> Void
  ) {
    (self.part, self.sheet, self.wanted, self.key, self.shared) = (part, sheet, wanted, key, shared)
    (self.columns, self.endsWithHeader, self.body) = (columns, endsWithHeader, body)
  }

  func start(_ name: String, _ attributes: borrowing XMLAttributes) throws(WorkbookReadError) {
    switch name {
    case "row": try startRow(attributes["r"])
    case "c": try startCell(attributes["r"], type: attributes["t"])
    case "f": isFormula = true
    case "v": isValue = true
    default: content.start(name)
    }
  }

  func text(_ bytes: UnsafeBufferPointer<UInt8>) throws(WorkbookReadError) {
    guard isWanted else { return }
    guard unsafe content.take(bytes) else { throw .tooLarge(part: part, TextCollector.limitText) }
    if isValue {
      guard value.count + bytes.count <= 7 * 32_767 else { throw .tooLarge(part: part, TextCollector.limitText) }
      unsafe value.append(contentsOf: bytes)
    }
  }

  func end(_ name: String) throws(WorkbookReadError) {
    switch name {
    case "row": try endRow()
    case "c": try endCell()
    case "v": isValue = false
    default: content.end(name)
    }
  }

  private var isWanted: Bool { !hasHeader || columns[column] != nil }

  private func startRow(_ place: String?) throws(WorkbookReadError) {
    let number = try place.map { (text) throws(WorkbookReadError) in
      guard let number = Int(text), (1...CellRange.maximumRows).contains(number) else {
        throw .damaged(part: part, "a row has the number \(text.prefix(20))")
      }
      return number
    }
    row = ReadRow(number: number ?? row.number + 1, cells: [:])
    headings = [:]
    column = -1
  }

  private func startCell(_ place: String?, type: String?) throws(WorkbookReadError) {
    column = try place.map { (place) throws(WorkbookReadError) in try index(of: place) } ?? column + 1
    kind =
      switch type {
      case "s": .shared
      case "inlineStr": .inline
      case "str": .formulaText
      case "b": .boolean
      case "e": .error
      default: .number
      }
    isFormula = false
    isValue = false
    content.begin()
    value.removeAll(keepingCapacity: true)
  }

  private func index(of place: String) throws(WorkbookReadError) -> Int {
    var column = 0
    for letter in place.utf8 {
      guard (0x41...0x5A).contains(letter & 0xDF), letter > 0x40 else { break }
      column = column * 26 + Int(letter & 0xDF) - 0x40
      if column > CellRange.maximumColumns { break }
    }
    guard (1...CellRange.maximumColumns).contains(column) else {
      throw .damaged(part: part, "a cell of row \(row.number) has the place \(place.prefix(20))")
    }
    return column - 1
  }

  private func endCell() throws(WorkbookReadError) {
    guard isWanted, let cell = try cell() else { return }
    if let name = columns[column] {
      row.cells[name] = cell
    } else if case .text(let text) = cell {
      headings[column] = text
    }
  }

  private func cell() throws(WorkbookReadError) -> ReadCell? {
    let value = String(decoding: value, as: UTF8.self)
    if isFormula { return .formula(result: kind == .formulaText && !value.isEmpty ? value : nil) }
    switch kind {
    case .inline:
      let text = String(decoding: content.bytes, as: UTF8.self).withoutCharacterMarks
      return text.isEmpty ? nil : .text(text)
    case .formulaText: return value.isEmpty ? nil : .text(value.withoutCharacterMarks)
    case .shared:
      if value.isEmpty { return nil }
      guard let index = Int(value), let text = shared[index] else {
        throw .damaged(part: part, "a cell of row \(row.number) names a text that is not there")
      }
      return text.isEmpty ? nil : .text(text)
    case .boolean: return value.isEmpty ? nil : .boolean(value == "1" || value == "true")
    case .error: return .error(String(value.prefix(20)))
    case .number: return value.isEmpty ? nil : .number(String(value.prefix(40)))
    }
  }

  private func endRow() throws(WorkbookReadError) {
    if hasHeader {
      if !row.cells.isEmpty { try body(row) }
      return
    }
    let places = headings.mapValues { SheetRows.plain($0) }
    if places.values.contains(SheetRows.plain(key)) {
      for name in wanted {
        let found = places.filter { $0.value == SheetRows.plain(name) }.keys
        if found.count > 1 { throw .columnTwice(name, sheet: sheet) }
        if let place = found.first { columns[place] = name }
      }
    } else if row.number > SheetRows.headerRows {
      throw .noColumn(key, sheet: sheet)
    }
  }

  // Case, spaces and underscores do not matter, because people edit headings.
  private static func plain(_ heading: String) -> String {
    heading.lowercased().split(whereSeparator: { $0.isWhitespace || $0 == "_" }).joined(separator: " ")
  }
}
