import Foundation
import TestSupport
import Testing

/// A sample shop of 500 orders, which asks through verifyReceipt. Its reports have no sheets and no page unless `formats`
/// says so, because they take longer than the audit.
final class Rehearsal: TestShop, Sendable {
  static let asOf = "2026-11-20T03:00:00Z"

  let directory: TemporaryDirectory
  let cluster: PrivatePostgres
  let conninfo: String
  let configuration: String
  private let appStore: SimulatedAppStore

  var port: Int { appStore.port }
  /// The folder of the files that `sample-shop` wrote.
  var sample: String { appStore.directory.file("shop") }

  /// A simulated App Store in the folder of its shop's files.
  ///
  /// Unchecked, because `Process` may not be declared as `Sendable`. All properties are constant.
  private final class SimulatedAppStore: @unchecked Sendable {
    let directory: TemporaryDirectory
    let port: Int
    private let running: Program.Running

    init(in directory: TemporaryDirectory, _ arguments: [String] = []) async throws {
      self.directory = directory
      let portFile = directory.file("port")
      running = try Program.simulator.start(
        [
          "serve", "--world", directory.file("shop/world.json"), "--port-file", portFile, "--log",
          directory.file("requests"),
        ] + arguments)
      port = try await running.port(in: portFile)
    }

    deinit { running.kill() }
  }

  /// The App Store that tests share.
  private static let sharedAppStore = Task {
    let directory = try TemporaryDirectory()
    let made = try await Program.simulator.run([
      "sample-shop", "--directory", directory.file("shop"), "--orders", "500", "--as-of", asOf,
    ])
    guard made.status == 0 else { throw Program.Failure(made.errors) }
    return try await SimulatedAppStore(in: directory)
  }

  /// The first night of a sample shop, by formats. Its reports are moved, so that a copy does not find them at the
  /// recorded path.
  private static let audited = MadeOnce<String, Rehearsal>()

  /// A sample shop before its first night, for tests that change nothing.
  static let unchanged = Task { try await sampleShop() }

  /// A sample shop of 500 loaded orders, before the first question to Apple.
  ///
  /// - Parameter arguments: for an App Store of its own, whose requests are counted, or whose answers or files are
  ///   changed; nil: the one that tests share.
  static func sampleShop(
    simulator arguments: [String]? = nil, formats: String = "csv", in cluster: PrivatePostgres? = nil
  ) async throws -> Rehearsal {
    let shared = try await sharedAppStore.value
    let (directory, sample) = (try TemporaryDirectory(), shared.directory.file("shop"))
    var appStore = shared
    if let arguments {
      try FileManager.default.copyItem(atPath: sample, toPath: directory.file("shop"))
      appStore = try await SimulatedAppStore(in: directory, arguments)
    }
    let usual = try await PrivatePostgres.shared()
    let conninfo = try await DatabaseRole.makeDatabase(of: cluster ?? usual, like: "sample shop") {
      try await load(sample, into: $0)
    }
    return try Rehearsal(directory, appStore, formats: formats, cluster: cluster ?? usual, conninfo: conninfo)
  }

  /// A sample shop after its first night, with a copy of its database and its reports. `verify --run` does not find the
  /// report of that night once a test has edited it, because its recorded path is gone.
  static func auditedShop(formats: String = "csv") async throws -> Rehearsal {
    let first = try await audited.value(of: formats) {
      let shop = try await sampleShop(formats: formats)
      try await shop.nightAudit("run", "--as-of", asOf, exits: [3])
      try FileManager.default.moveItem(atPath: shop.reports, toPath: shop.directory.file("first"))
      return shop
    }
    let directory = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: first.directory.file("first"), toPath: directory.file("reports"))
    return try Rehearsal(
      directory, first.appStore, formats: formats, cluster: first.cluster,
      conninfo: try await first.cluster.copyDatabase(first.conninfo))
  }

  /// A shop without rows, whose nights are complete.
  static func emptyShop(formats: String = "csv") async throws -> Rehearsal {
    let shop = try await sampleShop(formats: formats)
    try await shop.execute("TRUNCATE sales.orders, sales.receipts, sales.deliveries")
    return shop
  }

  private init(
    _ directory: TemporaryDirectory, _ appStore: SimulatedAppStore, formats: String, cluster: PrivatePostgres,
    conninfo: String
  ) throws {
    (self.directory, self.appStore, self.cluster, self.conninfo) = (directory, appStore, cluster, conninfo)
    let (shop, port) = (appStore.directory.file("shop"), appStore.port)
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
