import CSystemCalls
import Foundation

/// Records in a temporary file. A night reads rows once from the shop's server and uses them several times.
public final class SpillFile {
  private let directory: String
  private let file: TemporaryFile
  public private(set) var count = 0
  private var position = 0

  public init(directory: String) throws(SpillSorter.Failure) {
    self.directory = directory
    guard let file = TemporaryFile(in: directory, bufferSize: 1 << 16) else {
      throw SpillSorter.Failure(directory: directory, code: errno)
    }
    self.file = file
  }

  deinit { file.close() }

  /// Adds a record. Not allowed during a reading.
  public func add(_ content: UnsafeRawBufferPointer) throws(SpillSorter.Failure) {
    guard file.append(UInt32(content.count)), file.append(content) else { throw failure() }
    count += 1
  }

  public func add(_ content: [UInt8]) throws(SpillSorter.Failure) {
    try content.withUnsafeBufferPointer { (content) throws(SpillSorter.Failure) in
      try add(UnsafeRawBufferPointer(content))
    }
  }

  public func restart() throws(SpillSorter.Failure) {
    guard file.rewind() else { throw failure() }
    position = 0
  }

  /// The next record after `restart`, valid until the following one is read; nil after the last.
  public func next() throws(SpillSorter.Failure) -> UnsafeRawBufferPointer? {
    if position == count { return nil }
    guard let length = file.take(4)?.loadUnaligned(as: UInt32.self), let content = file.take(Int(length)) else {
      throw failure()
    }
    position += 1
    return UnsafeRawBufferPointer(start: content, count: Int(length))
  }

  private func failure() -> SpillSorter.Failure { SpillSorter.Failure(directory: directory, code: errno) }
}

/// A temporary file without a name: written, then read in place. Used by one thread at a time; its creator closes it.
///
/// A pointer, because sorters compare files for every record and must not count references.
struct TemporaryFile {
  private struct State {
    let descriptor: Int32
    var buffer: UnsafeMutableRawBufferPointer
    /// The end of the bytes in the buffer, which are to be written, or were read.
    var end = 0
    /// The first byte that is not taken yet.
    var start = 0
    var isReading = false
  }

  private let state: UnsafeMutablePointer<State>

  init?(in directory: String, bufferSize: Int) {
    // The file has no name, so it disappears with the process.
    let descriptor = file_open_temporary(directory)
    guard descriptor >= 0 else { return nil }
    state = .allocate(capacity: 1)
    state.initialize(
      to: State(descriptor: descriptor, buffer: .allocate(byteCount: bufferSize, alignment: 8)))
  }

  func close() {
    _ = Glibc.close(state.pointee.descriptor)
    state.pointee.buffer.deallocate()
    state.deallocate()
  }

  /// False, with `errno`, if the disk is full.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let source = bytes.baseAddress else { return true }
    if state.pointee.buffer.count - state.pointee.end < bytes.count {
      guard flush() else { return false }
      if state.pointee.buffer.count < bytes.count {
        return file_write_all(state.pointee.descriptor, source, bytes.count) == 0
      }
    }
    (state.pointee.buffer.baseAddress.unsafelyUnwrapped + state.pointee.end)
      .copyMemory(from: source, byteCount: bytes.count)
    state.pointee.end += bytes.count
    return true
  }

  func append(_ number: UInt32) -> Bool { withUnsafeBytes(of: number) { append($0) } }

  func flush() -> Bool {
    defer { state.pointee.end = 0 }
    return file_write_all(state.pointee.descriptor, state.pointee.buffer.baseAddress, state.pointee.end) == 0
  }

  /// Starts reading at the first byte.
  func rewind() -> Bool {
    if !state.pointee.isReading, !flush() { return false }
    (state.pointee.start, state.pointee.end, state.pointee.isReading) = (0, 0, true)
    return lseek(state.pointee.descriptor, 0, SEEK_SET) == 0
  }

  /// The next bytes, valid until the following call; nil, with `errno`, if they cannot be read.
  func take(_ count: Int) -> UnsafeRawPointer? {
    if state.pointee.end - state.pointee.start < count, !fill(count) { return nil }
    defer { state.pointee.start += count }
    return UnsafeRawPointer(state.pointee.buffer.baseAddress.unsafelyUnwrapped) + state.pointee.start
  }

  private func fill(_ count: Int) -> Bool {
    let rest = UnsafeRawBufferPointer(rebasing: state.pointee.buffer[state.pointee.start..<state.pointee.end])
    if state.pointee.buffer.count < count {
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * count, alignment: 8)
      larger.copyMemory(from: rest)
      state.pointee.buffer.deallocate()
      state.pointee.buffer = larger
    } else {
      state.pointee.buffer.copyMemory(from: rest)
    }
    (state.pointee.start, state.pointee.end) = (0, rest.count)
    while state.pointee.end < count {
      let free = UnsafeMutableRawBufferPointer(rebasing: state.pointee.buffer[state.pointee.end...])
      let found = read(state.pointee.descriptor, free.baseAddress, free.count)
      if found < 0, errno == EINTR { continue }
      // A truncated file sets no errno.
      if found == 0 { errno = EIO }
      if found <= 0 { return false }
      state.pointee.end += found
    }
    return true
  }
}
