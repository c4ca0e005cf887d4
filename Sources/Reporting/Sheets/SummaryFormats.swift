import Reconciliation
import Spreadsheet

typealias SummaryFormats = Formats<SummaryFormat>

/// The formats of the first and the last sheet.
enum SummaryFormat: Int, FormatName {
  case title, subtitle, complete, incomplete, heading, label, value, instant, link, tableHeader, tableHeaderCentre,
    tableHeaderRight, tableText, tableTextRight, tableProse, shrinkingText, tableCount, sumText, sumCount, tileLabel,
    tile, tileBad, navigation, balanced, signature, signatureDate, good, bad, fair

  var style: CellStyle {
    switch self {
    case .title: .bold(20, Palette.navy).with(\.vertical, .centre)
    case .subtitle: CellStyle().with(\.fontSize, 12).with(\.fontColour, Palette.grey).with(\.vertical, .centre)
    case .complete: .banner(Palette.green, on: Palette.paleGreen)
    case .incomplete: .banner(Palette.orange, on: Palette.paleOrange)
    case .heading:
      .bold(13, Palette.navy).with(\.borders, CellStyle.Borders(bottom: .medium, colour: Palette.navy))
    case .label:
      CellStyle().with(\.fontColour, Palette.grey).with(\.vertical, .centre).with(\.indent, 1).with(\.wraps, true)
    case .value:
      CellStyle().with(\.numberFormat, "#,##0").with(\.horizontal, .left).with(\.vertical, .top).with(\.wraps, true)
    case .instant: CellStyle().with(\.numberFormat, "yyyy-mm-dd hh:mm:ss").with(\.horizontal, .left)
    case .link: .line("@").with(\.isHyperlink, true).with(\.indent, 1)
    case .tableHeader: .header(.left, indent: 1)
    case .tableHeaderCentre: .header(.centre)
    // The margin keeps a title away from the one to its right.
    case .tableHeaderRight: .header(.right, indent: 1)
    case .tableText: .line("@").with(\.indent, 1)
    case .tableTextRight: .line("@").with(\.horizontal, .right)
    case .tableProse: .line("@").with(\.indent, 1).with(\.wraps, true)
    case .shrinkingText: .line("@").with(\.indent, 1).with(\.shrinks, true)
    case .tableCount: .line(CellStyle.tableCountFormat)
    case .sumText: .sum("@").with(\.indent, 1)
    case .sumCount: .sum(CellStyle.tableCountFormat)
    case .tileLabel: CellStyle.tile.with(\.fontColour, Palette.grey)
    case .tile: .figure(Palette.navy)
    case .tileBad: .figure(Palette.red)
    case .navigation: CellStyle().with(\.isHyperlink, true).with(\.horizontal, .centre).with(\.vertical, .centre)
    case .balanced: .line("@").with(\.isBold, true).with(\.horizontal, .centre)
    case .signature: CellStyle.signOff.with(\.numberFormat, "@").with(\.wraps, true)
    case .signatureDate: CellStyle.signOff.with(\.numberFormat, "yyyy-mm-dd")
    case .good: .signal(Palette.green, on: Palette.paleGreen)
    case .bad: .signal(Palette.red, on: Palette.paleRed)
    case .fair: .signal(Palette.orange, on: Palette.paleOrange)
    }
  }

  static func amount(_ numberFormat: String) -> CellStyle { .line(numberFormat) }

  static func total(_ numberFormat: String) -> CellStyle { .sum(numberFormat) }
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

  fileprivate static func figure(_ colour: Colour) -> CellStyle {
    tile.with(\.isBold, true).with(\.fontSize, 20).with(\.fontColour, colour)
  }

  fileprivate static let signOff = CellStyle {
    $0.background = Palette.entry
    $0.isLocked = false
    $0.horizontal = .left
    $0.vertical = .centre
    $0.borders = Borders(bottom: .thin, colour: Palette.navy)
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

extension Sheet {
  /// Merges cells of a row, and shortens a text that is too long for a cell.
  func merge(
    _ text: String, _ columns: ClosedRange<Int>, row: Int, _ format: CellFormat
  ) throws(SpreadsheetError) {
    try mergeCells(CellRange(rows: row...row, columns: columns), text: CellText.fitting(text), format: format)
  }
}
