import Reconciliation
import Spreadsheet

struct SummaryFormats {
  let title: CellFormat
  let subtitle: CellFormat
  let complete: CellFormat
  let incomplete: CellFormat
  let heading: CellFormat
  let label: CellFormat
  let value: CellFormat
  let instant: CellFormat
  let link: CellFormat
  let tableHeader: CellFormat
  let tableHeaderCentre: CellFormat
  let tableHeaderRight: CellFormat
  let tableText: CellFormat
  let tableTextRight: CellFormat
  let tableProse: CellFormat
  let shrinkingText: CellFormat
  let tableCount: CellFormat
  let sumText: CellFormat
  let sumCount: CellFormat
  let tileLabel: CellFormat
  let tile: CellFormat
  let tileBad: CellFormat
  let navigation: CellFormat
  let balanced: CellFormat
  let signature: CellFormat
  let signatureDate: CellFormat
  let good: CellFormat
  let bad: CellFormat
  let fair: CellFormat
  private let amounts: [CellFormat]
  private let sums: [CellFormat]

  init(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    title = try workbook.addFormat(.bold(20, Palette.navy).with(\.vertical, .centre))
    subtitle = try workbook.addFormat(
      CellStyle().with(\.fontSize, 12).with(\.fontColour, Palette.grey).with(\.vertical, .centre))
    complete = try workbook.addFormat(.banner(Palette.green, on: Palette.paleGreen))
    incomplete = try workbook.addFormat(.banner(Palette.orange, on: Palette.paleOrange))
    heading = try workbook.addFormat(
      .bold(13, Palette.navy).with(\.borders, CellStyle.Borders(bottom: .medium, colour: Palette.navy)))
    label = try workbook.addFormat(
      CellStyle().with(\.fontColour, Palette.grey).with(\.vertical, .centre).with(\.indent, 1).with(\.wraps, true))
    value = try workbook.addFormat(
      CellStyle().with(\.numberFormat, "#,##0").with(\.horizontal, .left).with(\.vertical, .top).with(\.wraps, true))
    instant = try workbook.addFormat(
      CellStyle().with(\.numberFormat, "yyyy-mm-dd hh:mm:ss").with(\.horizontal, .left))
    link = try workbook.addFormat(.line("@").with(\.isHyperlink, true).with(\.indent, 1))
    tableHeader = try workbook.addFormat(.header(.left, indent: 1))
    tableHeaderCentre = try workbook.addFormat(.header(.centre))
    // The margin keeps a title away from the one to its right.
    tableHeaderRight = try workbook.addFormat(.header(.right, indent: 1))
    tableText = try workbook.addFormat(.line("@").with(\.indent, 1))
    tableTextRight = try workbook.addFormat(.line("@").with(\.horizontal, .right))
    tableProse = try workbook.addFormat(.line("@").with(\.indent, 1).with(\.wraps, true))
    shrinkingText = try workbook.addFormat(.line("@").with(\.indent, 1).with(\.shrinks, true))
    tableCount = try workbook.addFormat(.line(CellStyle.tableCountFormat))
    sumText = try workbook.addFormat(.sum("@").with(\.indent, 1))
    sumCount = try workbook.addFormat(.sum(CellStyle.tableCountFormat))
    tileLabel = try workbook.addFormat(CellStyle.tile.with(\.fontColour, Palette.grey))
    let figure = CellStyle.tile.with(\.isBold, true).with(\.fontSize, 20)
    tile = try workbook.addFormat(figure.with(\.fontColour, Palette.navy))
    tileBad = try workbook.addFormat(figure.with(\.fontColour, Palette.red))
    navigation = try workbook.addFormat(
      CellStyle().with(\.isHyperlink, true).with(\.horizontal, .centre).with(\.vertical, .centre))
    balanced = try workbook.addFormat(.line("@").with(\.isBold, true).with(\.horizontal, .centre))
    let entry = CellStyle {
      $0.background = Palette.entry
      $0.isLocked = false
      $0.horizontal = .left
      $0.vertical = .centre
      $0.borders = CellStyle.Borders(bottom: .thin, colour: Palette.navy)
    }
    signature = try workbook.addFormat(entry.with(\.numberFormat, "@").with(\.wraps, true))
    signatureDate = try workbook.addFormat(entry.with(\.numberFormat, "yyyy-mm-dd"))
    good = try workbook.addFormat(.signal(Palette.green, on: Palette.paleGreen))
    bad = try workbook.addFormat(.signal(Palette.red, on: Palette.paleRed))
    fair = try workbook.addFormat(.signal(Palette.orange, on: Palette.paleOrange))
    var (amounts, sums): ([CellFormat], [CellFormat]) = ([], [])
    for digits in Money.powersOfTen.indices {
      amounts.append(try workbook.addFormat(.line(CellStyle.amountFormat(digits: digits))))
      sums.append(try workbook.addFormat(.sum(CellStyle.amountFormat(digits: digits))))
    }
    (self.sums, self.amounts) = (sums, amounts)
  }

  func amount(digits: UInt8) -> CellFormat { amounts[min(Int(digits), amounts.count - 1)] }

  func sum(digits: UInt8) -> CellFormat { sums[min(Int(digits), sums.count - 1)] }
}

extension CellStyle {
  fileprivate static func bold(_ size: Double, _ colour: Colour) -> CellStyle {
    CellStyle().with(\.isBold, true).with(\.fontSize, size).with(\.fontColour, colour)
  }

  fileprivate static func banner(_ colour: Colour, on background: Colour) -> CellStyle {
    .bold(13, colour).with(\.background, background).with(\.vertical, .centre).with(\.indent, 1)
  }

  fileprivate static let tile = CellStyle {
    $0.numberFormat = "#,##0"
    $0.background = Palette.tile
    $0.horizontal = .centre
    $0.vertical = .centre
  }

  fileprivate static func sum(_ numberFormat: String) -> CellStyle {
    CellStyle {
      $0.numberFormat = numberFormat
      $0.isBold = true
      $0.borders = Borders(bottom: .thin, colour: Palette.navy)
      $0.vertical = .top
    }
  }

  fileprivate static func line(_ numberFormat: String) -> CellStyle {
    CellStyle {
      $0.numberFormat = numberFormat
      $0.borders = Borders(bottom: .hair, colour: Palette.line)
      $0.vertical = .top
    }
  }
}
