import Asking
import Foundation
import Publishing
import Reconciliation
import Reporting
import Run

extension OutcomeText {
  /// The document of `summary.json`, with the report's directory.
  package var json: String {
    get throws {
      let control = outcome.summary.control(outcome.totals)
      let document = SummaryDocument(
        totals: outcome.totals, summary: outcome.summary, control: control, asOf: outcome.asOf)
      return try MachineText.json(
        PlacedReport(
          document: document, directory: outcome.directory,
          held: outcome.held.isEmpty ? nil : outcome.held.map(\.description),
          dispatches: outcome.dispatches.isEmpty ? nil : outcome.dispatches))
    }
  }

  struct PlacedReport: Encodable {
    var document: SummaryDocument
    var directory: String?
    var held: [String]?
    var dispatches: [Dispatch]?

    private enum CodingKeys: String, CodingKey { case directory, held, dispatches }

    func encode(to encoder: any Encoder) throws {
      try document.encode(to: encoder)
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encodeIfPresent(directory, forKey: .directory)
      try container.encodeIfPresent(held, forKey: .held)
      try container.encodeIfPresent(dispatches, forKey: .dispatches)
    }
  }
}

/// The result of a re-check as text.
package struct RecheckText {
  private let summary: RecheckSummary

  package init(_ summary: RecheckSummary) { self.summary = summary }

  struct Document: Encodable {
    let due: Int
    let outcomes: [String: Int]
    let faults: [String: String]
    let endedEarly: String?
  }

  package var line: String {
    let outcomes = CheckOutcome.allCases.compactMap { outcome in
      summary.outcomes[outcome].map { "\($0) \(outcome.rawValue)" }
    }
    let answered = outcomes.isEmpty ? "Apple was not asked" : outcomes.joined(separator: ", ")
    let swept = summary.sweep.map { " \($0.notifications) notifications swept, \($0.facts) new facts." } ?? ""
    let short =
      (summary.owed > 0 ? " INCOMPLETE: Apple has not answered about \(summary.owed)." : "")
      + (summary.sweep?.isShort == true ? " INCOMPLETE: Apple's notification history was not read to its end." : "")
    return
      "\(summary.due) due: \(answered).\(swept)\(summary.incompleteReason.map { " Ended early: \($0)." } ?? "")\(short)"
  }

  package var json: String {
    get throws {
      try MachineText.json(
        Document(
          due: summary.due,
          outcomes: Dictionary(uniqueKeysWithValues: summary.outcomes.map { ($0.key.rawValue, $0.value) }),
          faults: summary.faults, endedEarly: summary.incompleteReason))
    }
  }
}

/// The doctor's diagnoses as text.
package enum DiagnosisText {
  struct Document: Encodable {
    let subject: String
    let ok: Bool
    let problem: String?
    let warning: String?
  }

  package static func line(_ diagnosis: Diagnosis) -> String {
    if let problem = diagnosis.problem { return "PROBLEM  \(diagnosis.subject): \(problem)" }
    if let warning = diagnosis.warning { return "warning  \(diagnosis.subject): \(warning)" }
    return "ok       \(diagnosis.subject)"
  }

  package static func json(_ diagnoses: [Diagnosis]) throws -> String {
    try MachineText.json(
      diagnoses.map {
        Document(subject: $0.subject, ok: $0.problem == nil, problem: $0.problem, warning: $0.warning)
      })
  }
}
