/// Rows of text in aligned columns, for a terminal or a mail.
package struct TextTable {
  package enum Column {
    case left(String)
    case right(String)

    var title: String {
      switch self {
      case .left(let title), .right(let title): title
      }
    }
  }

  private let columns: [Column]
  private var rows: [[String]] = []
  private var widths: [Int]

  package init(_ columns: [Column]) {
    self.columns = columns
    widths = columns.map { $0.title.count }
  }

  /// Adds a row with one cell for each column.
  package mutating func add(_ cells: [String]) {
    let cells = cells.map { Terminal.plain($0).replacing(/[\t\n]/, with: " ") }
    for (index, cell) in cells.enumerated() where index < widths.count {
      widths[index] = max(widths[index], cell.count)
    }
    rows.append(cells)
  }

  /// - Parameter width: lines are cut there; nil for as wide as it takes.
  package func text(width: Int?) -> String {
    ([columns.map(\.title)] + rows).map { line($0, width: width) }.joined(separator: "\n")
  }

  private func line(_ cells: [String], width: Int?) -> String {
    let padded = zip(columns, zip(cells, widths)).map { column, cell in
      let blanks = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
      return switch column {
      case .left: cell.0 + blanks
      case .right: blanks + cell.0
      }
    }
    var line = padded.joined(separator: "  ")
    while line.last == " " { line.removeLast() }
    guard let width, width > 1, line.count > width else { return line }
    return line.prefix(width - 1) + "…"
  }
}
