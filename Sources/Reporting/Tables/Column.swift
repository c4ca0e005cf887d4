import Reconciliation

/// The type of a column: its format in sheets, and its schema for machines.
enum ColumnType: Hashable, Sendable {
  case text
  case id
  case user
  case digest
  case word([String])
  /// Codes separated by spaces, shown as titles in sheets. Empty: any codes.
  case spelt([String] = [])
  case flag
  case currency
  case orderLink
  /// Text that people fill in.
  case people
  case status
  case due
  case day
  case prose
  /// Never negative. `unit` is `1` for things, `d` for days.
  case count(unit: String)
  /// A whole number of any sign, such as the quantity of a bad row.
  case number
  /// A count of rows, summed by currency below the sheet.
  case tally
  /// A number that is a name, without thousands separators.
  case code
  /// Money, summed by currency below the sheet.
  case amount
  /// The part of an amount with one disposition; mostly zero.
  case share
  /// Money whose sum has no meaning.
  case price
  case percentage
  /// Units, or money of Apple's that is not the shop's.
  case exact
  case instant

  static let things = ColumnType.count(unit: "1")
  static let days = ColumnType.count(unit: "d")
  static let severity = ColumnType.word(Severity.allCases.map(\.rawValue))
  static let disposition = ColumnType.spelt(Disposition.allCases.map(\.rawValue))

  private enum Family { case money, number, id, entry, other }

  private var family: Family {
    switch self {
    case .amount, .share, .price: .money
    case .count, .number, .tally, .code, .percentage, .exact: .number
    case .id, .user, .digest, .orderLink: .id
    case .people, .status, .due: .entry
    case .text, .word, .spelt, .flag, .currency, .day, .prose, .instant: .other
    }
  }

  var isMoney: Bool { family == .money }

  var isNumber: Bool { family == .number || family == .money }

  /// True for text that a spreadsheet would convert to a number.
  var isId: Bool { family == .id }

  var isForPeople: Bool { family == .entry }
}

struct ColumnHead: Hashable, Sendable {
  let name: String
  let title: String
  let type: ColumnType
  let width: Double
  /// The meaning, for `datapackage.json` and the note on the header.
  let meaning: String
}

struct Column<Row>: Sendable {
  let head: ColumnHead
  let cell: @Sendable (Row) -> Cell

  /// - Parameter title: the header of the sheet; nil: the name with spaces.
  init(
    _ name: String, _ type: ColumnType, _ width: Double, title: String? = nil, _ meaning: String,
    _ cell: @escaping @Sendable (Row) -> Cell
  ) {
    head = ColumnHead(name: name, title: title ?? name.displayText, type: type, width: width, meaning: meaning)
    self.cell = cell
  }
}

extension String {
  /// The width of a number column with this name. A long title takes two lines, so that it does not touch the next one.
  var widthAsHeader: Double { count > 20 ? 16 : Double(max(13, count + 2)) }
}

extension Column {
  static func app(_ name: @escaping @Sendable (Row) -> String?) -> Column {
    Column("app", .text, 12, "The app, by its name in the configuration.") { Cell(name($0)) }
  }

  static func country(_ country: @escaping @Sendable (Row) -> Country?) -> Column {
    Column("country", .text, 9, "Country of the App Store, ISO 3166 alpha-2; empty when unknown.") {
      Cell(country($0)?.code)
    }
  }

  static func businessDay(_ meaning: String, _ day: @escaping @Sendable (Row) -> String?) -> Column {
    Column("business_day", .day, 14, meaning) { Cell(day: day($0)) }
  }
}

protocol TableRow: Sendable {
  static var table: ReportTable { get }
  static var shape: ReportTable.Shape { get }
  /// From left to right as in the file. Columns are only ever appended: names and order are a contract.
  static var columns: [Column<Self>] { get }
}

extension TableRow {
  static var heads: [ColumnHead] { columns.map(\.head) }
}
