import Reconciliation

package struct SettlementRow: Hashable, Sendable {
  package var transactionDay: ReportDay?
  package var settlementDay: ReportDay?
  /// A product ID, or an app's SKU.
  package var sku: Identifier
  package var country: Identifier
  package var quantity: Millionths
  /// For one unit, always positive.
  package var partnerShare: Millionths
  /// Signed.
  package var extendedShare: Millionths
  package var currency: Identifier
}

/// Reads finance reports. FINANCIAL is a table with totals; FINANCE_DETAIL has a preamble, a table and sums by country.
/// Totals below the table are compared with it, never added.
package enum FinanceReport {
  package struct Reading: Hashable, Sendable {
    package var kind: ReportKind
    package var first: ReportDay?
    package var last: ReportDay?
    package var rows = 0
  }

  /// The kind of report that begins with this line.
  package static func kind(ofFirstLine line: String) -> ReportKind? {
    let names = ReportHeader.names(in: line)
    if names.first == "vendor name" { return .detail }
    return Set(names).isSuperset(of: ["start date", "end date", "vendor identifier"]) ? .financial : nil
  }

  /// Reads a whole report. `body` receives rows before the rest is known to be readable; discard them on an error. A
  /// file with dates outside `period` is rejected.
  package static func read(
    _ bytes: [UInt8], period: FiscalPeriod?, _ body: (SettlementRow) throws -> Void
  ) throws -> Reading {
    var parser = FinanceParser(period: period)
    var ends: [Int] = []
    let isEnded = try ReportLines.read(bytes) { line, number in
      if let row = try parser.line(ReportFields(line, number: number, ends: &ends), number: number) { try body(row) }
    }
    return try parser.finished(isEnded: isEnded)
  }
}

private struct FinanceParser {
  private enum Section {
    case preamble
    case table(Columns)
    case footer(SumColumns?)
  }

  private struct Columns {
    var sums: SumColumns
    /// The dates are the period of FINANCIAL, or the two days of FINANCE_DETAIL.
    var share, sku, firstDate, secondDate: ReportColumn
  }

  /// The columns that the table and the sums by country have.
  private struct SumColumns {
    let country, currency, quantity, extended: ReportColumn

    init(_ header: ReportHeader) throws(ReportProblem) {
      quantity = try header.column("Quantity")
      extended = try header.column("Extended Partner Share")
      currency = try header.column("Partner Share Currency")
      country = try header.column("Country Of Sale")
    }
  }

  private struct Sum: Hashable {
    var quantity = Millionths.zero
    var extended = Millionths.zero

    mutating func add(_ quantity: Millionths, _ extended: Millionths) {
      self.quantity += quantity
      self.extended += extended
    }
  }

  private let period: FiscalPeriod?
  private var place = Section.preamble
  private var reading = FinanceReport.Reading(kind: .financial)
  private var total = Sum()
  private var sums: [Place: Sum] = [:]
  private var footerSums: [Place: Sum]?

  init(period: FiscalPeriod?) { self.period = period }

  mutating func line(_ fields: ReportFields, number: Int) throws -> SettlementRow? {
    switch place {
    case .preamble:
      try preamble(fields, number: number)
      return nil
    case .table(let columns):
      guard ReportDay(utf8: fields[0]) != nil else {
        place = .footer(nil)
        try footer(fields, columns: nil, number: number)
        return nil
      }
      return try row(fields, columns, number: number)
    case .footer(let columns):
      try footer(fields, columns: columns, number: number)
      return nil
    }
  }

  func finished(isEnded: Bool) throws(ReportProblem) -> FinanceReport.Reading {
    switch place {
    case .preamble: throw ReportProblem("the report has no header")
    case .table: if reading.rows == 0, !isEnded { throw .cutHeader }
    case .footer: break
    }
    if let footerSums, footerSums != sums {
      throw ReportProblem("the sums by country below the rows are not those of the rows")
    }
    return reading
  }

