import Foundation
import Synchronization
import TestSupport
import Testing

/// A sample shop of 500 orders, which asks through verifyReceipt.
///
/// Unchecked, because `Process` may not be declared as `Sendable`. All properties are constant.
final class Rehearsal: TestShop, @unchecked Sendable {
  static let asOf = "2026-11-20T03:00:00Z"

  let directory: TemporaryDirectory
  let cluster: PrivatePostgres
  let conninfo: String
  let port: Int
  let configuration: String
  private let appStore: Program.Running

  /// A sample shop of 500 loaded orders, before the first question to Apple.
  static func sampleShop(
    simulator arguments: [String] = [], shop options: [String] = [], in cluster: PrivatePostgres? = nil
  ) async throws -> Rehearsal {
    let sample = try await sampleFiles(options).file("shop")
    let directory = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: sample, toPath: directory.file("shop"))
    let shared = try await PrivatePostgres.shared()
    let conninfo = try await DatabaseRole.makeDatabase(of: cluster ?? shared, like: "sample shop \(options)") {
      try await load(sample, into: $0)
    }
    return try await Rehearsal(directory, arguments: arguments, cluster: cluster ?? shared, conninfo: conninfo)
  }

  /// The first night of a sample shop. Its reports are moved, so that a copy does not find them at the recorded path.
  private static let audited: Task<Rehearsal, any Error> = Task {
    let shop = try await sampleShop()
    let night = try await shop.nightAudit("run", "--as-of", asOf)
    guard night.status == 3 else { throw Program.Failure("\(night)") }
    try FileManager.default.moveItem(atPath: shop.reports, toPath: shop.directory.file("first"))
    return shop
  }

  /// A sample shop after its first night, with a copy of its database and its reports. `verify --run` does not find the
  /// report of that night once a test has edited it, because its recorded path is gone.
  static func auditedShop() async throws -> Rehearsal {
    let first = try await audited.value
    let directory = try TemporaryDirectory()
    for (folder, copy) in [("shop", "shop"), ("first", "reports")] {
      try FileManager.default.copyItem(atPath: first.directory.file(folder), toPath: directory.file(copy))
    }
    return try await Rehearsal(
      directory, arguments: [], cluster: first.cluster, conninfo: try await first.cluster.copyDatabase(first.conninfo))
  }

  private static let samples = Mutex<[[String]: Task<TemporaryDirectory, any Error>]>([:])

  /// The files of a sample shop, made once for each list of options.
  private static func sampleFiles(_ options: [String]) async throws -> TemporaryDirectory {
    let making = samples.withLock { samples in
      let making =
        samples[options]
        ?? Task {
          let directory = try TemporaryDirectory()
          let made = try await Program.simulator.run(
            ["sample-shop", "--directory", directory.file("shop"), "--orders", "500", "--as-of", asOf] + options)
          guard made.status == 0 else { throw Program.Failure(made.errors) }
          return directory
        }
      samples[options] = making
      return making
    }
    return try await making.value
  }

  private init(
    _ directory: TemporaryDirectory, arguments: [String], cluster: PrivatePostgres, conninfo: String
  ) async throws {
    (self.directory, self.cluster, self.conninfo) = (directory, cluster, conninfo)
    let (shop, portFile) = (directory.file("shop"), directory.file("port"))
    appStore = try Program.simulator.start(
      ["serve", "--world", shop + "/world.json", "--port-file", portFile, "--log", directory.file("requests")]
        + arguments)
    port = try await appStore.port(in: portFile)
    let users = try String(contentsOfFile: shop + "/test-users.txt", encoding: .utf8)
      .split(separator: "\n").joined(separator: ", ")
    configuration = """
      database:
        url: "\(conninfo)"
      app:
        game:
          bundleId: com.example.game
          sharedSecretFile: \(shop)/shared-secret
      appstore:
        channel: verifyReceipt
        requestsPerSecond: 0
        verifyReceiptUrl: http://127.0.0.1:\(port)/production/verifyReceipt
        verifyReceiptSandboxUrl: http://127.0.0.1:\(port)/sandbox/verifyReceipt
        rootCertificates: \(directory.file("no-roots"))
      audit:
        testUsers: [\(users)]
      report:
        directory: \(directory.file("reports"))
      """
    try configure("")
  }

  deinit { appStore.kill() }

  /// Loads the rows with psql's CSV reader, as in a real shop.
  private static func load(_ shop: String, into conninfo: String) async throws {
    for table in ["orders", "receipts", "deliveries"] {
      let result = try await Program(path: "/usr/bin/env").run([
        "psql", "--no-psqlrc", "--quiet", "--dbname", DatabaseRole.superuser.conninfo(conninfo), "--command",
        "\\copy sales.\(table) FROM '\(shop)/\(table).csv' CSV HEADER",
      ])
      guard result.status == 0 else { throw Program.Failure("\(table): \(result.errors)") }
    }
  }

  /// The day that the link `latest` leads to.
  func latestDay() throws -> String {
    try FileManager.default.destinationOfSymbolicLink(atPath: reports + "/latest")
  }
}
