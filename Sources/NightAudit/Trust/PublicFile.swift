import Foundation
import Glibc

/// A file that every user of the machine may read, whatever the umask: certificates are no secret, and the service runs as
/// another user than the one who installs them.
enum PublicFile {
  /// Makes the directory and those above it, mode 0755, unless it is there.
  static func makeDirectory(_ path: String) throws(RootInstallationError) {
    guard !FileManager.default.fileExists(atPath: path) else { return }
    let parent = (path as NSString).deletingLastPathComponent
    if !parent.isEmpty, parent != path { try makeDirectory(parent) }
    guard mkdir(path, 0o755) == 0 || errno == EEXIST, chmod(path, 0o755) == 0 else {
      throw .cannotWrite(path: path, code: errno)
    }
  }

  /// Writes the whole file under another name, brings it to disk, and only then gives it its name, in place of what may
  /// be there.
  static func write(_ content: [UInt8], to path: String) throws(RootInstallationError) {
    let name = (path as NSString).lastPathComponent
    let directory = (path as NSString).deletingLastPathComponent
    // Hidden, so that whoever reads the directory meanwhile passes it over.
    let temporary = "\(directory)/.\(name)-\(getpid())"
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .cannotWrite(path: path, code: errno) }
    let isWritten =
      Glibc.write(descriptor, content, content.count) == content.count && fchmod(descriptor, 0o644) == 0
      && fsync(descriptor) == 0
    let code = errno
    close(descriptor)
    guard isWritten else {
      unlink(temporary)
      throw .cannotWrite(path: path, code: code)
    }
    guard rename(temporary, path) == 0 else {
      let code = errno
      unlink(temporary)
      throw .cannotWrite(path: path, code: code)
    }
    try synchronize(directory)
  }

  private static func synchronize(_ directory: String) throws(RootInstallationError) {
    let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .cannotWrite(path: directory, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .cannotWrite(path: directory, code: errno) }
  }
}
