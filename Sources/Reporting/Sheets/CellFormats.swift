import Reconciliation
import Spreadsheet

/// A format of a group of sheets, by name.
protocol FormatName: CaseIterable, RawRepresentable<Int> {
  var style: CellStyle { get }

  /// The styles of amounts and of their sums, which differ in the number of decimal digits.
  static func amount(_ numberFormat: String) -> CellStyle
  static func total(_ numberFormat: String) -> CellStyle
}

/// The formats of a group of sheets in one workbook.
struct Formats<Name: FormatName> {
  private var named: [CellFormat] = []
  /// Indexed by decimal digits.
  private var amounts: [CellFormat] = []
  private var totals: [CellFormat] = []

  init(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    for name in Name.allCases { named.append(try workbook.addFormat(name.style)) }
    for digits in Money.powersOfTen.indices {
      let format = CellStyle.amountFormat(digits: digits)
      amounts.append(try workbook.addFormat(Name.amount(format)))
      totals.append(try workbook.addFormat(Name.total(format)))
    }
  }

  subscript(name: Name) -> CellFormat { named[name.rawValue] }

  func amount(digits: UInt8) -> CellFormat { amounts[min(Int(digits), amounts.count - 1)] }

  func total(digits: UInt8) -> CellFormat { totals[min(Int(digits), totals.count - 1)] }
}

typealias CellFormats = Formats<DataFormat>

/// The formats of data sheets. Cells are unlocked, because Excel sorts a protected sheet only if all cells are unlocked.
enum DataFormat: Int, FormatName {
  /// `indented` formats are for text that would touch the cell to its left.
  case blank, header, headerIndented, headerRight, headerCentre, text, indented, prose, indentedProse, link, entry,
    dayEntry, count, code, instant, day, critical, major, minor, old, totalLabel, totalCount

  var style: CellStyle {
    switch self {
    case .blank: CellStyle().with(\.isLocked, false)
    case .header: .header(.left).with(\.isLocked, false)
    case .headerIndented: .header(.left, indent: 1).with(\.isLocked, false)
    case .headerRight: .header(.right).with(\.isLocked, false)
    case .headerCentre: .header(.centre).with(\.isLocked, false)
    case .text: .cell("@")
    case .indented: .cell("@").with(\.indent, 1)
    case .prose: .cell("@").with(\.wraps, true)
    case .indentedProse: .cell("@").with(\.wraps, true).with(\.indent, 1)
    case .link: .cell("@").with(\.isHyperlink, true)
    case .entry: .entry("@").with(\.wraps, true).with(\.indent, 1)
    case .dayEntry: .entry("yyyy-mm-dd").with(\.horizontal, .centre)
    case .count: .cell(CellStyle.countFormat)
    case .code: .cell("0")
    case .instant: .cell("yyyy-mm-dd hh:mm:ss").with(\.horizontal, .centre)
    case .day: .cell("yyyy-mm-dd").with(\.horizontal, .centre)
    case .critical: .signal(Palette.red, on: Palette.paleRed)
    case .major: .signal(Palette.orange, on: Palette.paleOrange)
    case .minor: .signal(Palette.blue, on: Palette.paleBlue)
    case .old: CellStyle().with(\.isBold, true).with(\.fontColour, Palette.red)
    case .totalLabel: .total("@")
    case .totalCount: .total(CellStyle.tableCountFormat)
    }
  }

  static func amount(_ numberFormat: String) -> CellStyle { .cell(numberFormat) }

  static func total(_ numberFormat: String) -> CellStyle { .total(numberFormat) }
}

extension CellFormats {
  func entry(_ type: ColumnType) -> CellFormat { self[type == .due ? .dayEntry : .entry] }
}

extension CellStyle {
  func with<Value>(_ property: WritableKeyPath<CellStyle, Value>, _ value: Value) -> CellStyle {
    var style = self
    style[keyPath: property] = value
    return style
  }

  /// A number such as an age, whose zero is a value.
  static let countFormat = signed("#,##0")
  static let tableCountFormat = amountFormat(digits: 0)

  /// A dash for zero, as on the page, because many amounts of a table are zero.
  static func amountFormat(digits: Int) -> String {
    signed(digits == 0 ? "#,##0" : "#,##0." + String(repeating: "0", count: digits)) + ";\"–\""
  }

  // Without a colour: `[Red]` has a contrast of 4:1 with white, and programs disagree about numbered colours.
  private static func signed(_ number: String) -> String { "\(number);\"−\"\(number)" }

  static func header(_ alignment: HorizontalAlignment, indent: Int = 0) -> CellStyle {
    CellStyle {
      $0.isBold = true
      $0.fontColour = Palette.white
      $0.background = Palette.navy
      $0.horizontal = alignment
      $0.indent = indent
      $0.vertical = .centre
      $0.wraps = true
    }
  }

  /// Aligned to the top because rows may have several lines; unlocked so that rows can be sorted.
  fileprivate static func cell(_ numberFormat: String) -> CellStyle {
    CellStyle().with(\.numberFormat, numberFormat).with(\.isLocked, false).with(\.vertical, .top)
  }

  fileprivate static func entry(_ numberFormat: String) -> CellStyle {
    let lines = Borders(top: .hair, bottom: .hair, left: .hair, right: .hair, colour: Palette.line)
    return cell(numberFormat).with(\.background, Palette.entry).with(\.borders, lines)
  }

  fileprivate static func total(_ numberFormat: String) -> CellStyle {
    let lines = Borders(top: .thin, bottom: .thin, colour: Palette.navy)
    return CellStyle().with(\.numberFormat, numberFormat).with(\.isBold, true).with(\.borders, lines)
  }

  static func signal(_ colour: Colour, on background: Colour) -> CellStyle {
    CellStyle().with(\.isBold, true).with(\.fontColour, colour).with(\.background, background)
  }
}
