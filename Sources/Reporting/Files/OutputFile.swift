import CSystemCalls
import Crypto
import Glibc

package struct ReportFile: Hashable, Sendable {
  package var name: String
  package var bytes: Int
  package var sha256: String
  /// Rows without the header; nil for a file that is no table.
  package var rows: Int?
}

/// A file that is hashed while it is written. Dropped without `finish`, it is closed as it is.
struct OutputFile: ~Copyable {
  private let descriptor: Int32
  private let name: String
  private var hash = SHA256()
  private var bytes = 0

  /// Creates the file, which must not exist, readable by owner and group.
  init(directory: String, name: String) throws(ReportError) {
    descriptor = open("\(directory)/\(name)", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o640)
    self.name = name
    guard descriptor >= 0 else { throw ReportError.cannotWrite(file: name, systemError: errno) }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  mutating func write(_ content: [UInt8]) throws(ReportError) {
    if let failure = content.withUnsafeBytes({ append($0) }) {
      throw ReportError.cannotWrite(file: name, systemError: failure)
    }
  }

  mutating func write(_ text: borrowing CSVText) throws(ReportError) {
    if let failure = text.withBytes({ append($0) }) { throw ReportError.cannotWrite(file: name, systemError: failure) }
  }

  private mutating func append(_ content: UnsafeRawBufferPointer) -> Int32? {
    hash.update(bufferPointer: content)
    guard file_write_all(descriptor, content.baseAddress, content.count) == 0 else { return errno }
    bytes += content.count
    return nil
  }

  /// Syncs the file. A full disk may show only here.
  consuming func finish(rows: Int? = nil) throws(ReportError) -> ReportFile {
    guard fsync(descriptor) == 0 else { throw ReportError.cannotWrite(file: name, systemError: errno) }
    return ReportFile(name: name, bytes: bytes, sha256: hexadecimal(Array(hash.finalize())), rows: rows)
  }

  static func describe(directory: String, name: String) throws(ReportError) -> ReportFile {
    let descriptor = open("\(directory)/\(name)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ReportError.cannotWrite(file: name, systemError: errno) }
    defer { close(descriptor) }
    var hash = SHA256()
    var bytes = 0
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      if count == 0 { return ReportFile(name: name, bytes: bytes, sha256: hexadecimal(Array(hash.finalize()))) }
      if count < 0 {
        if errno == EINTR { continue }
        throw ReportError.cannotWrite(file: name, systemError: errno)
      }
      bytes += count
      buffer.withUnsafeBytes { hash.update(bufferPointer: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
  }

  static func synchronize(directory: String) throws(ReportError) {
    guard directory_synchronize(directory) == 0 else {
      throw ReportError.cannotWrite(file: directory, systemError: errno)
    }
  }
}
