import Foundation
import Reconciliation

package enum ReportFormat: String, Hashable, CaseIterable, Sendable {
  case csv
  /// Second files for a double click in Excel, `orders.excel.csv`. Implies ``csv``.
  case csvExcel = "csv-excel"
  case xlsx
  /// The general import of Stripe Revenue Recognition, `stripe-import.csv`. It implies ``csv``.
  case stripeImport = "stripe-import"
}

/// The place of a report, and the facts that are known before its first row.
package struct ReportOptions: Sendable {
  /// An empty directory, renamed into place after ``ReportWriter/finish(totals:summary:)``.
  package var directory: String
  package var period: Period
  /// `summary.json` and `SHA256SUMS` are always written.
  package var formats: Set<ReportFormat>
  /// `report.timeZone`: the zone of times in sheets. Times in CSV are UTC.
  package var timeZone: TimeZone
  /// The instant to which ages are counted, and the workbook's time of creation.
  package var asOf: Instant
  package var apps: [String]
  package var appNames: [String: String] = [:]
  /// Number of calls of ``ReportWriter/write(order:)``.
  package var ordersInPeriod: Int
  /// Number of calls of ``ReportWriter/write(receipt:)``.
  package var receiptsInScope: Int
  /// `report.workbookOrders`: up to this many orders or receipts, a sheet lists all of them.
  package var workbookOrders: Int
  package var excelLocale = ExcelLocale.unitedStates
  /// `report.pseudonymise`: pseudonyms of user IDs; nil shows the IDs.
  package var pseudonyms: Pseudonyms?

  package var hasTieOut = false

  /// True if `journal.accounts` is configured.
  package var hasJournal = false

  package init(
    directory: String, period: Period, formats: Set<ReportFormat>, timeZone: TimeZone, asOf: Instant,
    apps: [String], ordersInPeriod: Int, receiptsInScope: Int, workbookOrders: Int = 100_000
  ) {
    (self.directory, self.period, self.formats, self.timeZone, self.asOf) = (directory, period, formats, timeZone, asOf)
    (self.apps, self.ordersInPeriod, self.receiptsInScope) = (apps, ordersInPeriod, receiptsInScope)
    self.workbookOrders = workbookOrders
  }

  /// The zone's name. Foundation calls UTC by its older name, GMT.
  var zoneName: String { timeZone.identifier == "GMT" ? "UTC" : timeZone.identifier }

  var dimensions: ReportDimensions { ReportDimensions(apps: appNames, timeZone: timeZone) }

  var hasFiles: Bool { !formats.isDisjoint(with: [.csv, .csvExcel, .stripeImport]) }

  /// True if there is an HTML page: always, unless only CSV is wanted.
  var hasPage: Bool { !formats.isSubset(of: [.csv, .stripeImport]) }

  /// True if the sheet of orders has all of them, false if only those with findings.
  var listsAllOrders: Bool { ordersInPeriod <= workbookOrders }

  /// True if the sheet of receipts has all of them, false if only unverified ones.
  var listsAllReceipts: Bool { receiptsInScope <= workbookOrders }
}
