import CSystemCalls
import Foundation

/// Records in the order in which they were added, on disk, read as often as they are needed.
///
/// What a night reads from the shop's server once and looks at several times waits here.
public final class SpillFile {
  private let directory: String
  private let file: TemporaryFile
  /// The record that was read last.
  private var last = UnsafeMutableRawBufferPointer.allocate(byteCount: 512, alignment: 1)
  /// How many records were added.
  public private(set) var count = 0
  /// How many were read since `restart`.
  private var position = 0

  /// - Parameter directory: where the nameless temporary file lies.
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

  /// Adds a record. Not while a reading is under way.
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

  /// Goes back to the first record, to read all of them from there.
  public func restart() throws(SpillSorter.Failure) {
    guard fflush(file.stream) == 0 else { throw failure() }
    Glibc.rewind(file.stream)
    position = 0
  }

  /// The next record after `restart`, which lies there until the one after it is read; nil after the last.
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

  /// What ended before its last record has lost it, and says so with no error of its own.
  private func failure() -> SpillSorter.Failure {
    SpillSorter.Failure(directory: directory, code: feof(file.stream) != 0 ? EIO : errno)
  }
}

/// A temporary file that nobody else sees. Whoever has made it closes it, and one thread at a time uses it.
struct TemporaryFile {
  let stream: UnsafeMutablePointer<FILE>
  private let buffer: UnsafeMutablePointer<CChar>

  /// Some of these are open at once for each thing that waits on disk.
  private static let bufferSize = 1 << 14

  /// nil, with `errno` set, when there is no room for one.
  init?(in directory: String) {
    // It is gone with the process, however that ends.
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
