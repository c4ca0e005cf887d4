import Foundation
import Postgres

/// A PgBouncer in front of a private cluster, with the same lifetime.
package final class PrivatePooler: Sendable {
  private static let program = "/usr/sbin/pgbouncer"

  /// Debian: `apt install pgbouncer`.
  package static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

  private let directory: String
  private let watchdog: Watchdog

  /// `mode` is `session`, `transaction` or `statement`. `size` is the number of connections for each database.
  package static func start(
    before cluster: PrivatePostgres, mode: String, size: Int = 20
  ) async throws -> PrivatePooler {
    let pooler = try await withBlockingThread { _ in
      try PrivatePooler(cluster.conninfo(database: "postgres"), mode: mode, size: size)
    }
    // Waits until it accepts connections.
    while !pooler.isListening { try Task.checkCancellation() }
    return pooler
  }

  /// Connects, because the socket file exists before connections are accepted.
  private var isListening: Bool {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(directory)/.s.PGSQL.6432".utf8) }
    return withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
  }

  private init(_ conninfo: String, mode: String, size: Int) throws {
    let installation = try PostgresInstallation.find()
    directory = "/tmp/pb-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
    // The watchdog expects the PID file where a cluster has it.
    try FileManager.default.createDirectory(
      atPath: "\(directory)/data", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    watchdog = try Watchdog(directory: directory)
    let server = conninfo.split(separator: " ").filter { !$0.hasPrefix("dbname=") }.joined(separator: " ")
    let settings = """
      [databases]
      * = \(server)
      [pgbouncer]
      listen_port = 6432
      unix_socket_dir = \(directory)
      auth_type = any
      pool_mode = \(mode)
      default_pool_size = \(size)
      logfile = \(directory)/log
      pidfile = \(directory)/data/postmaster.pid
      """
    try settings.write(toFile: "\(directory)/pgbouncer.ini", atomically: false, encoding: .utf8)
    try installation.giveToServerUser(directory)
    try installation.giveToServerUser("\(directory)/data")
    try installation.run(program: Self.program, ["--daemon", "--quiet", "\(directory)/pgbouncer.ini"])
  }

  package func conninfo(database: String) -> String {
    "host=\(directory) port=6432 user=postgres dbname=\(database)"
  }
}
