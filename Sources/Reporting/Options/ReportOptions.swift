import Foundation
import Reconciliation

/// A form in which the rows of a report are written.
package enum ReportFormat: String, Hashable, CaseIterable, Sendable {
  /// Comma-separated values, one file for each table.
  case csv
  /// A twin of each of these files for a double click in Excel, `orders.excel.csv`. They imply ``csv``.
  case csvExcel = "csv-excel"
  /// One workbook.
  case xlsx
}

/// Where a report goes and what is known about it before its first row.
package struct ReportOptions: Sendable {
  /// An empty directory; the caller renames it into place after ``ReportWriter/finish(totals:summary:)``.
  package var directory: String
  /// What it is about: part of the workbook's name and title.
  package var period: ReportPeriod
  /// `summary.json` and `SHA256SUMS` are written whatever the formats.
  package var formats: Set<ReportFormat>
  /// `report.timeZone`: the zone of times in sheets. Times in CSV are UTC.
  package var timeZone: TimeZone
  /// What ages are counted to, and the workbook's time of creation.
  package var asOf: Instant
  /// The audited apps, for people: one text each.
  package var apps: [String]
  /// The configured names of the apps, by bundle ID.
  package var appNames: [String: String] = [:]
  /// Orders that ``ReportWriter/write(order:)`` will be called for.
  package var ordersInPeriod: Int
  /// Receipts that ``ReportWriter/write(receipt:)`` will be called for.
  package var receiptsInScope: Int
  /// `report.workbookOrders`: up to that many orders, or receipts, a sheet holds them all.
  package var workbookOrders: Int
  /// `report.excelLocale`: how the files for Excel separate values.
  package var excelLocale = ExcelLocale.unitedStates
  /// `report.pseudonymise`: what stands for the ids of users; nil: they stand for themselves.
  package var pseudonyms: Pseudonyms?

  /// Whether the tie-out is configured: only then it has files and sheets.
  package var hasTieOut = false

  /// Options of one report.
  package init(
    directory: String, period: ReportPeriod, formats: Set<ReportFormat>, timeZone: TimeZone, asOf: Instant,
    apps: [String],
    ordersInPeriod: Int, receiptsInScope: Int, workbookOrders: Int = 100_000
  ) {
    self.directory = directory
    self.period = period
    self.formats = formats
    self.timeZone = timeZone
    self.asOf = asOf
    self.apps = apps
    self.ordersInPeriod = ordersInPeriod
    self.receiptsInScope = receiptsInScope
    self.workbookOrders = workbookOrders
  }

  /// The zone's name for people. Foundation calls UTC by its older name.
  var zoneName: String { timeZone.identifier == "GMT" ? "UTC" : timeZone.identifier }

  /// What rows are grouped by.
  var dimensions: ReportDimensions { ReportDimensions(apps: appNames, timeZone: timeZone) }

  /// Whether there are CSV files.
  var hasFiles: Bool { formats.contains(.csv) || formats.contains(.csvExcel) }

  /// Whether there is a page to look at: always, unless only CSV is wanted.
  var hasPage: Bool { formats != [.csv] }

  /// Whether the sheet of orders holds them all, or only those with findings.
  var listsAllOrders: Bool { ordersInPeriod <= workbookOrders }

  /// Whether the sheet of receipts holds them all, or only those that are not verified.
  var listsAllReceipts: Bool { receiptsInScope <= workbookOrders }
}
