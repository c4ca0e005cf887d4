import Foundation
import Glibc

/// A self-signed certificate for `localhost`, for a private cluster on the loopback interface.
package struct ServerCertificate: Sendable {
  package let path: String
  private let key: String
  let port: Int

  package init(in directory: String) throws {
    path = "\(directory)/server.pem"
    key = "\(directory)/server-key.pem"
    port = try ServerCertificate.freePort()
    try Command.run([
      "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
      "subjectAltName=DNS:localhost", "-keyout", key, "-out", path,
    ])
  }

  var settings: String {
    """
    listen_addresses = '127.0.0.1'
    ssl = on
    ssl_cert_file = 'server.pem'
    ssl_key_file = 'server-key.pem'
    """
  }

  /// Postgres requires a key that only the server's user can read.
  func install(in data: String, _ installation: PostgresInstallation) throws {
    for (file, name) in [(path, "server.pem"), (key, "server-key.pem")] {
      let copy = "\(data)/\(name)"
      try FileManager.default.copyItem(atPath: file, toPath: copy)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: copy)
      try installation.giveToServerUser(copy)
    }
  }

  private static func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
      }
    }
    guard status == 0 else { throw PrivatePostgres.Failure(description: "there is no free port") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}