  private mutating func preamble(_ fields: ReportFields, number: Int) throws(ReportProblem) {
    let name = ReportHeader.canonical(fields.shown(0))
    switch name {
    case "vendor name": reading.kind = .detail
    case "start date" where fields.count <= 3:
      reading.first = try fields.day(ReportColumn(name: "Start Date", position: 1))
    case "end date" where fields.count <= 3:
      reading.last = try fields.day(ReportColumn(name: "End Date", position: 1))
      if let first = reading.first, let last = reading.last { try check(first, last, number) }
    default:
      let header = ReportHeader(fields, line: number)
      reading.kind = header.has("Transaction Date") ? .detail : reading.kind
      let isDetail = reading.kind == .detail
      place = .table(
        Columns(
          sums: try SumColumns(header), share: try header.column("Partner Share"),
          sku: try header.column(isDetail ? "SKU" : "Vendor Identifier"),
          firstDate: try header.column(isDetail ? "Transaction Date" : "Start Date"),
          secondDate: try header.column(isDetail ? "Settlement Date" : "End Date")))
    }
  }

  private mutating func row(
    _ fields: ReportFields, _ columns: Columns, number: Int
  ) throws(ReportProblem) -> SettlementRow {
    let isDetail = reading.kind == .detail
    let (first, second) = (try fields.day(columns.firstDate), try fields.day(columns.secondDate))
    if !isDetail {
      reading.first = min(reading.first ?? first, first)
      reading.last = max(reading.last ?? second, second)
      try check(first, second, number)
    } else if let start = reading.first, let end = reading.last, second < start || second > end {
      throw ReportProblem(line: number, "Settlement Date \(second) lies outside of \(start) to \(end)")
    }
    let row = SettlementRow(
      transactionDay: isDetail ? first : nil, settlementDay: isDetail ? second : nil,
      sku: try fields.sku(columns.sku), country: try fields.identifier(columns.sums.country),
      quantity: try fields.decimal(columns.sums.quantity), partnerShare: try fields.decimal(columns.share),
      extendedShare: try fields.decimal(columns.sums.extended),
      currency: try fields.identifier(columns.sums.currency))
    reading.rows += 1
    let key = Place(country: row.country, currency: row.currency)
    total.add(row.quantity, row.extendedShare)
    sums[key, default: Sum()].add(row.quantity, row.extendedShare)
    return row
  }

  /// Reads totals, one per line, or the sums by country, which have their own header.
  private mutating func footer(_ fields: ReportFields, columns: SumColumns?, number: Int) throws(ReportProblem) {
    // Before 2010 Apple wrote `Total_Amount:x` without a tab.
    let words = fields.shown(0).split(separator: ":", maxSplits: 1).map(\.trimmed)
    let name = ReportHeader.canonical(words.first ?? "")
    let stated = words.count == 2 ? Millionths(words[1]) : Millionths(utf8: fields[1])
    switch name {
    case "total_rows": try compare(stated, Millionths(reading.rows), "Total_Rows", number)
    case "total_amount": try compare(stated, total.extended, "Total_Amount", number)
    case "total_units": try compare(stated, total.quantity, "Total_Units", number)
    case "country of sale":
      place = .footer(try SumColumns(ReportHeader(fields, line: number)))
      footerSums = [:]
    default:
      guard let columns else {
        throw ReportProblem(line: number, "“\(fields.shown(0))” is neither a date nor one of the totals")
      }
      let key = Place(
        country: try fields.identifier(columns.country), currency: try fields.identifier(columns.currency))
      let (quantity, extended) = (try fields.decimal(columns.quantity), try fields.decimal(columns.extended))
      footerSums?[key, default: Sum()].add(quantity, extended)
    }
  }

  private func compare(
    _ stated: Millionths?, _ counted: Millionths, _ name: String, _ number: Int
  ) throws(ReportProblem) {
    guard stated != counted else { return }
    throw ReportProblem(
      line: number, "\(name) is \(stated.map(\.description) ?? "no number"), the rows make \(counted)")
  }

  private func check(_ first: ReportDay, _ last: ReportDay, _ number: Int) throws(ReportProblem) {
    guard let period, period.first != first || period.last != last else { return }
    throw ReportProblem(
      line: number,
      """
      the file is of \(first) to \(last), but fiscal period \(period) is \(period.first) to \(period.last): \
      a fiscal period is no calendar month
      """)
  }
}
