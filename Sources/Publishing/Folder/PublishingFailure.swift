import Glibc
import Run

/// A folder that cannot be written, or must not be. Exit status 73.
package struct PublishingFailure: EndsRun, Hashable, CustomStringConvertible {
  package var exitStatus: ExitStatus { .cannotWrite }
  /// The file or folder that it is about.
  package var path: String
  /// What is wrong with it, and what to do.
  package var problem: String

  package init(path: String, problem: String) {
    self.path = path
    self.problem = problem
  }

  /// - Parameter code: the system's error number.
  package init(path: String, code: Int32) {
    self.init(
      path: path, problem: "\(String(cString: strerror(code))); check the path, its owner and the free space")
  }

  package var description: String { "cannot write \(path): \(problem)" }
}
