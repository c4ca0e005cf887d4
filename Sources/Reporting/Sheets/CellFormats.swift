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
    blank = try workbook.addFormat(CellStyle { $0.isLocked = false })
    header = try workbook.addFormat(.openHeader(.left))
    headerIndented = try workbook.addFormat(.openHeader(.left, indent: 1))
    headerRight = try workbook.addFormat(.openHeader(.right))
    headerCentre = try workbook.addFormat(.openHeader(.centre))
    text = try workbook.addFormat(.cell("@"))
    indented = try workbook.addFormat(.cell("@") { $0.indent = 1 })
    prose = try workbook.addFormat(.cell("@") { $0.wraps = true })
    indentedProse = try workbook.addFormat(
      .cell("@") {
        $0.wraps = true
        $0.indent = 1
      })
    link = try workbook.addFormat(.cell("@") { $0.isHyperlink = true })
    entry = try workbook.addFormat(
      .entry("@") {
        $0.wraps = true
        $0.indent = 1
      })
    dayEntry = try workbook.addFormat(.entry("yyyy-mm-dd") { $0.horizontal = .centre })
    count = try workbook.addFormat(.cell(CellStyle.countFormat))
    code = try workbook.addFormat(.cell("0"))
    instant = try workbook.addFormat(.cell("yyyy-mm-dd hh:mm:ss") { $0.horizontal = .centre })
    day = try workbook.addFormat(.cell("yyyy-mm-dd") { $0.horizontal = .centre })
    critical = try workbook.addFormat(.signal(Palette.red, on: Palette.paleRed))
    major = try workbook.addFormat(.signal(Palette.orange, on: Palette.paleOrange))
    minor = try workbook.addFormat(.signal(Palette.blue, on: Palette.paleBlue))
    old = try workbook.addFormat(
      CellStyle {
        $0.isBold = true
        $0.fontColour = Palette.red
      })
    totalLabel = try workbook.addFormat(.total("@"))
    totalCount = try workbook.addFormat(.total(CellStyle.tableCountFormat))
    var amounts: [CellFormat] = []
    var totals: [CellFormat] = []
    for digits in 0...Money.powersOfTen.count - 1 {
      let format = CellStyle.amountFormat(digits: digits)
      amounts.append(try workbook.addFormat(.cell(format)))
      totals.append(try workbook.addFormat(.total(format)))
    }
    self.amounts = amounts
    self.totals = totals
  }

  func entry(_ type: ColumnType) -> CellFormat { type == .due ? dayEntry : entry }

  func amount(digits: UInt8) -> CellFormat { amounts[min(Int(digits), amounts.count - 1)] }

  func total(digits: UInt8) -> CellFormat { totals[min(Int(digits), totals.count - 1)] }
}

extension CellStyle {
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

  /// An unlocked header, because Excel sorts a protected sheet only if all cells are unlocked.
  fileprivate static func openHeader(_ alignment: HorizontalAlignment, indent: Int = 0) -> CellStyle {
    var style = header(alignment, indent: indent)
    style.isLocked = false
    return style
  }

  /// Aligned to the top because rows may have several lines; unlocked so that rows can be sorted.
  fileprivate static func cell(_ numberFormat: String, _ change: (inout CellStyle) -> Void = { _ in }) -> CellStyle {
    CellStyle {
      $0.numberFormat = numberFormat
      $0.isLocked = false
      $0.vertical = .top
      change(&$0)
    }
  }

  fileprivate static func entry(_ numberFormat: String, _ change: (inout CellStyle) -> Void) -> CellStyle {
    cell(numberFormat) {
      $0.background = Palette.entry
      $0.borders = Borders(top: .hair, bottom: .hair, left: .hair, right: .hair, colour: Palette.line)
      change(&$0)
    }
  }

  fileprivate static func total(_ numberFormat: String) -> CellStyle {
    CellStyle {
      $0.numberFormat = numberFormat
      $0.isBold = true
      $0.borders = Borders(top: .thin, bottom: .thin, colour: Palette.navy)
    }
  }

  static func signal(_ colour: Colour, on background: Colour) -> CellStyle {
    CellStyle {
      $0.isBold = true
      $0.fontColour = colour
      $0.background = background
    }
  }
}
