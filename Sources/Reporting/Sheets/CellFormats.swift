import Reconciliation
import Spreadsheet

struct CellFormats {
  let blank: CellFormat
  let header: CellFormat
  let headerIndented: CellFormat
  let headerRight: CellFormat
  let headerCentre: CellFormat
  let text: CellFormat
  /// For text that would touch the cell to its left.
  let indented: CellFormat
  let prose: CellFormat
  let indentedProse: CellFormat
  let link: CellFormat
  private let entry: CellFormat
  private let dayEntry: CellFormat
  let count: CellFormat
  let code: CellFormat
  let instant: CellFormat
  let day: CellFormat
  let critical: CellFormat
  let major: CellFormat
  let minor: CellFormat
  let old: CellFormat
  let totalLabel: CellFormat
  let totalCount: CellFormat
  /// Indexed by decimal digits.
  private let amounts: [CellFormat]
  private let totals: [CellFormat]

  init(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    // Unlocked, because Excel sorts a protected sheet only if all cells are unlocked.
    blank = try workbook.addFormat(CellStyle().with(\.isLocked, false))
    header = try workbook.addFormat(.header(.left).with(\.isLocked, false))
    headerIndented = try workbook.addFormat(.header(.left, indent: 1).with(\.isLocked, false))
    headerRight = try workbook.addFormat(.header(.right).with(\.isLocked, false))
    headerCentre = try workbook.addFormat(.header(.centre).with(\.isLocked, false))
    text = try workbook.addFormat(.cell("@"))
    indented = try workbook.addFormat(.cell("@").with(\.indent, 1))
    prose = try workbook.addFormat(.cell("@").with(\.wraps, true))
    indentedProse = try workbook.addFormat(.cell("@").with(\.wraps, true).with(\.indent, 1))
    link = try workbook.addFormat(.cell("@").with(\.isHyperlink, true))
    entry = try workbook.addFormat(.entry("@").with(\.wraps, true).with(\.indent, 1))
    dayEntry = try workbook.addFormat(.entry("yyyy-mm-dd").with(\.horizontal, .centre))
    count = try workbook.addFormat(.cell(CellStyle.countFormat))
    code = try workbook.addFormat(.cell("0"))
    instant = try workbook.addFormat(.cell("yyyy-mm-dd hh:mm:ss").with(\.horizontal, .centre))
    day = try workbook.addFormat(.cell("yyyy-mm-dd").with(\.horizontal, .centre))
    critical = try workbook.addFormat(.signal(Palette.red, on: Palette.paleRed))
    major = try workbook.addFormat(.signal(Palette.orange, on: Palette.paleOrange))
    minor = try workbook.addFormat(.signal(Palette.blue, on: Palette.paleBlue))
    old = try workbook.addFormat(CellStyle().with(\.isBold, true).with(\.fontColour, Palette.red))
    totalLabel = try workbook.addFormat(.total("@"))
    totalCount = try workbook.addFormat(.total(CellStyle.tableCountFormat))
    var amounts: [CellFormat] = []
    var totals: [CellFormat] = []
    for digits in 0...Money.powersOfTen.count - 1 {
      let format = CellStyle.amountFormat(digits: digits)
      amounts.append(try workbook.addFormat(.cell(format)))
      totals.append(try workbook.addFormat(.total(format)))
    }
    (self.amounts, self.totals) = (amounts, totals)
  }

  func entry(_ type: ColumnType) -> CellFormat { type == .due ? dayEntry : entry }

  func amount(digits: UInt8) -> CellFormat { amounts[min(Int(digits), amounts.count - 1)] }

  func total(digits: UInt8) -> CellFormat { totals[min(Int(digits), totals.count - 1)] }
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
