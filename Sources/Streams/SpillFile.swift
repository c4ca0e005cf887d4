import CSystemCalls
import Foundation

/// Records in a temporary file. A night reads rows once from the shop's server and uses them several times.
public final class SpillFile {
  private let directory: String
  private let file: TemporaryFile
  private var last = UnsafeMutableRawBufferPointer.allocate(byteCount: 512, alignment: 1)
  public private(set) var count = 0
  private var position = 0

  public init(directory: String) throws(SpillSorter.Failure) {
    self.directory = directory
    guard let file = TemporaryFile(in: directory) else {
      throw SpillSorter.Failure(directory: directory, code: errno)
    }
    self.file = file
  }

  deinit {
    file.close()
    last.deallocate()
  }

  /// Adds a record. Not allowed during a reading.
  public func add(_ content: UnsafeRawBufferPointer) throws(SpillSorter.Failure) {
    var length = UInt32(content.count)
    guard fwrite_unlocked(&length, 4, 1, file.stream) == 1,
      fwrite_unlocked(content.baseAddress, 1, content.count, file.stream) == content.count
    else { throw failure() }
    count += 1
  }

  public func add(_ content: [UInt8]) throws(SpillSorter.Failure) {
    try content.withUnsafeBufferPointer { (content) throws(SpillSorter.Failure) in
      try add(UnsafeRawBufferPointer(content))
    }
  }

  public func restart() throws(SpillSorter.Failure) {
    guard fflush(file.stream) == 0 else { throw failure() }
    Glibc.rewind(file.stream)
    position = 0
  }

  /// The next record after `restart`, valid until the following one is read; nil after the last.
  public func next() throws(SpillSorter.Failure) -> UnsafeRawBufferPointer? {
    if position == count { return nil }
    var length: UInt32 = 0
    guard fread_unlocked(&length, 4, 1, file.stream) == 1 else { throw failure() }
    let wanted = Int(length)
    if wanted > last.count {
      last.deallocate()
      last = .allocate(byteCount: 2 * wanted, alignment: 1)
    }
    guard fread_unlocked(last.baseAddress, 1, wanted, file.stream) == wanted else { throw failure() }
    position += 1
    return UnsafeRawBufferPointer(rebasing: last[..<wanted])
  }

  // A truncated file sets no errno.
  private func failure() -> SpillSorter.Failure {
    SpillSorter.Failure(directory: directory, code: feof(file.stream) != 0 ? EIO : errno)
  }
}

/// A temporary file without a name, used by one thread at a time. Its creator closes it.
struct TemporaryFile {
  let stream: UnsafeMutablePointer<FILE>
  private let buffer: UnsafeMutablePointer<CChar>

  // Small, because many such files are open at once.
  private static let bufferSize = 1 << 14

  init?(in directory: String) {
    // The file has no name, so it disappears with the process.
    let descriptor = file_open_temporary(directory)
    guard descriptor >= 0, let stream = fdopen(descriptor, "w+") else { return nil }
    self.stream = stream
    buffer = .allocate(capacity: Self.bufferSize)
    setvbuf(stream, buffer, _IOFBF, Self.bufferSize)
  }

  func close() {
    fclose(stream)
    buffer.deallocate()
  }
}
