import CSystemCalls
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

  /// The name that it has for a moment before it gets its own: hidden, and without the ending that readers look for. Always
  /// the same, so that what a writer that was killed has left goes with the next one.
  private var draft: String { "\(directory)/.\((path as NSString).lastPathComponent).next" }

  /// Writes all of it, brings it to disk, and only then gives it its name.
  package func write(_ content: [UInt8]) throws(Failure) {
    if try !writeNameless(content) { try writeNamed(content) }
    let folder = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw Failure(path: directory, code: errno) }
    defer { close(folder) }
    guard fsync(folder) == 0 else { throw Failure(path: directory, code: errno) }
  }

  /// Has no name before it is whole.
  ///
  /// - Returns: false where the volume knows no such files; then nothing was done.
  private func writeNameless(_ content: [UInt8]) throws(Failure) -> Bool {
    let descriptor = file_open_nameless(directory, 0o644)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    guard fill(descriptor, content) else { throw Failure(path: path, code: errno) }
    while true {
      if file_name_nameless(descriptor, draft) == 0 {
        if rename(draft, path) == 0 { return true }
        // Whoever replaces the same file at the same time has put this one there, or taken it away.
        guard errno == ENOENT else {
          let code = errno
          unlink(draft)
          throw Failure(path: path, code: code)
        }
      } else {
        guard errno == EEXIST else { return false }
        guard unlink(draft) == 0 || errno == ENOENT else { throw Failure(path: draft, code: errno) }
      }
    }
  }

  private func writeNamed(_ content: [UInt8]) throws(Failure) {
    let temporary = "\(draft)-\(UUID().uuidString.lowercased())"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Failure(path: path, code: errno) }
    defer { close(descriptor) }
    guard fill(descriptor, content), rename(temporary, path) == 0 else {
      let code = errno
      unlink(temporary)
      throw Failure(path: path, code: code)
    }
  }

  private func fill(_ descriptor: Int32, _ content: [UInt8]) -> Bool {
    Glibc.write(descriptor, content, content.count) == content.count && fchmod(descriptor, 0o644) == 0
      && fsync(descriptor) == 0
  }
}
