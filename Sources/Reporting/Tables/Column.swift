import Reconciliation

/// What a column holds: how a sheet shows it, and what machines may expect in it.
enum ColumnType: Hashable, Sendable {
  case text
  /// An id: text, of digits or not.
  case id
  /// The shop's id of a user.
  case user
  /// The stable id of a finding.
  case digest
  /// One of few words of the program's own.
  case word([String])
  /// Codes of the files, separated by spaces; a sheet prints their names for people. Empty: any codes.
  case spelt([String] = [])
  /// `true` or `false`.
  case flag
  case currency
  /// The order that a sheet links to.
  case orderLink
  /// Filled in by people in the sheet.
  case people
  /// One of the statuses that people choose from.
  case status
  /// A day that people fill in.
  case due
  /// A day of the calendar.
  case day
  /// Sentences.
  case prose
  /// Never below zero. `unit`: what is counted, `1` for things, `d` for days.
  case count(unit: String)
  /// A whole number of any sign: a broken row's quantity may be one.
  case number
  /// A count of its own rows, added up below a sheet by currency.
  case tally
  /// A number that is a name: never grouped.
  case code
  /// Money, added up below a sheet by currency.
  case amount
  /// The part of such money that one disposition has: mostly none of it.
  case share
  /// Money that means nothing added up.
  case price
  case percentage
  /// A number of units, or money that is Apple's and not the shop's.
  case exact
  case instant

  static let things = ColumnType.count(unit: "1")
  static let days = ColumnType.count(unit: "d")
  static let severity = ColumnType.word(Severity.allCases.map(\.rawValue))
  static let disposition = ColumnType.spelt(Disposition.allCases.map(\.rawValue))

  var isMoney: Bool {
    switch self {
    case .amount, .share, .price: true
    case .text, .id, .user, .digest, .word, .spelt, .flag, .currency, .orderLink, .people, .status, .due, .prose, .day,
      .count, .number, .tally, .code, .percentage, .exact, .instant:
      false
    }
  }

  var isNumber: Bool {
    switch self {
    case .count, .number, .tally, .code, .amount, .share, .price, .percentage, .exact: true
    case .text, .id, .user, .digest, .word, .spelt, .flag, .currency, .orderLink, .people, .status, .due, .day, .prose,
      .instant:
      false
    }
  }

  /// Whether it is text that a spreadsheet would like to be a number.
  var isId: Bool {
    switch self {
    case .id, .user, .digest, .orderLink: true
    case .text, .word, .spelt, .flag, .currency, .people, .status, .due, .day, .prose, .count, .number, .tally,
      .code, .amount, .share, .price, .percentage, .exact, .instant:
      false
    }
  }

  /// Whether people write into it.
  var isForPeople: Bool {
    switch self {
    case .people, .status, .due: true
    case .text, .id, .user, .digest, .word, .spelt, .flag, .currency, .orderLink, .day, .prose, .count, .number, .tally,
      .code, .amount, .share, .price, .percentage, .exact, .instant:
      false
    }
  }
}

/// A column without its rows: how it is called, what it means and how it looks.
struct ColumnHead: Hashable, Sendable {
  /// As CSV heads it.
  let name: String
  let type: ColumnType
  /// In characters.
  let width: Double
  /// What stands in it, for those who read `datapackage.json` or the note on its header.
  let meaning: String

  /// As a sheet heads it: underscores as spaces, the first letter a capital.
  var title: String { name.asWords }
}

/// A column with everything that is known about it, its writer included.
struct Column<Row>: Sendable {
  let head: ColumnHead
  /// What a row has in it.
  let cell: @Sendable (Row) -> Cell

  init(
    _ name: String, _ type: ColumnType, _ width: Double, _ meaning: String, _ cell: @escaping @Sendable (Row) -> Cell
  ) {
    head = ColumnHead(name: name, type: type, width: width, meaning: meaning)
    self.cell = cell
  }
}

extension Column {
  /// The configured name of the app.
  static func app(_ name: @escaping @Sendable (Row) -> String?) -> Column {
    Column("app", .text, 12, "The app, by its name in the configuration.") { Cell(name($0)) }
  }

  /// The country of the App Store.
  static func country(_ country: @escaping @Sendable (Row) -> Country?) -> Column {
    Column("country", .text, 9, "Country of the App Store, ISO 3166 alpha-2; empty when Apple has not said.") {
      Cell(country($0)?.code)
    }
  }

  /// The business day.
  static func businessDay(_ meaning: String, _ day: @escaping @Sendable (Row) -> String?) -> Column {
    Column("business_day", .day, 13, meaning) { day($0).map { .day($0) } ?? .blank }
  }
}

/// A row of one of the report's tables.
protocol TableRow: Sendable {
  static var table: ReportTable { get }
  /// From left to right, as the file has them. Names and order are a contract: columns are only ever added at the end.
  static var columns: [Column<Self>] { get }
}
