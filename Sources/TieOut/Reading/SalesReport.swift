import Reconciliation

/// One row of a SALES SUMMARY report: one combination of its non-numeric columns and prices, so that the same product and
/// country has several.
package struct SalesRow: Hashable, Sendable {
  /// Of an in-app purchase the product id, of an app its SKU.
  package var sku: Identifier
  /// Of an in-app purchase the SKU of its app; else empty.
  package var parent: Identifier
  package var type: Identifier
  package var units: Millionths
  /// For one unit, positive on refunds, too.
  package var developerProceeds: Millionths
  package var first: ReportDay
  package var last: ReportDay
  package var customerCurrency: Identifier
  /// Alpha-2 code of the storefront.
  package var country: Identifier
  package var proceedsCurrency: Identifier
  /// For one unit, negative on refunds.
  package var customerPrice: Millionths
  /// Apple's word in the column `Subscription`.
  package var isRenewal: Bool

  package var kind: SalesRowKind { SalesRowKind(code: type, hasParent: !parent.isEmpty) }

  /// What customers paid: the sign is that of the units, for the price of a refund is negative already.
  package var customerAmount: Millionths { units.times(customerPrice.magnitude) ?? .zero }
  package var proceeds: Millionths { units.times(developerProceeds) ?? .zero }
}

/// Reads SALES SUMMARY reports by the names of their columns.
package enum SalesReport {
  /// What was seen beside the rows.
  package struct Reading: Hashable, Sendable {
    package var rows = 0
    /// Columns that nobody knows, in alphabetical order.
    package var unknownColumns: [String] = []
  }

  /// Reads a whole report.
  ///
  /// - Parameters:
  ///   - bytes: as they were downloaded.
  ///   - days: those that were asked for; a row with other dates makes it another report.
  ///   - body: gets the rows as they come, before anybody knows whether the rest can be read.
  /// - Throws: `ReportProblem` or `GunzipError`; then nothing of what was handed on counts.
  package static func read(
    _ bytes: [UInt8], days: ClosedRange<ReportDay>?, _ body: (SalesRow) throws -> Void
  ) throws -> Reading {
    var columns: Columns?
    var reading = Reading()
    var ends: [Int] = []
    try ReportLines.read(bytes) { line, number in
      let fields = ReportFields(line, number: number, ends: &ends)
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
          line: number, "is of \(row.first) to \(row.last), asked was for \(days.lowerBound) to \(days.upperBound)")
      }
      reading.rows += 1
      try body(row)
    }
    guard columns != nil else { throw ReportProblem("the report has no header") }
    return reading
  }

  /// Whether a first line is the header of such a report.
  package static func isHeader(_ line: String) -> Bool {
    let names = Set(line.split(separator: "\t").map { ReportHeader.canonical($0.trimmed) })
    return names.isSuperset(of: ["sku", "units", "product type identifier", "begin date"])
  }

  private struct Columns {
    var sku, parent, type, units, proceeds, first, last, currency, country, proceedsCurrency, price: Int
    var subscription: Int?

    init(_ header: ReportHeader) throws(ReportProblem) {
      sku = try header.position("SKU")
      parent = try header.position("Parent Identifier")
      type = try header.position("Product Type Identifier")
      units = try header.position("Units")
      proceeds = try header.position("Developer Proceeds", "Developer Proceeds (per unit)")
      first = try header.position("Begin Date")
      last = try header.position("End Date")
      currency = try header.position("Customer Currency")
      country = try header.position("Country Code")
      proceedsCurrency = try header.position("Currency of Proceeds")
      price = try header.position("Customer Price")
      subscription = header.optional("Subscription")
    }

    func row(_ fields: ReportFields, number: Int) throws(ReportProblem) -> SalesRow {
      let row = SalesRow(
        sku: try fields.sku(sku), parent: try fields.identifier(parent, "Parent Identifier"),
        type: try fields.identifier(type, "Product Type Identifier"), units: try fields.decimal(units, "Units"),
        developerProceeds: try fields.decimal(proceeds, "Developer Proceeds"),
        first: try fields.day(first, "Begin Date"), last: try fields.day(last, "End Date"),
        customerCurrency: try fields.identifier(currency, "Customer Currency"),
        country: try fields.identifier(country, "Country Code"),
        proceedsCurrency: try fields.identifier(proceedsCurrency, "Currency of Proceeds"),
        customerPrice: try fields.decimal(price, "Customer Price"),
        isRenewal: subscription.map { fields[$0].elementsEqual("Renewal".utf8) } ?? false)
      if row.sku.isEmpty { throw fields.problem(sku, "SKU", "a product id or an app's SKU") }
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
