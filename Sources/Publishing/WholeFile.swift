import CSystemCalls
import Foundation
import Glibc

/// A file that is replaced atomically, readable by everybody because its readers are other users.
package struct WholeFile {
  package let path: String

  /// `code` is `errno`.
  package struct Failure: Error {
    package var path: String
    package var code: Int32
  }

  package init(path: String) { self.path = path }

  private var directory: String {
    let directory = (path as NSString).deletingLastPathComponent
    return directory.isEmpty ? "." : directory
  }

  /// Always the same, so that the next writer replaces the leftover of a killed one. Readers ignore it.
  private var draft: String { "\(directory)/.\((path as NSString).lastPathComponent).next" }

  package func write(_ content: [UInt8]) throws(Failure) {
    if try !writeUnnamedFile(content) { try writeNamed(content) }
    guard directory_synchronize(directory) == 0 else { throw Failure(path: directory, code: errno) }
  }

  /// Writes an unnamed file. Returns false, without any change, if the volume does not support one.
  private func writeUnnamedFile(_ content: [UInt8]) throws(Failure) -> Bool {
    let descriptor = file_open_nameless(directory, 0o644)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    guard file_write_durably(descriptor, content, content.count, 0o644) == 0 else {
      throw Failure(path: path, code: errno)
    }
    while true {
      if file_name_nameless(descriptor, draft) == 0 {
        if rename(draft, path) == 0 { return true }
        // A concurrent writer has renamed or removed the temporary file.
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
    guard file_write_durably(descriptor, content, content.count, 0o644) == 0, rename(temporary, path) == 0 else {
      let code = errno
      unlink(temporary)
      throw Failure(path: path, code: code)
    }
  }
}
