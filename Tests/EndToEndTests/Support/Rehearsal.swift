import Foundation
import Synchronization
import TestSupport

/// A shop with its own database, App Store and configuration.
///
/// Unchecked, because `Process` may not be declared as `Sendable`. All properties are constant.
final class Rehearsal: ShopDatabase, @unchecked Sendable {
  static let asOf = "2026-11-20T03:00:00Z"

  let directory: TemporaryDirectory
  let cluster: PrivatePostgres
  let conninfo: String
  private let appStore: Program.Running
  let port: Int

  /// A sample shop of 500 loaded orders, before the first question to Apple.
  static func sampleShop(
    simulator arguments: [String] = [], shop options: [String] = [], in cluster: PrivatePostgres? = nil
  ) async throws -> Rehearsal {
    let sample = try await sampleFiles(options).file("shop")
    let directory = try TemporaryDirectory()
    let shop = directory.file("shop")
    try FileManager.default.copyItem(atPath: sample, toPath: shop)
    let shared = try await PrivatePostgres.shared()
    let conninfo = try await DatabaseRole.makeDatabase(of: cluster ?? shared, like: "sample shop \(options)") {
      try await load(sample, into: $0)
    }
    return try await Rehearsal(
      directory: directory, world: shop + "/world.json", arguments: arguments, cluster: cluster ?? shared,
      conninfo: conninfo)
  }

  /// The first night of a sample shop. Its reports are moved, so that a copy does not find them at the recorded path.
  private static let audited: Task<Rehearsal, any Error> = Task {
    let shop = try await sampleShop()
    let night = try await shop.nightAudit("run", "--as-of", asOf)
    guard night.status == 3 else { throw Failure("\(night)") }
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
      directory: directory, world: directory.file("shop") + "/world.json", arguments: [], cluster: first.cluster,
      conninfo: try await first.cluster.copyDatabase(first.conninfo))
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
          guard made.status == 0 else { throw Failure(made.errors) }
          return directory
        }
      samples[options] = making
      return making
    }
    return try await making.value
  }

  struct Failure: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
  }

  private init(
    directory: TemporaryDirectory, world: String, arguments: [String], cluster: PrivatePostgres, conninfo: String
  ) async throws {
    (self.directory, self.cluster, self.conninfo) = (directory, cluster, conninfo)
    let portFile = directory.file("port")
    appStore = try Program.simulator.start(
      ["serve", "--world", world, "--port-file", portFile, "--log", directory.file("requests")] + arguments)
    port = try await Rehearsal.port(in: portFile, of: appStore)
    try configuration().write(toFile: directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
  }

  deinit { appStore.kill() }

  /// Returns the port that the program writes into the file as soon as it listens.
  static func port(in file: String, of program: Program.Running) async throws -> Int {
    while program.process.isRunning {
      if let text = try? String(contentsOfFile: file, encoding: .utf8),
        let port = Int(text.trimmingCharacters(in: .whitespacesAndNewlines))
      {
        return port
      }
      await pause()
    }
    throw Failure(await program.finish().errors)
  }

  var reports: String { directory.file("reports") }

  func configuration(reports: String? = nil) throws -> String {
    let shop = directory.file("shop")
    let users = try String(contentsOfFile: shop + "/test-users.txt", encoding: .utf8)
      .split(separator: "\n").joined(separator: ", ")
    let world = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: shop + "/world.json")))
    let apps = (world as? [String: Any])?["apps"] as? [[String: Any]]
    return """
      database:
        url: "\(conninfo)"
      app:
        game:
          bundleId: \(apps?.first?["bundleId"] as? String ?? "")
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
        directory: \(reports ?? self.reports)
      """
  }

  func nightAudit(
    _ arguments: String..., more: [String] = [], environment: [String: String] = [:]
  ) async throws -> Program.Result {
    try await Program.nightAudit.run(
      arguments + more + ["--config", directory.file("night-audit.yaml")], environment: environment)
  }

  func startNight(_ arguments: String...) throws -> Program.Running {
    try Program.nightAudit.start(
      ["run", "--as-of", Rehearsal.asOf, "--config", directory.file("night-audit.yaml")] + arguments)
  }

  private static func load(_ shop: String, into conninfo: String) async throws {
    for (table, key) in [("orders", "order_id"), ("receipts", "receipt_id"), ("deliveries", "delivery_id")] {
      // psql's CSV reader loads the rows, as in a real shop.
      let result = try await Program(path: "/usr/bin/env").run([
        "psql", "--no-psqlrc", "--quiet", "--dbname", DatabaseRole.superuser.conninfo(conninfo), "--command",
        "\\copy sales.\(table) FROM '\(shop)/\(table).csv' CSV HEADER",
      ])
      guard result.status == 0 else { throw Failure("\(key): \(result.errors)") }
    }
  }

  func requests() throws -> [[String: Any]] {
    try String(contentsOfFile: directory.file("requests"), encoding: .utf8).split(separator: "\n").compactMap {
      try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
  }

  func files(_ folder: String) throws -> [String: Data] {
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      files[name] = try Data(contentsOf: URL(fileURLWithPath: folder + "/" + name))
    }
    return files
  }
}

extension Program {
  init(path: String) { executable = URL(fileURLWithPath: path) }
}
