import CSystemCalls
import Glibc
import SystemPackage

/// Standard input and error of a program, as descriptors that it inherits.
///
/// swift-subprocess 1.0.2 ends our process if a program exits before it reads input that we write.
enum ProgramStreams {
  /// Writes a text into a pipe, never to disk. The caller closes the returned end.
  ///
  /// - Throws: `EAGAIN` for more than the pipe holds: 1 MiB if the system permits it, else 64 KiB.
  static func input(_ text: String) throws(Errno) -> Int32 {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
    let (reading, writing) = (ends[0], ends[1])
    defer { close(writing) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    // fcntl(2): F_SETPIPE_SZ, which glibc hides from Swift. Without the right to it the default size remains.
    let setPipeSize: Int32 = 1031
    _ = fcntl(writing, setPipeSize, Int32(1 << 20))
    _ = fcntl(writing, F_SETFL, O_NONBLOCK)
    let bytes = Array(text.utf8)
    guard file_write_all(writing, bytes, bytes.count) == 0 else {
      let error = Errno(rawValue: errno)
      close(reading)
      throw error
    }
    return reading
  }

  static func errors() throws(Errno) -> Int32 {
    let descriptor = file_open_temporary(temporaryDirectory)
    guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    return descriptor
  }

  static func tail(of file: Int32) -> String {
    let size = lseek(file, 0, SEEK_END)
    guard size > 0 else { return "" }
    var bytes = [UInt8](repeating: 0, count: Int(min(size, 4_096)))
    let count = pread(file, &bytes, bytes.count, size - off_t(bytes.count))
    return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
  }

  private static var temporaryDirectory: String {
    guard let directory = getenv("TMPDIR") else { return "/tmp" }
    return String(cString: directory)
  }
}
