import Glibc
import Run

/// A folder that cannot or must not be written. Exit status 73.
package struct PublishingFailure: RunEndingError, Hashable, CustomStringConvertible {
  package var exitStatus: ExitStatus { .cannotWrite }
  package var path: String
  package var problem: String
  /// True for a condition that may pass: a full disk, a failing volume, a link that the operator removes.
  package var isOfVolume = false

  package init(path: String, problem: String) { (self.path, self.problem) = (path, problem) }

  /// A folder whose run, `run` in `run.json`, this database does not know.
  init(path: String, foreignRunID run: String?) {
    let maker = run.map { "of run \($0), which this database does not know" } ?? "whose run.json names no run"
    self.init(
      path: path,
      problem:
        "holds a report \(maker), and nothing there was touched. If another installation writes there, give each its "
        + "own report.directory. If this database was restored from a backup, run once: night-audit run --adopt. "
        + "Otherwise move the folder away")
  }

  /// A link in place of `held` or `ad-hoc`. A report that waits there is published once the link is gone.
  init(link path: String) {
    self.init(
      path: path,
      problem: "is a link, and nothing was written through it; replace it by a directory. To keep reports on another "
        + "volume, make report.directory itself the link")
    isOfVolume = true
  }

  package init(path: String, code: Int32) {
    self.init(
      path: path, problem: "\(String(cString: strerror(code))); check the path, its owner and the free space")
    isOfVolume = [
      EACCES, EDQUOT, EIO, EMFILE, ENFILE, ENODEV, ENOMEM, ENOSPC, ENXIO, EPERM, EROFS, ESTALE, ETIMEDOUT,
    ].contains(code)
  }

  package var description: String { "cannot write \(path): \(problem)" }

  /// Throws the problem in `errno` unless the system call has succeeded.
  static func check(_ hasSucceeded: Bool, _ path: @autoclosure () -> String) throws(PublishingFailure) {
    if !hasSucceeded { throw PublishingFailure(path: path(), code: errno) }
  }
}
