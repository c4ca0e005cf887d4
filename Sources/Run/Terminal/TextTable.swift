import Reconciliation

package struct TextColumns {
  package enum Column: Sendable {
    case left(String)
    case right(String)

    var title: String {
      switch self {
      case .left(let title), .right(let title): title
      }
    }
  }

  private let columns: [Column]
  private var widths: [Int]

  package init(_ columns: [Column]) {
    self.columns = columns
    widths = columns.map { $0.title.count }
  }

  /// Widens the columns for a row. Returns the cells as printed: in one line, without control characters.
  package mutating func measure(_ cells: [String]) -> [String] {
    let cells = cells.map(\.inOneLine)
    for (index, cell) in cells.enumerated() where index < widths.count {
      widths[index] = max(widths[index], cell.characterCount)
    }
    return cells
  }

  package func titles(width: Int?) -> String { line(columns.map(\.title), width: width) }

  /// Measured cells as a line, cut at `width`; nil: not cut. Must be called after all rows were measured.
  package func line(_ cells: [String], width: Int?) -> String {
    var line = ""
    for (index, cell) in cells.enumerated() where index < columns.count {
      if index > 0 { line += "  " }
      let blanks = String(repeating: " ", count: max(0, widths[index] - cell.characterCount))
      switch columns[index] {
      case .left: line += cell + blanks
      case .right: line += blanks + cell
      }
    }
    while line.utf8.last == UInt8(ascii: " ") { line.removeLast() }
    guard let width, width > 1, line.characterCount > width else { return line }
    return line.prefix(width - 1) + "…"
  }
}

/// Rows of text in aligned columns, for a terminal or a mail.
package struct TextTable {
  private var columns: TextColumns
  private var rows: [[String]] = []

  package init(_ columns: [TextColumns.Column]) { self.columns = TextColumns(columns) }
  package mutating func add(_ cells: [String]) { rows.append(columns.measure(cells)) }

  package func text(width: Int?) -> String {
    ([columns.titles(width: width)] + rows.map { columns.line($0, width: width) }).joined(separator: "\n")
  }
}

extension String {
  // ASCII is counted in bytes, because grapheme breaking is slow.
  fileprivate var characterCount: Int { utf8.allSatisfy { $0 < 0x80 } ? utf8.count : count }
}
