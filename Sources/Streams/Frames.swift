import Foundation

/// A record that is sent between two programs.
public struct Frame: Hashable, Sendable {
  public var tag: UInt8
  /// The sort key: 0 and the bytes of an id, or 1 without an id.
  public var key: [UInt8]
  public var content: [UInt8]

  public init(tag: UInt8, key: [UInt8], content: [UInt8]) {
    self.tag = tag
    self.key = key
    self.content = content
  }

  public struct Failure: Error, CustomStringConvertible {
    public var description: String

    public init(description: String) { self.description = description }
  }
}

/// A stream of frames, used by one thread at a time. A frame has the length of the rest in four big-endian bytes; the
/// tag in one; the length of the key in four; the key; the content.
public final class FrameStream {
  private let file: UnsafeMutablePointer<FILE>
  private let name: String
  private let isOwned: Bool

  /// Uses a file descriptor, which stays open. `name` is for errors.
  public init(descriptor: Int32, isWritten: Bool, name: String) throws(Frame.Failure) {
    guard let file = fdopen(descriptor, isWritten ? "w" : "r") else {
      throw Frame.Failure(description: "cannot use \(name): \(String(cString: strerror(errno)))")
    }
    self.file = file
    self.name = name
    isOwned = false
  }

  public init(path: String, isWritten: Bool = false) throws(Frame.Failure) {
    guard let file = fopen(path, isWritten ? "wbe" : "rbe") else {
      throw Frame.Failure(description: "cannot open \(path): \(String(cString: strerror(errno)))")
    }
    self.file = file
    name = path
    isOwned = true
  }

  deinit { if isOwned { fclose(file) } }

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

  public func flush() throws(Frame.Failure) { if fflush(file) != 0 { throw unwritten } }

  private var unwritten: Frame.Failure {
    Frame.Failure(description: "cannot write \(name): \(String(cString: strerror(errno)))")
  }
}
