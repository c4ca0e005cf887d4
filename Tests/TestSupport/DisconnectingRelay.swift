import Foundation

/// A relay that cuts connections after a number of bytes, or before the answer to a statement. Clients see the end of a
/// connection in the middle of a message, as with a lost network or a killed backend.
package final class DisconnectingRelay: Sendable {
  /// For the parameter `host=`.
  package let directory: String
  private let listener: Int32

  /// `limit` is the number of bytes that each client receives. `swallowed` is text of the statement whose answer is
  /// dropped.
  package init(before server: String, limit: Int = .max, swallowed: String? = nil) throws {
    directory = "/tmp/relay-\(UInt32.random(in: 0...UInt32.max))"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    self.listener = listener
    let bound = Self.withAddress(directory) { bind(listener, $0, $1) }
    guard bound == 0, listen(listener, 16) == 0 else {
      throw PrivatePostgres.Failure(description: "no relay at \(directory): \(String(cString: strerror(errno)))")
    }
    Thread.detachNewThread {
      while case let client = accept(listener, nil, nil), client >= 0 {
        Thread.detachNewThread { Self.relay(client, to: server, limit: limit, swallowed: swallowed) }
      }
    }
  }

  deinit {
    // `shutdown`, because `close` alone does not wake the accepting thread.
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
    try? FileManager.default.removeItem(atPath: directory)
  }

  private static func relay(_ client: Int32, to directory: String, limit: Int, swallowed: String?) {
    let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer {
      close(server)
      close(client)
    }
    guard withAddress(directory, { connect(server, $0, $1) }) == 0 else { return }
    var left = limit
    var isSwallowing = false
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while left > 0 {
      var descriptors = [
        pollfd(fd: client, events: Int16(POLLIN), revents: 0), pollfd(fd: server, events: Int16(POLLIN), revents: 0),
      ]
      guard poll(&descriptors, 2, -1) > 0 else { return }
      if descriptors[0].revents != 0 {
        let count = read(client, &bytes, bytes.count)
        guard count > 0, send(server, bytes, count, Int32(MSG_NOSIGNAL)) == count else { return }
        if let swallowed, String(decoding: bytes[..<count], as: UTF8.self).contains(swallowed) { isSwallowing = true }
      }
      if descriptors[1].revents != 0 {
        if isSwallowing { return }
        let count = read(server, &bytes, min(left, bytes.count))
        guard count > 0, send(client, bytes, count, Int32(MSG_NOSIGNAL)) == count else { return }
        left -= count
      }
    }
  }

  private static func withAddress<R>(_ directory: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      path.copyBytes(from: Array("\(directory)/.s.PGSQL.5432".utf8).prefix(path.count - 1))
    }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }
}
