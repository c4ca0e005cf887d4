import Reconciliation
import Spreadsheet

/// The table of `findings.csv` outside of a report: the same columns in the same dialect.
package struct FindingsListing: ~Copyable {
  private var text = CSVText(capacity: 1 << 14)
  private let asOf: Instant

  /// A table with its header row.
  ///
  /// - Parameter asOf: what ages are counted to.
  package init(asOf: Instant) {
    self.asOf = asOf
    for column in ReportTable.findings.columns { text.text(column.name) }
    text.endRow()
  }

  /// Adds a row.
  package mutating func add(_ reported: ReportedFinding) {
    text.finding(reported, asOf: asOf)
    text.endRow()
  }

  /// All rows as UTF-8.
  package var bytes: [UInt8] { text.bytes }
}

/// What people fill in on the workbook's sheet of findings, for those who read it back.
package enum FindingsSheet {
  /// Its name for part 1, and the names of the sheets that carry it on.
  package static func name(part: Int) -> String { ReportTable.findings.sheetName(part: part).description }
  /// The heading of the ids.
  package static let key = "finding_id".asWords
  /// The headings of people's columns.
  package static let status = "status".asWords
  package static let owner = "owner".asWords
  package static let remark = "remark".asWords
}
