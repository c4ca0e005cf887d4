import Foundation
import Postgres

/// A small removable volume for databases, in memory. Requires root.
package final class SmallVolume: Sendable {
  /// True if mounting is allowed; some containers forbid it.
  package static let isPossible: Bool = {
    let directory = "/tmp/mounted_\(UInt32.random(in: 0...UInt32.max))"
    defer { _ = try? FileManager.default.removeItem(atPath: directory) }
    do {
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
      try Command.run(["mount", "-t", "tmpfs", "tmpfs", directory])
      try Command.run(["umount", directory])
      return true
    } catch {
      return false
    }
  }()

  private let name = "small_\(UInt32.random(in: 0...UInt32.max))"
  private let directory: String
  private let cluster: PrivatePostgres

  package static func make(for cluster: PrivatePostgres) async throws -> SmallVolume {
    let volume = try await withBlockingThread { _ in try SmallVolume(cluster) }
    try await volume.execute("CREATE TABLESPACE \(volume.name) LOCATION '\(volume.directory)'")
    return volume
  }

  private init(_ cluster: PrivatePostgres) throws {
    self.cluster = cluster
    directory = "/tmp/\(name)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    try Command.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "tmpfs", directory])
    try PostgresInstallation.find().giveToServerUser(directory)
  }

  deinit {
    _ = try? Command.run(["umount", "--lazy", directory])
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// Moves a database to the volume. It must have no sessions.
  package func take(_ database: String) async throws {
    try await execute("ALTER DATABASE \(database) SET TABLESPACE \(name)")
  }

  /// Removes a database from the volume. Required before the volume is removed, because the server expects its
  /// tablespaces.
  package func remove(_ database: String) async throws {
    try await execute("DROP DATABASE \(database) WITH (FORCE)")
    try await execute("DROP TABLESPACE \(name)")
  }

  package func fill() throws {
    try Data().write(to: URL(fileURLWithPath: directory + "/rest"))
    let rest = try FileHandle(forWritingTo: URL(fileURLWithPath: directory + "/rest"))
    while (try? rest.write(contentsOf: Data(count: 4_096))) != nil {}
    try rest.close()
  }

  package func clear() throws { try FileManager.default.removeItem(atPath: directory + "/rest") }

  private func execute(_ sql: String) async throws {
    let session = try await PostgresSession.connect(
      cluster.conninfo(database: "postgres"), applicationName: "night-audit tests")
    try await session.execute(sql)
    await session.close()
  }
}
