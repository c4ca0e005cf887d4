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
  package let directory: String
  private let watchdog: Watchdog
  /// Of its socket in the file system, and where it listens on loopback when it has a certificate.
  package let port: Int

  private static let sharedStart = Task { try await start() }

  /// The cluster that all tests of the process share; started by the first call.
  package static func shared() async throws -> PrivatePostgres { try await sharedStart.value }

  /// Starts a cluster that one test may stop and restart.
  ///
  /// - Parameters:
  ///   - encoding: what its databases are encoded in.
  ///   - settings: further lines of `postgresql.conf`.
  ///   - certificate: what it shows on the loopback interface; nil: it listens nowhere but in the file system.
  package static func start(
    encoding: String = "UTF8", settings: String = "", certificate: ServerCertificate? = nil
  ) async throws -> PrivatePostgres {
    try await withBlockingThread { _ in
      try PrivatePostgres(encoding: encoding, settings: settings, certificate: certificate)
    }
  }

  /// Starts a hot standby, which follows this cluster for as long as both are there.
  ///
  /// - Parameter settings: further lines of its `postgresql.conf`.
  package func startStandby(settings: String = "") async throws -> PrivatePostgres {
    try await withBlockingThread { _ in try PrivatePostgres(following: self, settings: settings) }
  }

  private convenience init(encoding: String, settings: String, certificate: ServerCertificate?) throws {
    try self.init(port: certificate?.port ?? 5432) { installation, directory in
      try installation.run(
        "initdb", "--pgdata=\(directory)/data", "--username=postgres", "--auth=trust", "--encoding=\(encoding)",
        "--locale=C", "--no-sync")
      try certificate?.install(in: "\(directory)/data", installation)
      return """

        listen_addresses = ''
        fsync = off
        full_page_writes = off
        max_connections = 300
        max_locks_per_transaction = 512
        timezone = 'Asia/Kolkata'
        \(certificate?.settings ?? "")
        \(settings)
        """
    }
  }

  private convenience init(following primary: PrivatePostgres, settings: String) throws {
    try self.init(port: 5432) { installation, directory in
      try installation.run(
        "pg_basebackup", "--pgdata=\(directory)/data", "--host=\(primary.directory)", "--username=postgres",
        "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--no-sync")
      return settings
    }
  }

  /// - Parameter makeData: makes `<directory>/data` and returns what is added to its `postgresql.conf`.
  private init(port: Int, _ makeData: (PostgresInstallation, String) throws -> String) throws {
    self.port = port
    installation = try PostgresInstallation.find()
    directory = "/tmp/pg-\(ProcessInfo.processInfo.processIdentifier)-\(UInt32.random(in: 0...UInt32.max))"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    watchdog = try Watchdog(directory: directory)
    try installation.giveToServerUser(directory)
    let settings =
      try makeData(installation, directory) + "\nunix_socket_directories = '\(directory)'\nport = \(port)\n"
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: "\(directory)/data/postgresql.conf"))
    try file.seekToEnd()
    try file.write(contentsOf: Data(settings.utf8))
    try file.close()
    try startServer()
  }

  /// Waits until a standby has caught up with its primary, or the task is cancelled.
  package func catchUp(with primary: PrivatePostgres) async throws {
    let source = try await PostgresSession.connect(primary.conninfo(database: "postgres"), applicationName: "tests")
    let position = try await source.execute("SELECT pg_current_wal_lsn()::text").single().text(0)
    let session = try await PostgresSession.connect(conninfo(database: "postgres"), applicationName: "tests")
    let sql = "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn"
    while try await !session.execute(sql, [.text(position)]).single().bool(0) { try Task.checkCancellation() }
  }

  /// The process that accepts connections.
  package var serverProcess: Int32 {
    get throws {
      let file = try String(contentsOfFile: "\(directory)/data/postmaster.pid", encoding: .utf8)
      guard let line = file.split(separator: "\n").first, let process = Int32(line) else {
        throw Failure(description: "postmaster.pid holds no process id")
      }
      return process
    }
  }

  /// Where a database of the cluster is.
  package func conninfo(database: String) -> String {
    "host=\(directory) port=\(port) user=postgres dbname=\(database)"
  }

  /// Creates an empty database that no other test uses, and returns its connection string.
  ///
  /// - Parameter locale: of ICU, by whose rules text without a collation of its own is compared; nil: by its bytes.
  package func createDatabase(locale: String? = nil) async throws -> String {
    let name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let session = try await administer()
    let rules = locale.map { "ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE '\($0)'" } ?? ""
    try await session.execute("CREATE DATABASE \(PostgresIdentifier(name).sql) TEMPLATE template0 \(rules)")
    await session.close()
    return conninfo(database: name)
  }

  /// Copies a database, whose sessions have ended or are about to, and returns the copy's connection string, of the same
  /// role.
  ///
  /// - Parameter conninfo: of a database of this cluster.
  package func copyDatabase(_ conninfo: String) async throws -> String {
    let name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let source = conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }.map { String($0.dropFirst(7)) } ?? ""
    let session = try await administer()
    // The server may not have noticed yet that they ended.
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1"
    while try await session.execute(others, [.text(source)]).single().int64(0) > 0 { try Task.checkCancellation() }
    try await session.execute(
      "CREATE DATABASE \(PostgresIdentifier(name).sql) TEMPLATE \(PostgresIdentifier(source).sql)")
    await session.close()
    return conninfo.replacing("dbname=\(source)", with: "dbname=\(name)")
  }

  /// A session of the superuser. A server that is gone says why in its log.
  private func administer() async throws -> PostgresSession {
    do {
      return try await PostgresSession.connect(conninfo(database: "postgres"), applicationName: "night-audit tests")
    } catch {
      throw Failure(description: "The server's log ends with: \(log.suffix(600))\n\(error)")
    }
  }

  private var log: String { (try? String(contentsOfFile: "\(directory)/log", encoding: .utf8)) ?? "no log" }

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
    do {
      try installation.run(
        "pg_ctl", "start", "--pgdata=\(directory)/data", "--log=\(directory)/log", "--wait", "--timeout=300", "--silent"
      )
    } catch {
      throw Failure(description: "\(error)\nThe server's log: \(log)")
    }
  }
}
