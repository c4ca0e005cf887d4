import Crypto
import Foundation

/// The files of a sample shop in one directory.
struct SampleShopFiles {
  var directory: URL

  private struct Expected: Encodable {
    var asOf: String
    var businessDay: String
    var since: String
    var until: String
    /// Orders by disposition.
    var dispositions: [String: Int]
    /// Findings by kind.
    var findings: [String: Int]
    /// By order id.
    var orders: [String: Expectation]
    /// Kinds of findings without an order, by the id of their transaction, receipt or delivery.
    var unowned: [String: String]
  }

  /// Creates the directory and writes every file, over older ones of the same names.
  /// - Parameter seed: what the key of the App Store Connect API is made from.
  func write(_ shop: ShopBuilder, seed: UInt64) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    try write(
      CommaSeparated.orders(shop.orders, bundleId: shop.quiz == nil ? nil : Catalogue.bundleId), to: "orders.csv")
    try write(CommaSeparated.receipts(shop.receipts), to: "receipts.csv")
    try write(CommaSeparated.deliveries(shop.deliveries), to: "deliveries.csv")
    let key = try SampleReports.key(seed: seed)
    let quizKey = try QuizApp.key(seed: seed)
    try write(json: shop.reportedWorld(key: key, quizKey: quizKey), to: "world.json")
    if shop.quiz != nil { try writeSecret(quizKey.pemRepresentation, to: "SubscriptionKey_\(QuizApp.keyId).p8") }
    try write(json: expected(shop), to: "expected.json")
    let testers = shop.customers.testers.map { shop.customers.all[$0].userId + "\n" }
    try write(testers.joined(), to: "test-users.txt")
    try writeSecret(shop.world.apps.lazy.compactMap(\.sharedSecret).first ?? "", to: "shared-secret")
    try writeSecret(key.pemRepresentation, to: "AuthKey_\(SampleReports.keyId).p8")
  }

  private func expected(_ shop: ShopBuilder) -> Expected {
    let findings = shop.expectations.values.flatMap(\.findings) + shop.unowned.values
    return Expected(
      asOf: Timeline.text(shop.timeline.asOf), businessDay: shop.timeline.businessDay,
      since: shop.timeline.firstDay, until: shop.timeline.lastDay,
      dispositions: Dictionary(shop.expectations.values.map { ($0.disposition, 1) }, uniquingKeysWith: +),
      findings: Dictionary(findings.map { ($0, 1) }, uniquingKeysWith: +),
      orders: shop.expectations, unowned: shop.unowned)
  }

  private func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: directory.appending(path: name), options: .atomic)
  }

  private func write(json value: some Encodable, to name: String) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try encoder.encode(value).write(to: directory.appending(path: name), options: .atomic)
  }

  /// For the owner alone, from its first byte on.
  private func writeSecret(_ secret: String, to name: String) throws {
    let path = directory.appending(path: name).path
    try? FileManager.default.removeItem(atPath: path)
    let isWritten = FileManager.default.createFile(
      atPath: path, contents: Data(secret.utf8), attributes: [.posixPermissions: 0o600])
    guard isWritten else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: path]) }
  }
}
