import CSystemCalls
import Foundation

/// Reads regular files, and never waits for the writer of a pipe.
package struct RegularFile: Sendable {
  /// A reason why a path cannot be read, as a clause with the file as its subject.
  package struct Failure: Error, Hashable {
    package var problem: String

    package init(problem: String) { self.problem = problem }
  }

  package var content: Data
  package var owner: UInt32
  package var mode: UInt32

  /// - Parameter limit: in bytes; a larger file is not read. nil: read whatever its size.
  package init(_ path: String, atMost limit: Int? = nil) throws(Failure) {
    let opened = try Self.open(path)
    (owner, mode) = (opened.owner, opened.mode)
    let file = FileHandle(fileDescriptor: opened.descriptor, closeOnDealloc: true)
    var isTooLarge = false
    do {
      if let limit {
        isTooLarge = try file.seekToEnd() > UInt64(limit)
        try file.seek(toOffset: 0)
      }
      content = try isTooLarge ? Data() : file.read(upToCount: limit ?? .max) ?? Data()
    } catch { throw Failure(problem: (error as NSError).localizedDescription) }
    if let limit, isTooLarge { throw Failure(problem: "is larger than \(limit) bytes") }
  }

  package static func content(_ path: String, atMost limit: Int? = nil) -> Data? {
    (try? RegularFile(path, atMost: limit))?.content
  }

  package static func text(_ path: String) -> String? {
    content(path).flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// Opens a file; the caller closes the descriptor.
  package static func descriptor(_ path: String) throws(Failure) -> Int32 { try open(path).descriptor }

  private static func open(_ path: String) throws(Failure) -> (descriptor: Int32, owner: UInt32, mode: UInt32) {
    var (owner, mode): (UInt32, UInt32) = (0, 0)
    let descriptor = file_open_regular(path, &owner, &mode)
    guard descriptor >= 0 else { throw Failure(problem: String(cString: file_open_problem(errno))) }
    return (descriptor, owner, mode)
  }
}
