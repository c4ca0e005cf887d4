import Foundation
import Reconciliation

/// Findings outside of a report, in the columns and dialect of `findings.csv`.
package struct FindingsListing: ~Copyable {
  private var text = CSVText(capacity: 1 << 14)
  private let asOf: Instant
  private var dimensions: ReportDimensions

  package init(asOf: Instant, apps: [String: String], timeZone: TimeZone) {
    self.asOf = asOf
    dimensions = ReportDimensions(apps: apps, timeZone: timeZone)
    for column in FindingLine.columns { text.text(column.head.name) }
    text.endRow()
  }

  package mutating func add(_ reported: ReportedFinding) {
    let line = FindingLine(reported, asOf: asOf, in: &dimensions)
    for column in FindingLine.columns { text.put(column.cell(line), isId: column.head.type.isId) }
    text.endRow()
  }

  package mutating func takeText() -> String {
    defer { text.removeAll() }
    return text.withBytes { String(decoding: $0, as: UTF8.self) }
  }
}

/// The names of the workbook's sheet of findings, for reading entries back.
package enum FindingsSheet {
  /// Continuation sheets have a number: `Findings 2`.
  package static let name = "Findings"

  package static func isContinuation(_ sheet: String) -> Bool {
    sheet.hasPrefix(name + " ") && Int(sheet.dropFirst(name.count + 1)) != nil
  }

  package static let key = "finding_id".displayText
  package static let order = "order_id".displayText
  package static let kind = "kind".displayText
  package static let severity = "severity".displayText
  package static let amount = "amount".displayText
  package static let atStake = "at_stake".displayText
  package static let status = "status".displayText
  package static let owner = "owner".displayText
  package static let remark = "remark".displayText
  package static let due = "due".displayText
}
