import Reconciliation
import Spreadsheet

enum Criterion {
  case cell(CellReference)
  /// The currency at the end of a label.
  case currency(endOf: CellReference)
  case word(StaticString)
  case atLeast(Int)
  case atMost(Int)
  case blank

  var formula: Formula {
    switch self {
    case .cell(let cell): "\(absolute: cell)"
    case .currency(let label): "RIGHT(\(absolute: label),3)"
    case .word(let word): Formula(word: word)
    case .atLeast(let number): "\">=\(number)\""
    case .atMost(let number): "\"<=\(number)\""
    case .blank: "\"\""
    }
  }
}

/// Sums and counts over the data sheets, each over all sheets of a table.
struct TableFormulas {
  let sheets: [DataSheet]
  private let byTable: [ReportTable: DataSheet]

  init(_ sheets: [DataSheet]) {
    self.sheets = sheets
    byTable = Dictionary(uniqueKeysWithValues: sheets.map { ($0.table, $0) })
  }

  subscript(table: ReportTable) -> DataSheet? { byTable[table] }

  /// - Parameter column: never empty. Bad rows may lack an ID, and Excel does not count empty text.
  func rows(_ table: ReportTable, _ column: String) -> Formula {
    total(byTable[table]?.cells(of: column) ?? []) { .call("COUNTA", ["\($0)"]) }
  }

  func sum(_ table: ReportTable, _ column: String) -> Formula {
    total(byTable[table]?.cells(of: column) ?? []) { .call("SUM", ["\($0)"]) }
  }

  func count(_ table: ReportTable, where conditions: [(String, Criterion)]) -> Formula {
    let ranges = conditions.map { byTable[table]?.cells(of: $0.0) ?? [] }
    guard let parts = ranges.first?.count, parts > 0 else { return "0" }
    return .sum(of: (0..<parts).map { .call("COUNTIFS", arguments(part: $0, ranges, conditions)) })
  }

  func sum(_ table: ReportTable, _ column: String, where conditions: [(String, Criterion)]) -> Formula {
    let sums = byTable[table]?.cells(of: column) ?? []
    guard !sums.isEmpty else { return "0" }
    let ranges = conditions.map { byTable[table]?.cells(of: $0.0) ?? [] }
    return .sum(of: sums.indices.map { .call("SUMIFS", ["\(sums[$0])"] + arguments(part: $0, ranges, conditions)) })
  }

  /// The sum over rows that meet a condition and whose day, as text, is within two cells.
  func sum(
    _ table: ReportTable, _ column: String, of condition: (String, Criterion), from first: CellReference,
    to last: CellReference, in day: String
  ) -> Formula {
    let (sums, keys) = (byTable[table]?.cells(of: column) ?? [], byTable[table]?.cells(of: condition.0) ?? [])
    let days = byTable[table]?.cells(of: day) ?? []
    guard !sums.isEmpty else { return "0" }
    return .sum(
      of: sums.indices.map {
        """
        SUMPRODUCT((\(days[$0])>=\(absolute: first))*(\(days[$0])<=\(absolute: last))*\
        (\(keys[$0])=\(condition.1.formula)),\(sums[$0]))
        """
      })
  }

  private func arguments(part: Int, _ ranges: [[SheetRange]], _ conditions: [(String, Criterion)]) -> [Formula] {
    zip(ranges, conditions).flatMap { ranges, condition in ["\(ranges[part])", condition.1.formula] }
  }

  private func total(_ ranges: [SheetRange], _ formula: (SheetRange) -> Formula) -> Formula {
    ranges.isEmpty ? "0" : .sum(of: ranges.map(formula))
  }
}
