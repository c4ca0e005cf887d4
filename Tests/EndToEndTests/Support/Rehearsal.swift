import Foundation
import TestSupport
import Testing

/// A sample shop of 500 orders, which asks through verifyReceipt. Its reports have no sheets and no page unless `formats`
/// says so, because they take longer than the audit.
///
/// Unchecked, because `Process` may not be declared as `Sendable`. All properties are constant.
final class Rehearsal: TestShop, @unchecked Sendable {
  static let asOf = "2026-11-20T03:00:00Z"

  let directory: TemporaryDirectory
  let cluster: PrivatePostgres
  let conninfo: String
  let port: Int
  let configuration: String
  /// nil: that of another shop.
  private let appStore: Program.Running?

  /// A sample shop of 500 loaded orders, before the first question to Apple.
  static func sampleShop(
    simulator arguments: [String] = [], shop options: [String] = [], formats: String = "csv",
    in cluster: PrivatePostgres? = nil
  ) async throws -> Rehearsal {
    let sample = try await samples.value(of: options) {
      let directory = try TemporaryDirectory()
      let made = try await Program.simulator.run(
        ["sample-shop", "--directory", directory.file("shop"), "--orders", "500", "--as-of", asOf] + options)
      guard made.status == 0 else { throw Program.Failure(made.errors) }
      return directory
    }.file("shop")
    let directory = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: sample, toPath: directory.file("shop"))
    let shared = try await PrivatePostgres.shared()
    let conninfo = try await DatabaseRole.makeDatabase(of: cluster ?? shared, like: "sample shop \(options)") {
      try await load(sample, into: $0)
    }
    return try await Rehearsal(
      directory, arguments: arguments, formats: formats, cluster: cluster ?? shared, conninfo: conninfo)
  }

  /// A sample shop before its first night, for tests that change nothing.
  static let unchanged = Task { try await sampleShop() }

  /// The files of a sample shop, by options.
  private static let samples = MadeOnce<[String], TemporaryDirectory>()

  /// The first night of a sample shop, by formats. Its reports are moved, so that a copy does not find them at the
  /// recorded path.
  private static let audited = MadeOnce<String, Rehearsal>()

  /// A sample shop after its first night, with a copy of its database and its reports, and with the App Store of all of
  /// them, whose requests are not counted. `verify --run` does not find the report of that night once a test has edited
  /// it, because its recorded path is gone.
  static func auditedShop(formats: String = "csv") async throws -> Rehearsal {
    let first = try await audited.value(of: formats) {
      let shop = try await sampleShop(formats: formats)
      try await shop.nightAudit("run", "--as-of", asOf, exits: [3])
      try FileManager.default.moveItem(atPath: shop.reports, toPath: shop.directory.file("first"))
      return shop
    }
    let directory = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: first.directory.file("first"), toPath: directory.file("reports"))
    return try await Rehearsal(
      directory, of: first, formats: formats, cluster: first.cluster,
      conninfo: try await first.cluster.copyDatabase(first.conninfo))
  }

  /// - Parameter first: the shop whose files and App Store are used; nil: its own.
  private init(
    _ directory: TemporaryDirectory, of first: Rehearsal? = nil, arguments: [String] = [], formats: String,
    cluster: PrivatePostgres, conninfo: String
  ) async throws {
    (self.directory, self.cluster, self.conninfo) = (directory, cluster, conninfo)
    let (shop, portFile) = ((first?.directory ?? directory).file("shop"), directory.file("port"))
    if let first {
      (appStore, port) = (nil, first.port)
    } else {
      let appStore = try Program.simulator.start(
        ["serve", "--world", shop + "/world.json", "--port-file", portFile, "--log", directory.file("requests")]
          + arguments)
      (self.appStore, port) = (appStore, try await appStore.port(in: portFile))
    }
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
        formats: [\(formats)]
      """
    try configure("")
  }

  deinit { appStore?.kill() }

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
