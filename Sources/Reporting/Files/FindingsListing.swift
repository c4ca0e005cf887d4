import Foundation
import Reconciliation

/// The table of `findings.csv` outside of a report: the same columns in the same dialect.
package struct FindingsListing: ~Copyable {
  private var text = CSVText(capacity: 1 << 14)
  private let asOf: Instant
  private var dimensions: ReportDimensions

  /// A table with its header row.
  ///
  /// - Parameters:
  ///   - asOf: what ages are counted to.
  ///   - apps: the configured names by bundle ID.
  package init(asOf: Instant, apps: [String: String], timeZone: TimeZone) {
    self.asOf = asOf
    dimensions = ReportDimensions(apps: apps, timeZone: timeZone)
    for column in FindingLine.columns { text.text(column.head.name) }
    text.endRow()
  }

  /// Adds a row.
  package mutating func add(_ reported: ReportedFinding) {
    let line = FindingLine(reported, asOf: asOf, in: &dimensions)
    for column in FindingLine.columns { text.put(column.cell(line), isId: column.head.type.isId) }
    text.endRow()
  }

  /// Takes the rows that were added since the last call.
  package mutating func takeText() -> String {
    defer { text.removeAll() }
    return text.withBytes { String(decoding: $0, as: UTF8.self) }
  }
}

/// What people fill in on the workbook's sheet of findings, for those who read it back.
package enum FindingsSheet {
  /// Its name. Sheets that carry it on have it with a number behind: `Findings 2`.
  package static let name = "Findings"

  /// Whether a sheet is one of those that carry the first one on.
  package static func isContinuation(_ sheet: String) -> Bool {
    sheet.hasPrefix(name + " ") && Int(sheet.dropFirst(name.count + 1)) != nil
  }

  /// The heading of the ids.
  package static let key = "finding_id".asWords
  /// The heading of what shows which deal a row is about.
  package static let order = "order_id".asWords
  /// The headings of people's columns.
  package static let status = "status".asWords
  package static let owner = "owner".asWords
  package static let remark = "remark".asWords
  package static let due = "due".asWords
}
