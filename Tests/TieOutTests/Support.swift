import Gzip
import Reconciliation
import Testing

@testable import TieOut

struct SampleSales {
  static let columns = [
    "Provider", "SKU", "Product Type Identifier", "Units", "Developer Proceeds", "Begin Date", "End Date",
    "Customer Currency", "Country Code", "Currency of Proceeds", "Apple Identifier", "Customer Price",
    "Parent Identifier", "Subscription", "Device",
  ]

  var rows: [[String: String]] = []
  var columns = Self.columns

  mutating func add(
    _ sku: String = "gems60", type: String = "IA1", units: String = "1", proceeds: String = "0.70",
    day: String = "11/19/2026", country: String = "US", currency: String = "USD", price: String = "0.99",
    parent: String = "GAME01"
  ) {
    rows.append([
      "Provider": "APPLE", "SKU": sku, "Product Type Identifier": type, "Units": units, "Developer Proceeds": proceeds,
      "Begin Date": day, "End Date": day, "Customer Currency": currency, "Country Code": country,
      "Currency of Proceeds": currency, "Apple Identifier": "9900000001", "Customer Price": price,
      "Parent Identifier": parent, "Device": "iPhone",
    ])
  }

  var text: String {
    ([columns.joined(separator: "\t")] + rows.map { row in columns.map { row[$0] ?? "" }.joined(separator: "\t") })
      .joined(separator: "\n") + "\n"
  }

  var bytes: [UInt8] { Array(text.utf8) }

  static func read(_ bytes: [UInt8], day: String = "2026-11-19") throws -> [SalesRow] {
    var rows: [SalesRow] = []
    let day = try #require(ReportDay(day))
    _ = try SalesReport.read(bytes, days: day...day) { rows.append($0) }
    return rows
  }
}

func number(_ text: String) -> Millionths { Millionths(text) ?? Millionths(count: .min) }

func day(_ text: String) -> ReportDay { ReportDay("2026-" + text) ?? ReportDay(number: 0) }

func gzip(_ bytes: [UInt8]) throws -> [UInt8] { try #require(Gunzip.compressed(bytes)) }

/// Units in Apple's reports, of one price each.
func apple(
  _ day: ReportDay, _ units: Int = 1, kind: TieOutClass = .sale, country: Identifier = "US",
  currency: Identifier = "USD", price: Millionths = number("0.99")
) -> AppleUnits {
  AppleUnits(day: day, country: country, currency: currency, kind: kind, price: price, units: Millionths(units))
}

/// Units known here, of one price each.
func ours(
  _ day: ReportDay, _ units: Int = 1, kind: TieOutClass = .sale, country: Identifier? = "US",
  currency: Identifier? = "USD", price: Millionths? = number("0.99")
) -> OurUnits {
  OurUnits(
    day: day, country: country, currency: currency, kind: kind,
    price: price.flatMap { $0.times(Millionths(abs(units))) }, units: units)
}

extension DayCoverage {
  /// All days are compared, printed and final.
  static func whole(_ days: ClosedRange<ReportDay>) -> DayCoverage {
    DayCoverage(days: days, compared: days, printed: days) { _ in .final }
  }
}
