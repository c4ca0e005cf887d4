import Run

/// An invalid setting, with the key, the expectation and the remedy. Exit status 78.
package struct ConfigurationError: RunEndingError, CustomStringConvertible {
  package var exitStatus: ExitStatus { .configuration }
  package var key: String
  /// The problem and the expectation; never a secret's value.
  package var problem: String

  package init(key: String, problem: String) { (self.key, self.problem) = (key, problem) }
  package var description: String { "\(key): \(problem)" }
}
