import Asking
import Auditing
import Publishing
import Reconciliation
import Reporting
import Run

extension NightOutcome {
  /// The document of `summary.json`, with the report's directory.
  package var document: PlacedReport {
    PlacedReport(
      document: SummaryDocument(
        totals: self.totals, summary: self.summary, control: self.summary.control(self.totals),
        asOf: asOf),
      directory: self.directory, held: self.held.isEmpty ? nil : self.held.map(\.description),
      dispatches: dispatches.isEmpty ? nil : dispatches)
  }

  package struct PlacedReport: Encodable {
    var document: SummaryDocument
    var directory: String?
    var held: [String]?
    var dispatches: [Dispatch]?

    private enum CodingKeys: String, CodingKey { case directory, held, dispatches }

    package func encode(to encoder: any Encoder) throws {
      try document.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(directory, forKey: .directory)
      try container.encodeIfPresent(held, forKey: .held)
      try container.encodeIfPresent(dispatches, forKey: .dispatches)
    }
  }
}

package struct RecheckDocument: Encodable {
  let due: Int
  let outcomes: [String: Int]
  let faults: [String: String]
  let endedEarly: String?

  package init(_ summary: RecheckSummary) {
    due = summary.due
    outcomes = Dictionary(uniqueKeysWithValues: summary.outcomes.map { ($0.key.rawValue, $0.value) })
    faults = summary.faults
    endedEarly = summary.incompleteReason
  }
}

extension RecheckSummary {
  package var line: String {
    let counts = CheckOutcome.allCases.compactMap { outcome in outcomes[outcome].map { "\($0) \(outcome.rawValue)" } }
    let answered = counts.isEmpty ? "Apple was not asked" : counts.joined(separator: ", ")
    let swept =
      sweep.map { " \(counted($0.notifications, "notification")) swept, \(counted($0.facts, "new fact"))." } ?? ""
    let short =
      (owed > 0 ? " INCOMPLETE: Apple has not answered about \(owed)." : "")
      + (sweep?.isShort == true ? " INCOMPLETE: Apple's notification history was not read to its end." : "")
    return "\(due) due: \(answered).\(swept)\(incompleteReason.map { " Ended early: \($0)." } ?? "")\(short)"
  }
}
