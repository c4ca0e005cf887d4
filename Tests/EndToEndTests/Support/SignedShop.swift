import AppStore
import Crypto
import Foundation
import Reconciliation
import TestSupport
import Testing

/// A shop with signed transactions and keys for the App Store Server API. Tests write its orders. The simulated Apple
/// signs with a chain of its own.
final class SignedShop: TestShop {
  struct App {
    var name: String
    var bundleId: String
    let key = P256.Signing.PrivateKey()
    var isKeyRevoked = false
  }

  static let asOf = "2026-11-20T03:00:00Z"
  static let game = App(name: "game", bundleId: "com.example.game")

  let directory: TemporaryDirectory
  let conninfo: String
  let port: Int
  let configuration: String
  let apps: [App]
  private let appStore: Program.Running

  /// - Parameters:
  ///   - signsReceipts: Apple also signs app receipts and old ones, which needs RSA keys.
  ///   - sendsNotifications: false if version-2 notifications are not switched on.
  init(
    apps: [App] = [game], transactions: [[String: Any]], errors: [String: Any] = [:], signsReceipts: Bool = false,
    sendsNotifications: Bool = true, audit: String = "testUsers: []", formats: String = "csv",
    simulator arguments: [String] = []
  ) async throws {
    let directory = try TemporaryDirectory()
    (self.directory, self.apps) = (directory, apps)
    conninfo = try await DatabaseRole.makeDatabase(of: PrivatePostgres.shared())
    try directory.write(
      Self.world(apps: apps, transactions: transactions, errors: errors, sendsNotifications: sendsNotifications),
      "world.json")
    try FileManager.default.createDirectory(atPath: directory.file("roots"), withIntermediateDirectories: true)
    appStore = try Program.simulator.start(
      [
        "serve", "--world", directory.file("world.json"), "--port-file", directory.file("port"), "--log",
        directory.file("requests"), "--root-certificate", directory.file("roots/root.pem"),
      ] + (signsReceipts ? ["--receipt-root-certificate", directory.file("roots/receipts.pem")] : []) + arguments)
    port = try await appStore.port(in: directory.file("port"))
    let sections = try apps.map { app in
      """
        \(app.name):
          bundleId: \(app.bundleId)
          issuerId: 57246542-96fe-1a63-e053-0824d011072a
          keyId: 2X9R4HXF34
          privateKeyFile: \(try directory.write(app.key.pemRepresentation, app.name + ".p8"))
      """
    }
    configuration = """
      database:
        url: "\(conninfo)"
      app:
      \(sections.joined(separator: "\n"))
      # Few orders, most of them wrong on purpose, so that every first night would be held.
      audit:
        holdShare: 1
        \(audit)
      appstore:
        apps: [\(apps.map(\.name).joined(separator: ", "))]
        requestsPerSecond: 0
        concurrency: 8
        productionUrl: http://127.0.0.1:\(port)/production
        sandboxUrl: http://127.0.0.1:\(port)/sandbox
        rootCertificates: \(directory.file("roots"))
        pinRoots: false
      report:
        directory: \(directory.file("reports"))
        formats: [\(formats)]
      """
    try configure("")
  }

  deinit { appStore.kill() }

  // MARK: The shop's rows

  /// Adds an order of `gems.100` for 9.90 USD.
  func order(
    _ id: String, transaction: String? = nil, app: App = game, created: String = "2026-11-18T12:00:00Z",
    isDelivered: Bool = true
  ) async throws {
    try await execute(
      Self.orderStatements(id, transaction: transaction, app: app, created: created, isDelivered: isDelivered))
  }

  /// Adds an order for each transaction, which states it, at once. The order's ID is that of the transaction after `o`.
  func orders(stating transactions: [String]) async throws {
    try await execute(transactions.map { Self.orderStatements("o" + $0, transaction: $0) }.joined())
  }

  /// The statements that add an order.
  static func orderStatements(
    _ id: String, transaction: String? = nil, app: App = game, created: String = "2026-11-18T12:00:00Z",
    isDelivered: Bool = true
  ) -> String {
    let named = transaction.map { "'\($0)'" } ?? "NULL"
    let delivery = """
      INSERT INTO sales.deliveries VALUES ('delivery of \(id)', '\(id)', 'user of \(id)', 'gems.100', 1, '\(created)',
        NULL);
      """
    return """
      INSERT INTO sales.orders VALUES ('\(id)', 'user of \(id)', '\(app.bundleId)', 'gems.100', 1, 9.90, 'USD',
        'verified', \(named), NULL, '\(created)', '\(created)', '\(created)');
      \(isDelivered ? delivery : "")
      """
  }

  func receipt(_ payload: String, for order: String, received: String = "2026-11-18T12:00:01Z") async throws {
    try await execute(
      """
      INSERT INTO sales.receipts VALUES
        ('receipt of \(order)', '\(order)', 'user of \(order)', '\(payload)', NULL, 'timeout', NULL, '\(received)')
      """)
  }

  // MARK: Apple

  func world(transactions: [[String: Any]]) throws -> String {
    try Self.world(apps: apps, transactions: transactions, errors: [:], sendsNotifications: true)
  }

