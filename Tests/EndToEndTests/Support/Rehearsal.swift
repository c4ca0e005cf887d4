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

  /// First nights of sample shops. Their reports are moved, so that a copy does not find them at the recorded path.
  private static let audited = MadeOnce<String, Rehearsal>()

  /// A sample shop before its first night, for tests that change nothing.
  static let unchanged = Task { try await sampleShop() }

  /// A sample shop of 500 loaded orders, before the first question to Apple.
  ///
  /// - Parameters:
  ///   - arguments: for an App Store of its own, whose requests are counted, or whose answers or files are changed; nil:
  ///     the one that tests share.
  ///   - isSmall: every unusual order, and few ordinary ones. No night of this shop is held.
  static func sampleShop(
    simulator arguments: [String]? = nil, formats: String = "csv", isSmall: Bool = false,
    in cluster: PrivatePostgres? = nil
  ) async throws -> Rehearsal {
    let shared = try await sharedAppStore.value
    let (directory, sample) = (try TemporaryDirectory(), shared.directory.file("shop"))
    var appStore = shared
    if let arguments {
      try FileManager.default.copyItem(atPath: sample, toPath: directory.file("shop"))
      appStore = try await SimulatedAppStore(in: directory, arguments)
    }
    let usual = try await PrivatePostgres.shared()
    let name = isSmall ? "small sample shop" : "sample shop"
    let conninfo = try await DatabaseRole.makeDatabase(of: cluster ?? usual, like: name) {
      try await load(sample, into: $0)
      if isSmall { try await removeOrdinaryOrders(of: sample, from: $0) }
    }
    return try Rehearsal(
      directory, appStore, formats: formats, isSmall: isSmall, cluster: cluster ?? usual, conninfo: conninfo)
  }

  /// A sample shop after its first night, with a copy of its database and its reports. `verify --run` does not find the
  /// report of that night once a test has edited it, because its recorded path is gone.
  static func auditedShop(
    asOf: String = asOf, formats: String = "csv", isSmall: Bool = false
  ) async throws -> Rehearsal {
    let first = try await audited.value(of: "\(asOf) \(formats) \(isSmall)") {
      let shop = try await sampleShop(formats: formats, isSmall: isSmall)
      try await shop.nightAudit("run", "--as-of", asOf, exits: [3])
      try FileManager.default.moveItem(atPath: shop.reports, toPath: shop.directory.file("first"))
      return shop
    }
    let directory = try TemporaryDirectory()
    try FileManager.default.copyItem(atPath: first.directory.file("first"), toPath: directory.file("reports"))
    return try Rehearsal(
      directory, first.appStore, formats: formats, isSmall: isSmall, cluster: first.cluster,
      conninfo: try await first.cluster.copyDatabase(first.conninfo))
  }

  /// A shop without rows, whose nights are complete.
  static func emptyShop(formats: String = "csv") async throws -> Rehearsal {
    let shop = try await sampleShop(formats: formats)
    try await shop.execute("TRUNCATE sales.orders, sales.receipts, sales.deliveries")
    return shop
  }

  private init(
    _ directory: TemporaryDirectory, _ appStore: SimulatedAppStore, formats: String, isSmall: Bool,
    cluster: PrivatePostgres, conninfo: String
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
        \(isSmall ? "holdShare: 1" : "")
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

  /// Keeps all orders of customers with an unusual order, and those of a tenth of the others.
  private static func removeOrdinaryOrders(of shop: String, from conninfo: String) async throws {
    let document = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: shop + "/expected.json")))
    let expected = (document as? [String: Any])?["orders"] as? [String: [String: Any]] ?? [:]
    let unusual = expected.filter { _, order in
      order["disposition"] as? String != "settled" || (order["findings"] as? [String])?.isEmpty == false
    }
    try await DatabaseRole.superuser.execute(
      """
      CREATE TEMPORARY TABLE removed AS SELECT order_id FROM sales.orders
        WHERE user_id NOT LIKE '%7' AND user_id NOT IN (SELECT user_id FROM sales.orders
          WHERE order_id IN (\(unusual.keys.map { "'\($0)'" }.joined(separator: ", "))));
      DELETE FROM sales.deliveries WHERE order_id IN (TABLE removed);
      DELETE FROM sales.receipts WHERE order_id IN (TABLE removed);
      DELETE FROM sales.orders WHERE order_id IN (TABLE removed);
      """, in: conninfo)
  }

  /// The day that the link `latest` leads to.
  func latestDay() throws -> String {
    try FileManager.default.destinationOfSymbolicLink(atPath: reports + "/latest")
  }
}
