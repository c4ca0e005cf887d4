/// A setting that cannot be used: which key, what was expected, what to do. Exit status 78.
package struct ConfigurationError: EndsRun, CustomStringConvertible {
  package var exitStatus: ExitStatus { .configuration }
  /// The key as it is written in the file, or the file itself.
  package var key: String
  /// What is wrong and what was expected; never a secret's value.
  package var problem: String

  package init(key: String, problem: String) {
    self.key = key
    self.problem = problem
  }

  package var description: String { "\(key): \(problem)" }
}
