import Foundation
import Postgres

/// A Postgres cluster of the tests' own, in a temporary directory and reachable by a Unix socket only.
///
/// It vanishes with the process that started it, even when that is killed.
package final class PrivatePostgres: Sendable {
  /// What the caller can do about it is in the message.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private let installation: PostgresInstallation
  /// Holds the cluster and its socket. Short, because a socket's path has at most 107 bytes.
  private let directory: String
  private let watchdog: Watchdog

  private static let sharedStart = Task { try await start() }

  /// The cluster that all tests of the process share; started by the first call.
  package static func shared() async throws -> PrivatePostgres { try await sharedStart.value }

  /// Starts a cluster that one test may stop and restart.
  package static func start() async throws -> PrivatePostgres {
    try await withBlockingThread { _ in try PrivatePostgres() }
  }

  private init() throws {
    installation = try PostgresInstallation.find()
    directory = "/tmp/pg-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    watchdog = try Watchdog(directory: directory)
    try installation.giveToServerUser(directory)
    try installation.run(
      "initdb", "--pgdata=\(directory)/data", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
      "--no-sync", "--no-instructions")
    let settings = """

      listen_addresses = ''
      unix_socket_directories = '\(directory)'
      fsync = off
      full_page_writes = off
      max_connections = 300
      timezone = 'Asia/Kolkata'
      """
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(directory)/data/postgresql.conf"))
    try file.seekToEnd()
    try file.write(contentsOf: Data(settings.utf8))
    try file.close()
    try startServer()
  }

  /// Where a database of the cluster is.
  package func conninfo(database: String) -> String {
    "host=\(directory) port=5432 user=postgres dbname=\(database)"
  }

  /// Creates an empty database that no other test uses, and returns its connection string.
  package func createDatabase() async throws -> String {
    let name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let session = try await PostgresSession.connect(
      conninfo(database: "postgres"), applicationName: "night-audit tests")
    try await session.execute("CREATE DATABASE \(PostgresIdentifier(name).sql) TEMPLATE template0")
    await session.close()
    return conninfo(database: name)
  }

  /// Stops the server as a crash would: connections break without a farewell.
  package func stopImmediately() async throws {
    try await withBlockingThread { _ in
      try self.installation.run("pg_ctl", "stop", "--pgdata=\(self.directory)/data", "--mode=immediate", "--silent")
    }
  }

  /// Starts a stopped server again.
  package func restart() async throws {
    try await withBlockingThread { _ in try self.startServer() }
  }

  private func startServer() throws {
    try installation.run(
      "pg_ctl", "start", "--pgdata=\(directory)/data", "--log=\(directory)/log", "--wait", "--silent")
  }
}
