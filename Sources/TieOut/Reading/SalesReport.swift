import Reconciliation

/// A row of a SALES SUMMARY report. A product and country has one row for each combination of the other columns.
package struct SalesRow: Hashable, Sendable {
  package var sku: Identifier
  /// The SKU of the app; empty for an app.
  package var parent: Identifier
  package var type: Identifier
  package var units: Millionths
  /// For one unit, positive for refunds too.
  package var developerProceeds: Millionths
  package var first: ReportDay
  package var last: ReportDay
  package var customerCurrency: Identifier
  /// Alpha-2 code of the storefront.
  package var country: Identifier
  package var proceedsCurrency: Identifier
  /// For one unit, negative for refunds.
  package var customerPrice: Millionths
  package var isRenewal: Bool
}

/// Reads SALES SUMMARY reports by column names.
package enum SalesReport {
  package struct Reading: Hashable, Sendable {
    package var rows = 0
    /// Columns that this version does not know, sorted.
    package var unknownColumns: [String] = []
  }

  /// Reads a whole report. `body` receives rows before the rest is known to be readable; discard them on an error. A
  /// report with dates outside `days` is rejected.
  package static func read(
    _ bytes: [UInt8], days: ClosedRange<ReportDay>?, _ body: (SalesRow) throws -> Void
  ) throws -> Reading {
    var columns: Columns?
    var reading = Reading()
    var ends: [Int] = []
    let isEnded = try ReportLines.read(bytes) { line, number in
      let fields = try ReportFields(line, number: number, ends: &ends)
      guard let columns else {
        let header = ReportHeader(fields, line: number)
        columns = try Columns(header)
        reading.unknownColumns = header.unknown(besides: known)
        return
      }
      let row = try columns.row(fields, number: number)
      guard row.first <= row.last else {
        throw ReportProblem(line: number, "ends on \(row.last), before it begins on \(row.first)")
      }
      if let days, row.first < days.lowerBound || row.last > days.upperBound {
        throw ReportProblem(
          line: number, "is of \(row.first) to \(row.last), requested were \(days.lowerBound) to \(days.upperBound)")
      }
      reading.rows += 1
      try body(row)
    }
    guard columns != nil else { throw ReportProblem("the report has no header") }
    if reading.rows == 0, !isEnded { throw ReportProblem.cutHeader }
    return reading
  }

  package static func isHeader(_ line: String) -> Bool {
    Set(ReportHeader.names(in: line)).isSuperset(of: ["sku", "units", "product type identifier", "begin date"])
  }

  private struct Columns {
    var sku, parent, type, units, proceeds, first, last, currency, country, proceedsCurrency, price: ReportColumn
    var subscription: Int?

    init(_ header: ReportHeader) throws(ReportProblem) {
      sku = try header.column("SKU")
      parent = try header.column("Parent Identifier")
      type = try header.column("Product Type Identifier")
      units = try header.column("Units")
      proceeds = try header.column("Developer Proceeds", "Developer Proceeds (per unit)")
      first = try header.column("Begin Date")
      last = try header.column("End Date")
      currency = try header.column("Customer Currency")
      country = try header.column("Country Code")
      proceedsCurrency = try header.column("Currency of Proceeds")
      price = try header.column("Customer Price")
      subscription = header.optional("Subscription")
    }

    func row(_ fields: ReportFields, number: Int) throws(ReportProblem) -> SalesRow {
      let row = SalesRow(
        sku: try fields.sku(sku), parent: try fields.identifier(parent), type: try fields.identifier(type),
        units: try fields.decimal(units), developerProceeds: try fields.decimal(proceeds),
        first: try fields.day(first), last: try fields.day(last), customerCurrency: try fields.identifier(currency),
        country: try fields.identifier(country), proceedsCurrency: try fields.identifier(proceedsCurrency),
        customerPrice: try fields.decimal(price),
        isRenewal: subscription.map { fields[$0].elementsEqual("Renewal".utf8) } ?? false)
      if row.sku.isEmpty { throw fields.problem(sku, "a product id or an app's SKU") }
      if row.units.times(row.customerPrice) == nil || row.units.times(row.developerProceeds) == nil {
        throw ReportProblem(line: number, "Units times price has more digits than money has")
      }
      return row
    }
  }

  private static let known: Set<String> = Set(
    [
      "Provider", "Provider Country", "SKU", "Developer", "Title", "Version", "Product Type Identifier", "Units",
      "Developer Proceeds", "Developer Proceeds (per unit)", "Begin Date", "End Date", "Customer Currency",
      "Country Code", "Currency of Proceeds", "Apple Identifier", "Customer Price", "Promo Code", "Parent Identifier",
      "Subscription", "Period", "Category", "CMB", "Device", "Supported Platforms", "Proceeds Reason",
      "Preserved Pricing", "Client", "Order Type", "Contingent App Name",
    ].map(ReportHeader.canonical))
}

extension StringProtocol {
  var trimmed: String { String(drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()) }
}
