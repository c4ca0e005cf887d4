import Glibc
import Run

/// A folder that cannot be written, or must not be. Exit status 73.
package struct PublishingFailure: EndsRun, Hashable, CustomStringConvertible {
  package var exitStatus: ExitStatus { .cannotWrite }
  /// The file or folder that it is about.
  package var path: String
  /// What is wrong with it, and what to do.
  package var problem: String
  /// Whether it may be otherwise later: a full disk, a volume that fails.
  package var isOfVolume = false

  package init(path: String, problem: String) {
    self.path = path
    self.problem = problem
  }

  /// A folder that a run made of which this database knows nothing.
  ///
  /// - Parameter run: the run that its `run.json` names; nil without one.
  init(path: String, strangeRun run: String?) {
    let maker = run.map { "of run \($0), which this database does not know" } ?? "whose run.json names no run"
    self.init(
      path: path,
      problem:
        "holds a report \(maker), and nothing there was touched. If another installation writes there, give each its "
        + "own report.directory. If this database was restored from a backup, run once: night-audit run --adopt. "
        + "Otherwise move the folder away")
  }

  /// - Parameter code: the system's error number.
  package init(path: String, code: Int32) {
    self.init(
      path: path, problem: "\(String(cString: strerror(code))); check the path, its owner and the free space")
    isOfVolume = [
      EACCES, EDQUOT, EIO, EMFILE, ENFILE, ENODEV, ENOMEM, ENOSPC, ENXIO, EPERM, EROFS, ESTALE, ETIMEDOUT,
    ].contains(code)
  }

  package var description: String { "cannot write \(path): \(problem)" }
}
