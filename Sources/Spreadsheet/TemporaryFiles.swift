import CXLSXWriter
import Glibc
import Synchronization

/// The temporary files of one workbook, in the directory it was given and nowhere else.
///
/// libxlsxwriter 1.1.4 falls back to `$TMPDIR`, `/tmp` and `.` without a word, ignores every failed write to and read
/// from a temporary file (a full disk then gives a truncated sheet and return code 0), and leaves files open when a
/// workbook is abandoned. Its `lxw_tmpfile` is "a thin wrapper so it can be over-ridden with a user defined version"
/// (utility.c): the function below takes its place, and its streams report here.
final class TemporaryFiles: Sendable {
  let directory: String

  private struct State {
    var firstError: Int32?
    var hasOpened = false
    /// Addresses of open `FILE`s by the identity of their stream.
    var open: [ObjectIdentifier: UInt] = [:]
  }
  private let state = Mutex(State())

  /// By the address of the directory name inside the library's workbook, the only thing that it hands over.
  private static let byWorkbook = Mutex<[UInt: TemporaryFiles]>([:])

  init(directory: String) {
    self.directory = directory
  }

  /// `errno` of the first failure, nil as long as every byte arrived.
  var firstError: Int32? { state.withLock { $0.firstError } }

  /// Whether the library has come here at all. Without, a truncated file would pass.
  var areUsed: Bool { state.withLock { $0.hasOpened } }

  func attach(to key: UInt) {
    Self.byWorkbook.withLock { $0[key] = self }
  }

  static func detach(from key: UInt) {
    byWorkbook.withLock { $0[key] = nil }
  }

  fileprivate static func files(for key: UInt) -> TemporaryFiles? {
    byWorkbook.withLock { $0[key] }
  }

  /// Closes what the library has left open; only once the library is done with the workbook.
  func closeAll() {
    // Closing calls back into `forget`, which takes the lock.
    let left = state.withLock { Array($0.open.values) }
    for address in left {
      if let file = unsafe UnsafeMutablePointer<FILE>(bitPattern: address) { unsafe fclose(file) }
    }
  }

  /// A stream over a file that has no name any more: it is gone when it is closed, or when the process dies.
  fileprivate func open() -> UnsafeMutablePointer<FILE>? {
    // mkstemp(3) puts letters of its own in the place of the six.
    var path = Array("\(directory)/workbook.XXXXXX".utf8CString)
    let descriptor = unsafe mkstemp(&path)
    guard descriptor >= 0 else {
      record(errno)
      return nil
    }
    _ = unsafe unlink(path)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    let stream = TemporaryStream(descriptor: descriptor, files: self)
    let cookie = unsafe Unmanaged.passRetained(stream)
    guard let file = unsafe open_custom_stream(cookie.toOpaque(), "w+", TemporaryStream.functions) else {
      record(errno)
      unsafe cookie.release()
      return nil
    }
    state.withLock { state in
      state.hasOpened = true
      state.open[ObjectIdentifier(stream)] = UInt(bitPattern: file)
    }
    return unsafe file
  }

  fileprivate func record(_ error: Int32) {
    state.withLock { if $0.firstError == nil { $0.firstError = error } }
  }

  fileprivate func forget(_ stream: TemporaryStream) {
    state.withLock { $0.open[ObjectIdentifier(stream)] = nil }
  }
}

/// One open temporary file. The C stream owns it and releases it in its close callback.
private final class TemporaryStream: Sendable {
  let descriptor: Int32
  let files: TemporaryFiles

  init(descriptor: Int32, files: TemporaryFiles) {
    self.descriptor = descriptor
    self.files = files
  }

  deinit {
    close(descriptor)
  }

  /// fopencookie(3): read returns -1 and write returns 0 on an error.
  static var functions: custom_stream_functions {
    unsafe custom_stream_functions(
      read: { cookie, bytes, count in
        guard let stream = unsafe TemporaryStream.at(cookie) else { return -1 }
        return stream.transfer { unsafe Glibc.read(stream.descriptor, bytes, count) } ?? -1
      },
      write: { cookie, bytes, count in
        guard let stream = unsafe TemporaryStream.at(cookie), let bytes = unsafe bytes else { return 0 }
        var written = 0
        while written < count {
          let rest = count - written
          guard let step = stream.transfer({ unsafe Glibc.write(stream.descriptor, bytes + written, rest) })
          else { return 0 }
          written += step
        }
        return written
      },
      seek: { cookie, offset, origin in
        guard let stream = unsafe TemporaryStream.at(cookie), let offset = unsafe offset else { return -1 }
        let position = lseek(stream.descriptor, unsafe off_t(offset.pointee), origin)
        guard position >= 0 else {
          stream.files.record(errno)
          return -1
        }
        unsafe offset.pointee = Int64(position)
        return 0
      },
      close: { cookie in
        guard let cookie = unsafe cookie else { return -1 }
        let stream = unsafe Unmanaged<TemporaryStream>.fromOpaque(cookie).takeRetainedValue()
        stream.files.forget(stream)
        return 0
      })
  }

  private static func at(_ cookie: UnsafeMutableRawPointer?) -> TemporaryStream? {
    guard let cookie = unsafe cookie else { return nil }
    return unsafe Unmanaged<TemporaryStream>.fromOpaque(cookie).takeUnretainedValue()
  }

  /// Repeats what a signal interrupted; nil when it failed for good, which is remembered.
  private func transfer(_ call: () -> Int) -> Int? {
    while true {
      let count = call()
      if count >= 0 { return count }
      guard errno == EINTR else {
        files.record(errno)
        return nil
      }
    }
  }
}

/// Takes the place of the library's own function of this name when the dynamic linker binds it. Only what other modules
/// can see is exported from an optimized program, hence `package`.
@c(lxw_tmpfile)
package func openTemporaryFile(_ directory: UnsafeMutablePointer<CChar>?) -> UnsafeMutablePointer<FILE>? {
  guard let files = TemporaryFiles.files(for: UInt(bitPattern: directory)) else { return unsafe tmpfile() }
  return unsafe files.open()
}
