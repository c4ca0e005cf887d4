import Crypto
import Foundation
import FoundationNetworking
import TestSupport

/// A shop with notifications: a few orders, an App Store with its own clock, and apps with keys.
final class NotifiedShop: ShopDatabase {
  static let start: Int64 = 1_795_143_600_000
  static let day: Int64 = 86_400_000

  let directory: TemporaryDirectory
  let conninfo: String
  private let appStore: Program.Running
  private let port: Int

  /// - Parameters:
  ///   - faulty: the app whose key Apple does not know.
  ///   - sendsNotifications: false if version-2 notifications are not switched on.
  init(
    transactions: [[String: Any]], apps: [String] = ["game"], faulty: String? = nil, latency: String = "0",
    sendsNotifications: Bool = true
  ) async throws {
    directory = try TemporaryDirectory()
    conninfo = try await DatabaseRole.makeDatabase(of: PrivatePostgres.shared())
    let roots = directory.file("roots")
    try FileManager.default.createDirectory(atPath: roots, withIntermediateDirectories: true)
    var known: [[String: Any]] = []
    for app in apps {
      let key = P256.Signing.PrivateKey()
      let other = P256.Signing.PrivateKey()
      try key.pemRepresentation.write(toFile: directory.file("\(app).p8"), atomically: true, encoding: .utf8)
      known.append([
        "bundleId": "com.example.\(app)", "issuerId": "issuer", "keyId": "key",
        "publicKey": (app == faulty ? other : key).publicKey.pemRepresentation,
        "sendsNotifications": sendsNotifications,
      ])
    }
    let world: [String: Any] = [
      "apps": known, "receipts": [], "now": Self.start,
      "transactions": transactions.map { transaction in
        [
          "environment": "Production", "bundleId": "com.example.game", "productId": "gems.100", "type": "Consumable",
          "price": 1_990, "currency": "USD",
        ].merging(transaction) { $1 }
      },
    ]
    try JSONSerialization.data(withJSONObject: world).write(to: URL(fileURLWithPath: directory.file("world.json")))
    appStore = try Program.simulator.start([
      "serve", "--world", directory.file("world.json"), "--port-file", directory.file("port"), "--log",
      directory.file("requests"), "--root-certificate", roots + "/root.pem", "--latency", latency,
    ])
    port = try await Rehearsal.port(in: directory.file("port"), of: appStore)
    try configuration(apps).write(toFile: directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
  }

  deinit { appStore.kill() }

  private func configuration(_ apps: [String]) -> String {
    let sections = apps.map { app in
      """
        \(app):
          bundleId: com.example.\(app)
          issuerId: issuer
          keyId: key
          privateKeyFile: \(directory.file("\(app).p8"))
      """
    }
    return """
      database:
        url: "\(conninfo)"
      app:
      \(sections.joined(separator: "\n"))
      appstore:
        apps: [\(apps.joined(separator: ", "))]
        requestsPerSecond: 0
        productionUrl: http://127.0.0.1:\(port)/production
        sandboxUrl: http://127.0.0.1:\(port)/sandbox
        verifyReceiptUrl: http://127.0.0.1:\(port)/production/verifyReceipt
        verifyReceiptSandboxUrl: http://127.0.0.1:\(port)/sandbox/verifyReceipt
        rootCertificates: \(directory.file("roots"))
        pinRoots: false
      report:
        directory: \(directory.file("reports"))
      """
  }

  func configure(_ section: String) throws {
    let file = directory.file("night-audit.yaml")
    try (String(contentsOfFile: file, encoding: .utf8) + "\n" + section).write(
      toFile: file, atomically: true, encoding: .utf8)
  }

  /// Adds a delivered order that states a transaction, both at the given time in milliseconds.
  func sell(_ orderId: String, naming transactionId: String, at time: Int64, product: String = "gems.100") async throws
  {
    try await execute(
      """
      INSERT INTO sales.orders (order_id, user_id, bundle_id, product_id, quantity, amount, currency, status,
        transaction_id, created_at, verified_at, updated_at)
      SELECT '\(orderId)', 'u1', 'com.example.game', '\(product)', 1, 1.99, 'USD', 'verified', '\(transactionId)', t, t, t
      FROM to_timestamp(\(time / 1_000)) t;
      INSERT INTO sales.deliveries (delivery_id, order_id, user_id, product_id, quantity, delivered_at)
      VALUES ('d-\(orderId)', '\(orderId)', 'u1', '\(product)', 1, to_timestamp(\(time / 1_000)));
      """)
  }

  static func asOf(_ nights: Int64) -> String {
    Date(timeIntervalSince1970: Double((start + nights * day) / 1_000)).ISO8601Format()
  }

  /// Sets the App Store's clock and runs a night.
  func night(_ nights: Int64, _ arguments: String...) async throws -> Program.Result {
    try await setClock(nights)
    return try await run(["run", "--as-of", Self.asOf(nights)] + arguments)
  }

  func setClock(_ nights: Int64) async throws {
    try await control("clock", #"{"now":\#(Self.start + nights * Self.day)}"#)
  }

  func nightAudit(_ arguments: String...) async throws -> Program.Result { try await run(arguments) }

  private func run(_ arguments: [String]) async throws -> Program.Result {
    try await Program.nightAudit.run(arguments + ["--config", directory.file("night-audit.yaml")])
  }

  func control(_ path: String, _ body: String) async throws {
    guard let url = URL(string: "http://127.0.0.1:\(port)/simulator/\(path)") else { return }
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = Data(body.utf8)
    let (_, response) = try await URLSession.shared.data(for: request)
    guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw Rehearsal.Failure("\(path) was refused") }
  }

  /// The number of requests under a path; with `id`, only those about this transaction.
  func requests(_ path: String = "/", about id: String? = nil) throws -> Int {
    guard let log = try? String(contentsOfFile: directory.file("requests"), encoding: .utf8) else { return 0 }
    return log.split(separator: "\n").count { line in
      line.contains("\"path\":\"\(path)") && id.map { line.contains("\"subject\":\"\($0)\"") } ?? true
    }
  }

  func file(_ name: String, night: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: directory.file("reports") + "/\(night)/\(name)"))
  }

  func summary<Value>(_ key: String, night: String) throws -> Value? {
    let document = try JSONSerialization.jsonObject(with: file("summary.json", night: night)) as? [String: Any]
    return document?[key] as? Value
  }
}
