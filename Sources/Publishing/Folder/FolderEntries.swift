import CSystemCalls
import Foundation
import Glibc
import Run

/// An open directory. What is done below it is done to the very directory, whatever becomes of its path meanwhile.
final class OpenDirectory {
  /// The name of an entry, byte by byte: people's files need not be UTF-8.
  struct Name: Hashable {
    let bytes: [CChar]

    init(bytes: [CChar]) { self.bytes = bytes }

    init(_ text: String) { bytes = Array(text.utf8CString) }

    var text: String { bytes.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" } }
  }

  let path: String
  let descriptor: Int32

  /// nil, with `errno`, when there is none: a link to a directory is no directory.
  init?(_ path: String) {
    let opened = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    // Before anything is kept: what is closed at the end would put its own error in the place of this one.
    if opened < 0 { return nil }
    descriptor = opened
    self.path = path
  }

  deinit { close(descriptor) }

  /// Its entries in the order of their bytes: all of them, or an error. What were not seen would count as not there.
  func names() throws(PublishingFailure) -> [Name] {
    // The stream closes its descriptor, hence another one.
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

  /// SHA-256 of a regular file as hexadecimal; nil for anything else.
  func sha256(_ name: Name) -> String? {
    // Without O_NONBLOCK a named pipe would wait for its writer.
    let file = openat(descriptor, name.bytes, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    guard FileKind(mode: file_mode(file)) == .regular else { return nil }
    return Digest.sha256(descriptor: file)
  }

  func contains(_ name: Name) -> Bool { file_mode_at(descriptor, name.bytes) >= 0 }

  /// Removes a file. 0 or the system's error number; what is gone already is no error.
  func unlink(_ name: Name) -> Int32 {
    unlinkat(descriptor, name.bytes, 0) == 0 || errno == ENOENT ? 0 : errno
  }

  /// Moves an entry into another directory unless its name is taken there. 0 or the system's error number.
  func move(_ name: Name, to other: OpenDirectory, as newName: Name) -> Int32 {
    if file_rename_exclusively_at(descriptor, name.bytes, other.descriptor, newName.bytes) == 0 { return 0 }
    guard VolumeCalls.isUnsupported(errno) else { return errno }
    // A file system that cannot refuse by itself is asked beforehand.
    if other.contains(newName) { return EEXIST }
    return renameat(descriptor, name.bytes, other.descriptor, newName.bytes) == 0 ? 0 : errno
  }

  /// Brings its entries to disk. 0 or the system's error number.
  func synchronize() -> Int32 { fsync(descriptor) == 0 ? 0 : errno }
}

/// What an entry of a directory is.
enum FileKind: Hashable {
  case directory, regular, link, other

  /// Of the entry itself; nil, with `errno`, when it cannot be seen.
  init?(path: String) { self.init(mode: file_mode_at(AT_FDCWD, path)) }

  /// Whether something is at a path, wherever a link leads.
  ///
  /// - Throws: where nobody can tell.
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

/// What a volume is asked to do with whole directories. Tests put other volumes in its place, and kill on the way.
package struct VolumeCalls: Sendable {
  /// Swaps two directories in one step. 0 or the system's error number.
  package var exchange: @Sendable (_ first: String, _ second: String) -> Int32 = { first, second in
    file_exchange(first, second) == 0 ? 0 : errno
  }
  /// Called before each step that can be seen from outside.
  package var step: @Sendable (_ what: String) throws -> Void = { _ in }

  package init() {}

  /// Whether the system, or this file system, does not know the call at all: NFS, CIFS and most of FUSE.
  static func isUnsupported(_ code: Int32) -> Bool { [EINVAL, ENOSYS, ENOTSUP, EOPNOTSUPP].contains(code) }
}