  private static func world(
    apps: [App], transactions: [[String: Any]], errors: [String: Any], sendsNotifications: Bool
  ) throws -> String {
    let world: [String: Any] = [
      "now": milliseconds(asOf), "transactions": transactions, "receipts": [], "errors": errors,
      "apps": apps.map { app -> [String: Any] in
        let known = app.isKeyRevoked ? P256.Signing.PrivateKey() : app.key
        return [
          "bundleId": app.bundleId, "publicKey": known.publicKey.pemRepresentation,
          "sendsNotifications": sendsNotifications,
        ]
      },
    ]
    return String(decoding: try JSONSerialization.data(withJSONObject: world), as: UTF8.self)
  }

  static func milliseconds(_ time: String) -> Int64 {
    (try? Date(time, strategy: .iso8601)).map { Int64($0.timeIntervalSince1970 * 1_000) } ?? 0
  }

  func setClock(_ time: String) async throws {
    try await control("clock", #"{"now":\#(Self.milliseconds(time))}"#)
  }

  static func gems(
    _ id: String, app: App = game, environment: String = "Production", purchased: String = "2026-11-18T12:00:00Z",
    refunded: String? = nil
  ) -> [String: Any] {
    var transaction: [String: Any] = [
      "transactionId": id, "environment": environment, "bundleId": app.bundleId, "productId": "gems.100",
      "type": "Consumable", "purchaseDate": milliseconds(purchased), "price": 9_900, "currency": "USD",
      "finished": true,
    ]
    if let refunded {
      transaction["revocationDate"] = milliseconds(refunded)
      transaction["revocationType"] = "REFUND_FULL"
    }
    return transaction
  }

  /// The transaction as Apple states it at `time`, from whichever environment has it.
  func signed(_ id: String, app: App = game, at time: String = "2026-11-18T12:00:00Z") async throws -> String {
    try await setClock(time)
    let side = { (name: String) in
      ServerAPIHost(url: try EndpointURL("http://127.0.0.1:\(self.port)/\(name)"), requestsPerSecond: nil)
    }
    let client = try ServerAPIClient(
      transport: SimulatorControl.transport, production: side("production"), sandbox: side("sandbox"),
      credentials: ServerAPICredentials(
        issuerId: "issuer", keyId: "key", privateKeyPEM: Secret(app.key.pemRepresentation), bundleId: app.bundleId),
      verifier: JWSVerifier(roots: try TrustedRoots(directory: directory.file("roots"), pinned: false)),
      version: "test", now: { .init(milliseconds: Int64(Date.now.timeIntervalSince1970 * 1_000)) })
    let answer = try await client.transactionInfo(id)
    try await setClock(Self.asOf)
    guard case .found(let fact) = answer.outcome else { throw Program.Failure("\(answer)") }
    return try await payload("signed", [id], at: time, environment: fact.environment.rawValue)
  }

  /// A client's payload with these transactions, signed at `time`, with optional damage.
  func payload(
    _ form: String, _ ids: [String], at time: String, damage: String? = nil, environment: String? = nil,
    bundleId: String? = nil
  ) async throws -> String {
    var order: [String: Any] = ["form": form, "transactions": ids, "signedDate": Self.milliseconds(time)]
    order["damage"] = damage
    order["environment"] = environment
    order["bundleId"] = bundleId
    let body = String(decoding: try JSONSerialization.data(withJSONObject: order), as: UTF8.self)
    guard let payload = try await control("payload", body)["payload"] as? String else {
      throw Program.Failure("no payload")
    }
    return payload
  }

  private var forgotten = 0

  private func log() throws -> [Substring] {
    let lines = try String(contentsOfFile: directory.file("requests"), encoding: .utf8).split(separator: "\n")
    return Array(lines.dropFirst(forgotten))
  }

  /// How often each transaction was looked up since the last `forgetRequests`.
  func timesAsked() throws -> [String: Int] {
    let subjects = try log().compactMap { line in
      let fields = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return (fields?["path"] as? String)?.hasSuffix("/transactions") == true ? fields?["subject"] as? String : nil
    }
    return Dictionary(subjects.map { ($0, 1) }, uniquingKeysWith: +)
  }

  func forgetRequests() throws { forgotten += try log().count }

  // MARK: Nights

  struct Night {
    var result: Program.Result
    var directory: String
    var payments: [String: String]
    var dispositions: [String: String]
    var findings: [[String: String]]
    var receipts: [[String: String]]
    var summary: [String: Any]

    /// The kinds of the findings, in the order of the file.
    var kinds: [String] { findings.compactMap { $0["kind"] } }
  }

  private var nights = 0

  /// A night with a report of its own. `exits`: the expected exit status; nil: any.
  @discardableResult
  func night(
    asOf: String = asOf, since: String = "2026-11-01", exits status: Int32? = nil, _ arguments: String...,
    more: [String] = [], sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Night {
    nights += 1
    let out = directory.file("night-\(nights)")
    let result = try await nightAudit(
      "run", "--as-of", asOf, "--since", since, "--until", "2026-11-30", "--out", out, more: arguments + more,
      exits: status.map { [$0] }, sourceLocation: sourceLocation)
    let orders = try table("orders", out)
    return Night(
      result: result, directory: out,
      payments: Dictionary(
        uniqueKeysWithValues: orders.map { order in
          let words = [order["payment"], order["payment_reason"]].compactMap(\.self).filter { !$0.isEmpty }
          return (order["order_id"] ?? "", words.joined(separator: " "))
        }),
      dispositions: Dictionary(
        uniqueKeysWithValues: orders.map { ($0["order_id"] ?? "", $0["disposition"] ?? "") }),
      findings: try table("findings", out), receipts: try table("receipts", out), summary: try summary(out))
  }
}
