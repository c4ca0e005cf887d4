import Foundation
import Postgres

/// A private Postgres cluster in a temporary directory, reachable by Unix socket only. It is removed when the process
/// that started it ends, even if that is killed.
package final class PrivatePostgres: Sendable {
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  private let installation: PostgresInstallation
  /// Short, because the path of a socket has at most 107 bytes.
  package let directory: String
  private let watchdog: Watchdog
  /// The port of its socket, and of loopback if it has a certificate.
  package let port: Int
  private let templates = MadeOnce<String, String>()

  private static let sharedStart = Task { try await start() }

  /// The cluster shared by all tests of the process, started by the first call.
  package static func shared() async throws -> PrivatePostgres { try await sharedStart.value }

  /// Starts a cluster that one test may stop and restart. `certificate` is for loopback; nil: Unix socket only.
  package static func start(
    encoding: String = "UTF8", settings: String = "", certificate: ServerCertificate? = nil
  ) async throws -> PrivatePostgres {
    try await withBlockingThread { _ in
      try PrivatePostgres(encoding: encoding, settings: settings, certificate: certificate)
    }
  }

  /// Starts a hot standby of this cluster. `settings` are further lines of its `postgresql.conf`.
  package func startStandby(settings: String = "") async throws -> PrivatePostgres {
    try await withBlockingThread { _ in try PrivatePostgres(following: self, settings: settings) }
  }

  private convenience init(encoding: String, settings: String, certificate: ServerCertificate?) throws {
    try self.init(port: certificate?.port ?? 5432) { installation, directory in
      try installation.run(
        "initdb", "--pgdata=\(directory)/data", "--username=postgres", "--auth=trust", "--encoding=\(encoding)",
        "--locale=C", "--no-sync")
      try certificate?.install(in: "\(directory)/data", installation)
      // With hundreds of databases, autovacuum would start several workers a second.
      return """

        listen_addresses = ''
        fsync = off
        full_page_writes = off
        autovacuum = off
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

  /// - Parameter makeData: creates `<directory>/data` and returns further lines of `postgresql.conf`.
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

  /// Waits until a standby has replayed the primary's current position.
  package func catchUp(with primary: PrivatePostgres) async throws {
    let source = try await PostgresSession.connect(primary.conninfo(database: "postgres"), applicationName: "tests")
    let position = try await source.execute("SELECT pg_current_wal_lsn()::text").single().text(0)
    let session = try await PostgresSession.connect(conninfo(database: "postgres"), applicationName: "tests")
    let sql = "SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn"
    while try await !session.execute(sql, [.text(position)]).single().bool(0) { try Task.checkCancellation() }
  }

  package var serverProcess: Int32 {
    get throws {
      let file = try String(contentsOfFile: "\(directory)/data/postmaster.pid", encoding: .utf8)
      guard let line = file.split(separator: "\n").first, let process = Int32(line) else {
        throw Failure(description: "postmaster.pid has no process ID")
      }
      return process
    }
  }

  package func conninfo(database: String) -> String {
    "host=\(directory) port=\(port) user=postgres dbname=\(database)"
  }

  /// Creates an empty database and returns its connection string.
  ///
  /// - Parameters:
  ///   - locale: ICU locale of the default collation; nil: byte order.
  ///   - encoding: of a database in byte order; nil: the cluster's.
  package func createDatabase(locale: String? = nil, encoding: String? = nil) async throws -> String {
    let name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let session = try await administer()
    let rules =
      locale.map { "ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE '\($0)'" }
      ?? encoding.map { "ENCODING '\($0)'" } ?? ""
    try await session.execute("CREATE DATABASE \(PostgresIdentifier(name).sql) TEMPLATE template0 \(rules)")
    await session.close()
    return conninfo(database: name)
  }

  /// Copies the template database `name`, which `fill` fills before the first copy. A copy takes a tenth of the time of
  /// our migrations.
  package func createDatabase(
    like name: String, fill: @escaping @Sendable (_ conninfo: String) async throws -> Void
  ) async throws -> String {
    let template = try await templates.value(of: name) {
      let conninfo = try await self.createDatabase()
      try await fill(conninfo)
      return conninfo
    }
    return try await copyDatabase(template)
  }

  /// Copies a database and returns the connection string of the copy. Its sessions must be about to end.
  package func copyDatabase(_ conninfo: String) async throws -> String {
    let name = "test_\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let source = conninfo.split(separator: " ").first { $0.hasPrefix("dbname=") }.map { String($0.dropFirst(7)) } ?? ""
    let session = try await administer()
    // The server may not have noticed yet that its sessions ended.
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1"
    while try await session.execute(others, [.text(source)]).single().int64(0) > 0 { try Task.checkCancellation() }
    try await session.execute(
      "CREATE DATABASE \(PostgresIdentifier(name).sql) TEMPLATE \(PostgresIdentifier(source).sql)")
    await session.close()
    return conninfo.replacing("dbname=\(source)", with: "dbname=\(name)")
  }

  /// A session of the superuser. Errors include the server's log.
  private func administer() async throws -> PostgresSession {
    do {
      return try await PostgresSession.connect(conninfo(database: "postgres"), applicationName: "night-audit tests")
    } catch {
      throw Failure(description: "The server's log ends with: \(log.suffix(600))\n\(error)")
    }
  }

  private var log: String { (try? String(contentsOfFile: "\(directory)/log", encoding: .utf8)) ?? "no log" }

  /// Stops the server like a crash, without ending connections properly.
  package func stopImmediately() async throws {
    try await withBlockingThread { _ in
      try self.installation.run("pg_ctl", "stop", "--pgdata=\(self.directory)/data", "--mode=immediate", "--silent")
    }
  }

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
