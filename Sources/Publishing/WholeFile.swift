import Foundation
import Glibc

/// A file that is replaced in one step: its reader sees the old content or the new one, and either whole.
///
/// Readable by everybody, whatever the umask, because its reader is another user than its writer.
package struct WholeFile {
  package let path: String

  /// What could not be written, with the system's error number.
  package struct Failure: Error {
    package var path: String
    package var code: Int32
  }

  package init(path: String) { self.path = path }

  private var directory: String {
    let directory = (path as NSString).deletingLastPathComponent
    return directory.isEmpty ? "." : directory
  }

  /// Where it is written until it is whole: hidden, and without the ending that readers look for. Always the same, so that
  /// what a writer that was killed has left is what the next one begins with.
  private var draft: String { "\(directory)/.\((path as NSString).lastPathComponent).next" }

  /// Writes all of it, brings it to disk, and only then gives it its name.
  package func write(_ content: [UInt8]) throws(Failure) {
    let descriptor = try openDraft()
    defer { close(descriptor) }
    guard ftruncate(descriptor, 0) == 0, Glibc.write(descriptor, content, content.count) == content.count,
      fchmod(descriptor, 0o644) == 0, fsync(descriptor) == 0, rename(draft, path) == 0
    else {
      let code = errno
      unlink(draft)
      throw Failure(path: path, code: code)
    }
    let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw Failure(path: directory, code: errno) }
    defer { close(folder) }
    guard fsync(folder) == 0 else { throw Failure(path: directory, code: errno) }
  }

  /// The draft, locked against everybody else who replaces the same file.
  private func openDraft() throws(Failure) -> Int32 {
    while true {
      var descriptor = open(draft, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o644)
      if descriptor < 0, errno == EACCES || errno == ELOOP {
        // Another user's, who was killed.
        unlink(draft)
        descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
      }
      guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
      // Where there are no locks, two may write at once; one of them has its way.
      _ = flock(descriptor, LOCK_EX)
      var mine = stat()
      var there = stat()
      // Whoever held the lock before has made the draft the file, and there is another one now, or none.
      if fstat(descriptor, &mine) == 0, lstat(draft, &there) == 0, mine.st_ino == there.st_ino { return descriptor }
      close(descriptor)
    }
  }
}
