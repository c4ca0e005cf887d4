import Foundation

/// A record on its way between two programs.
public struct Frame: Hashable, Sendable {
  /// What it is.
  public var tag: UInt8
  /// What it is sorted by and goes by: 0 and the bytes of an id, or 1 where there is none.
  public var key: [UInt8]
  public var content: [UInt8]

  public init(tag: UInt8, key: [UInt8], content: [UInt8]) {
    self.tag = tag
    self.key = key
    self.content = content
  }

  /// Bytes that cannot be read or written as frames.
  public struct Failure: Error, CustomStringConvertible {
    public var description: String

    public init(description: String) { self.description = description }
  }
}

/// Frames as a stream of bytes: the length of what follows as four bytes, most significant first; the tag as one; the length
/// of the key as four; the key; the content.
///
/// Used by one thread at a time; not `Sendable`.
public final class FrameStream {
  private let file: UnsafeMutablePointer<FILE>
  private let name: String
  private let isOwned: Bool

  /// Over a file descriptor that stays open.
  ///
  /// - Parameter name: for errors.
  public init(descriptor: Int32, isWritten: Bool, name: String) throws(Frame.Failure) {
    guard let file = fdopen(descriptor, isWritten ? "w" : "r") else {
      throw Frame.Failure(description: "cannot use \(name): \(String(cString: strerror(errno)))")
    }
    self.file = file
    self.name = name
    isOwned = false
  }

  /// Opens a file to read it, or makes one.
  public init(path: String, isWritten: Bool = false) throws(Frame.Failure) {
    guard let file = fopen(path, isWritten ? "wbe" : "rbe") else {
      throw Frame.Failure(description: "cannot open \(path): \(String(cString: strerror(errno)))")
    }
    self.file = file
    name = path
    isOwned = true
  }

  deinit { if isOwned { fclose(file) } }

  /// The next frame; nil after the last.
  public func next() throws(Frame.Failure) -> Frame? {
    var head = [UInt8](repeating: 0, count: 9)
    let read = fread(&head, 1, head.count, file)
    if read == 0, feof(file) != 0 { return nil }
    guard read == head.count else { throw cutOff }
    func number(_ offset: Int) -> Int { head[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
    let (length, keyLength) = (number(0), number(5))
    guard length >= 5 + keyLength else { throw Frame.Failure(description: "\(name) holds something else than frames") }
    return Frame(tag: head[4], key: try bytes(keyLength), content: try bytes(length - 5 - keyLength))
  }

  private func bytes(_ count: Int) throws(Frame.Failure) -> [UInt8] {
    var read = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      read = fread(buffer.baseAddress, 1, count, file)
      filled = read
    }
    guard read == count else { throw cutOff }
    return bytes
  }

  private var cutOff: Frame.Failure { Frame.Failure(description: "\(name) ends in the middle of a frame") }

  public func write(tag: UInt8, key: [UInt8], content: [UInt8]) throws(Frame.Failure) {
    var head: [UInt8] = []
    func put(_ number: Int) { for shift in [24, 16, 8, 0] { head.append(UInt8(truncatingIfNeeded: number >> shift)) } }
    put(5 + key.count + content.count)
    head.append(tag)
    put(key.count)
    for part in [head, key, content] {
      guard fwrite(part, 1, part.count, file) == part.count else { throw unwritten }
    }
  }

  /// Hands on what is buffered.
  public func flush() throws(Frame.Failure) { if fflush(file) != 0 { throw unwritten } }

  private var unwritten: Frame.Failure {
    Frame.Failure(description: "cannot write \(name): \(String(cString: strerror(errno)))")
  }
}
