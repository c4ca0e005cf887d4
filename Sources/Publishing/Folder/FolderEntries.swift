import CSystemCalls
import Foundation
import Glibc
import Run

/// An open directory. Operations apply to this directory even if its path changes meanwhile.
final class OpenDirectory {
  /// The name of an entry as bytes, because names need not be UTF-8.
  struct Name: Hashable {
    let bytes: [CChar]

    init(bytes: [CChar]) { self.bytes = bytes }

    init(_ text: String) { bytes = Array(text.utf8CString) }

    var text: String { bytes.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" } }
  }

  let path: String
  let descriptor: Int32

  /// nil, with `errno`, for anything but a directory; links are not followed.
  init?(_ path: String) {
    let opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    // Before `descriptor` is set, because `deinit` would then close it and overwrite `errno`.
    if opened < 0 { return nil }
    descriptor = opened
    self.path = path
  }

  deinit { close(descriptor) }

  /// All entries in byte order, or an error, because a missing entry would count as deleted.
  func names() throws(PublishingFailure) -> [Name] {
    // A duplicate, because the stream closes its descriptor.
    let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { throw PublishingFailure(path: path, code: errno) }
    guard let stream = fdopendir(copy) else {
      let code = errno
      close(copy)
      throw PublishingFailure(path: path, code: code)
    }
    defer { closedir(stream) }
    var names: [Name] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw PublishingFailure(path: path, code: errno) }
        break
      }
      let bytes = withUnsafePointer(to: &entry.pointee.d_name) { field in
        field.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) {
          Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1))
        }
      }
      if bytes != [46, 0], bytes != [46, 46, 0] { names.append(Name(bytes: bytes)) }
    }
    return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }

  func sha256(_ name: Name) -> String? {
    // Without O_NONBLOCK a named pipe would wait for its writer.
    let file = openat(descriptor, name.bytes, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    guard FileKind(mode: file_mode(file)) == .regular else { return nil }
    return Digest.sha256(descriptor: file)
  }

  func contains(_ name: Name) -> Bool { file_mode_at(descriptor, name.bytes) >= 0 }

  /// Removes a file; a missing one is no failure.
  func unlink(_ name: Name) throws(PublishingFailure) {
    try PublishingFailure.check(
      unlinkat(descriptor, name.bytes, 0) == 0 || errno == ENOENT, "\(path)/\(name.text)")
  }

  /// Moves an entry unless the new name is taken. Returns 0 or `errno`.
  func move(_ name: Name, to other: OpenDirectory, as newName: Name) -> Int32 {
    if file_rename_exclusively_at(descriptor, name.bytes, other.descriptor, newName.bytes) == 0 { return 0 }
    guard VolumeCalls.isUnsupported(errno) else { return errno }
    // A file system without exclusive renaming is checked beforehand.
    if other.contains(newName) { return EEXIST }
    return renameat(descriptor, name.bytes, other.descriptor, newName.bytes) == 0 ? 0 : errno
  }

  func synchronize() throws(PublishingFailure) { try PublishingFailure.check(fsync(descriptor) == 0, path) }
}

enum FileKind: Hashable {
  case directory, regular, link, other

  /// Does not follow links. nil, with `errno`, if the type cannot be read.
  init?(path: String) { self.init(mode: file_mode_at(AT_FDCWD, path)) }

  /// Does not follow links. Throws if it cannot be determined.
  static func isThere(_ path: String) throws(PublishingFailure) -> Bool {
    if FileKind(path: path) != nil { return true }
    guard errno == ENOENT || errno == ENOTDIR else { throw PublishingFailure(path: path, code: errno) }
    return false
  }

  fileprivate init?(mode: Int32) {
    guard mode >= 0 else { return nil }
    switch mode_t(mode) & S_IFMT {
    case S_IFDIR: self = .directory
    case S_IFREG: self = .regular
    case S_IFLNK: self = .link
    default: self = .other
    }
  }
}

/// Calls of the volume. Tests replace them by other volumes, and kill the process in between.
package struct VolumeCalls: Sendable {
  package var exchange: @Sendable (_ first: String, _ second: String) -> Int32 = { first, second in
    file_exchange(first, second) == 0 ? 0 : errno
  }
  package var step: @Sendable (_ what: String) throws -> Void = { _ in }

  package init() {}

  /// True if the system or file system does not support the call: NFS, CIFS and most of FUSE.
  static func isUnsupported(_ code: Int32) -> Bool { [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(code) }
}
