import Reconciliation
import Run

package struct Diagnosis: Sendable {
  package struct Document: Encodable {
    let subject: String
    let ok: Bool
    let problem: String?
    let warning: String?
  }

  package var subject: String
  /// The fault and its remedy; nil for none.
  package var problem: String?
  /// A defect that nights can live with, and its remedy; nil for none.
  package var warning: String?
  var holdsNight = false
  /// Exit status of a run that meets the problem.
  package var status = ExitStatus.configuration

  static func fine(_ subject: String) -> Diagnosis { Diagnosis(subject: subject) }

  package static func problem(_ subject: String, _ text: String, _ status: ExitStatus = .configuration) -> Diagnosis {
    Diagnosis(subject: subject, problem: text, status: status)
  }

  static func warning(_ subject: String, _ text: String) -> Diagnosis { Diagnosis(subject: subject, warning: text) }

  package var isFine: Bool { problem == nil && warning == nil }

  package var document: Document { Document(subject: subject, ok: problem == nil, problem: problem, warning: warning) }

  package var line: String {
    if let problem { return "PROBLEM  \(subject): \(problem)" }
    return warning.map { "warning  \(subject): \($0)" } ?? "ok       \(subject)"
  }
}

extension Diagnosis {
  /// A problem if a night would be held, else a warning. `kind` is the finding on each differing row.
  init(subject: String, held: Bool, because: String, kind: FindingKind? = nil, remedy: String, examples: [String]) {
    let effect = kind.map { " (\(held ? "a night would be held, " : "")each would be \($0.rawValue))" } ?? ""
    let text =
      "\(because)\(effect); \(remedy)" + (examples.isEmpty ? "" : ". Examples: \(examples.joined(separator: "; "))")
    self.init(subject: subject, problem: held ? text : nil, warning: held ? nil : text)
    holdsNight = held
  }
}
