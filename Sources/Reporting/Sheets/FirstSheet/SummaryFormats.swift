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
  let figure: CellFormat
  let tileLabel: CellFormat
  let tile: CellFormat
  let tileBad: CellFormat
  let tileGood: CellFormat
  let navigation: CellFormat
  let balanced: CellFormat
  let signature: CellFormat
  let signatureDate: CellFormat
  let day: CellFormat
  let good: CellFormat
  let bad: CellFormat
  let fair: CellFormat
  private let amounts: [CellFormat]
  private let sums: [CellFormat]

  init(_ workbook: borrowing Workbook) throws(SpreadsheetError) {
    title = try workbook.addFormat(
      CellStyle {
        $0.isBold = true
        $0.fontSize = 20
        $0.fontColour = Palette.navy
        $0.vertical = .centre
      })
    subtitle = try workbook.addFormat(
      CellStyle {
        $0.fontSize = 12
        $0.fontColour = Palette.grey
        $0.vertical = .centre
      })
    complete = try workbook.addFormat(.banner(Palette.green, on: Palette.paleGreen))
    incomplete = try workbook.addFormat(.banner(Palette.orange, on: Palette.paleOrange))
    heading = try workbook.addFormat(
      CellStyle {
        $0.isBold = true
        $0.fontSize = 13
        $0.fontColour = Palette.navy
        $0.borders = CellStyle.Borders(bottom: .medium, colour: Palette.navy)
      })
    label = try workbook.addFormat(
      CellStyle {
        $0.fontColour = Palette.grey
        $0.vertical = .centre
        $0.indent = 1
        $0.wraps = true
      })
    value = try workbook.addFormat(
      CellStyle {
        $0.numberFormat = "#,##0"
        $0.horizontal = .left
        $0.vertical = .top
        $0.wraps = true
      })
    instant = try workbook.addFormat(
      CellStyle {
        $0.numberFormat = "yyyy-mm-dd hh:mm:ss"
        $0.horizontal = .left
      })
    link = try workbook.addFormat(
      .line("@") {
        $0.isHyperlink = true
        $0.indent = 1
      })
    tableHeader = try workbook.addFormat(.header(.left, indent: 1))
    tableHeaderCentre = try workbook.addFormat(.header(.centre))
    // The margin keeps a title away from the one to its right.
    tableHeaderRight = try workbook.addFormat(.header(.right, indent: 1))
    tableText = try workbook.addFormat(.line("@") { $0.indent = 1 })
    tableTextRight = try workbook.addFormat(.line("@") { $0.horizontal = .right })
    tableProse = try workbook.addFormat(
      .line("@") {
        $0.indent = 1
        $0.wraps = true
      })
    shrinkingText = try workbook.addFormat(
      .line("@") {
        $0.indent = 1
        $0.shrinks = true
      })
    tableCount = try workbook.addFormat(.line(CellStyle.tableCountFormat) { _ in })
    sumText = try workbook.addFormat(.sum("@") { $0.indent = 1 })
    sumCount = try workbook.addFormat(.sum(CellStyle.tableCountFormat) { _ in })
    figure = try workbook.addFormat(
      CellStyle {
        $0.numberFormat = "#,##0"
        $0.isBold = true
        $0.fontSize = 18
        $0.fontColour = Palette.navy
        $0.background = Palette.paleBlue
        $0.horizontal = .right
        $0.vertical = .centre
      })
    tileLabel = try workbook.addFormat(.tile { $0.fontColour = Palette.grey })
    let figure: (inout CellStyle) -> Void = {
      $0.isBold = true
      $0.fontSize = 20
    }
    tile = try workbook.addFormat(
      .tile {
        figure(&$0)
        $0.fontColour = Palette.navy
      })
    tileBad = try workbook.addFormat(
      .tile {
        figure(&$0)
        $0.fontColour = Palette.red
      })
    tileGood = try workbook.addFormat(
      .tile {
        figure(&$0)
        $0.fontColour = Palette.green
      })
    navigation = try workbook.addFormat(
      CellStyle {
        $0.isHyperlink = true
        $0.horizontal = .centre
        $0.vertical = .centre
      })
    balanced = try workbook.addFormat(
      .line("@") {
        $0.isBold = true
        $0.horizontal = .centre
      })
    let open: (inout CellStyle) -> Void = {
      $0.background = Palette.entry
      $0.isLocked = false
      $0.horizontal = .left
      $0.vertical = .centre
      $0.borders = CellStyle.Borders(bottom: .thin, colour: Palette.navy)
    }
    signature = try workbook.addFormat(
      CellStyle {
        open(&$0)
        $0.numberFormat = "@"
        $0.wraps = true
      })
    signatureDate = try workbook.addFormat(
      CellStyle {
        open(&$0)
        $0.numberFormat = "yyyy-mm-dd"
      })
    day = try workbook.addFormat(.line("@") { $0.indent = 1 })
    good = try workbook.addFormat(.signal(Palette.green, on: Palette.paleGreen))
    bad = try workbook.addFormat(.signal(Palette.red, on: Palette.paleRed))
    fair = try workbook.addFormat(.signal(Palette.orange, on: Palette.paleOrange))
    var (amounts, sums): ([CellFormat], [CellFormat]) = ([], [])
    for digits in Money.powersOfTen.indices {
      amounts.append(try workbook.addFormat(.line(CellStyle.amountFormat(digits: digits)) { _ in }))
      sums.append(try workbook.addFormat(.sum(CellStyle.amountFormat(digits: digits)) { _ in }))
    }
    self.sums = sums
    self.amounts = amounts
  }

  func amount(digits: UInt8) -> CellFormat { amounts[min(Int(digits), amounts.count - 1)] }

  func sum(digits: UInt8) -> CellFormat { sums[min(Int(digits), sums.count - 1)] }
}

extension CellStyle {
  fileprivate static func banner(_ colour: Colour, on background: Colour) -> CellStyle {
    CellStyle {
      $0.isBold = true
      $0.fontSize = 13
      $0.fontColour = colour
      $0.background = background
      $0.vertical = .centre
      $0.indent = 1
    }
  }

  fileprivate static func tile(_ change: (inout CellStyle) -> Void) -> CellStyle {
    CellStyle {
      $0.numberFormat = "#,##0"
      $0.background = Palette.tile
      $0.horizontal = .centre
      $0.vertical = .centre
      change(&$0)
    }
  }

  fileprivate static func sum(_ numberFormat: String, _ change: (inout CellStyle) -> Void) -> CellStyle {
    CellStyle {
      $0.numberFormat = numberFormat
      $0.isBold = true
      $0.borders = Borders(bottom: .thin, colour: Palette.navy)
      $0.vertical = .top
      change(&$0)
    }
  }

  fileprivate static func line(_ numberFormat: String, _ change: (inout CellStyle) -> Void) -> CellStyle {
    CellStyle {
      $0.numberFormat = numberFormat
      $0.borders = Borders(bottom: .hair, colour: Palette.line)
      $0.vertical = .top
      change(&$0)
    }
  }
}
