import Run

/// A run that cannot be shown, compared or forgotten.
package enum RunsError: RunEndingError, Equatable, CustomStringConvertible {
  case unknown(String)
  case ambiguous(String)
  case unfinished(String, exitStatus: Int32?)
  case forgotten(String)
  /// Later runs reported their changes against this one.
  case followed(String, by: String)

  package var exitStatus: ExitStatus {
    switch self {
    case .unknown, .unfinished, .forgotten: .nothingThere
    case .ambiguous, .followed: .usage
    }
  }

  package var description: String {
    switch self {
    case .unknown(let name):
      "there is no run \(name); night-audit runs lists all runs. Name a run by its ID or the first digits of it, a night "
        + "by its day, or the newest night as latest"
    case .ambiguous(let name): "several runs have IDs that begin with \(name); give more digits"
    case .unfinished(let name, let status):
      "run \(name) left no report (\(status.map { "it ended with \($0)" } ?? "it is still running, or was killed")); name "
        + "another one"
    case .followed(let name, let newest):
      "later runs are compared with run \(name), so it cannot be forgotten before them. Forget the newest run first: "
        + "night-audit runs forget \(newest)"
    case .forgotten(let name): "run \(name) was forgotten before: it left nothing that could be taken back"
    }
  }
}
