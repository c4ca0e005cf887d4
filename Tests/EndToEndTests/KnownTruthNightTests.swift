import Crypto
import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// The shops of which everything is known, through the whole program: rows in Postgres, signed receipts, the App Store Server
/// API over HTTP, the report's files.
@Suite struct KnownTruthNightTests {
  @Test func everyScenarioComesToWhatIsKnownOfIt() async throws {
    let scenarios = Scenario.all.filter { Self.untold[$0.name] == nil }
    #expect(Set(Self.untold.keys).isSubset(of: Scenario.all.map(\.name)))
    let told = ToldShop(KnownShop(telling: scenarios, seed: 1))
    // Older than what is looked back to.
    let other = SignedShop.gems("1", purchased: "2026-01-01T12:00:00Z")
    let shop = try await SignedShop(
      transactions: told.transactions + [other], signsReceipts: true,
      audit: "testUsers: [\(told.known.world.rules.testUsers.sorted().map { "\"\($0)\"" }.joined(separator: ", "))]")
    try await shop.execute(told.statements.joined(separator: "\n"))
    try await shop.execute(try await told.receiptStatements(shop, anotherPurchase: "1").joined(separator: "\n"))
    let night = try await shop.night(asOf: "2026-11-20T00:00:00Z", since: "2026-01-01")
    #expect(night.result.status == 0, "\(night.result.errors)")
    let names = Dictionary(uniqueKeysWithValues: scenarios.enumerated().map { ("\($0)", $1.name) })
    func story(_ id: Identifier) -> String { names[String(id.text.split(separator: "/")[0])] ?? "-" }
    var said: Set<Story.Expected> = []
    for row in night.findings {
      let kind = try #require(FindingKind(rawValue: row["kind"] ?? ""))
      said.insert(Story.Expected(kind: kind, subject: told.storyId(try #require(Self.subject(of: row)))))
    }
    for missed in told.known.findings.subtracting(said) {
      Issue.record("missed \(missed.kind) on \(missed.subject): \(story(missed.subject))")
    }
    for imagined in said.subtracting(told.known.findings) {
      Issue.record("imagined \(imagined.kind) on \(imagined.subject): \(story(imagined.subject))")
    }
    for (orderId, disposition) in told.known.dispositions {
      let found = night.dispositions[orderId.text]
      #expect(found == disposition.rawValue, "\(orderId): \(story(orderId))")
    }
  }

  /// What a finding stands on: that of its ids which its own stable id is made of.
  private static func subject(of row: [String: String]) -> String? {
    for kind in ["order", "delivery", "receipt", "transaction"] {
      guard let id = row[kind + "_id"], !id.isEmpty else { continue }
      let digest = SHA256.hash(data: Data("\(row["kind"] ?? "")\n\(kind)\n\(id)".utf8))
      if row["finding_id"] == digest.prefix(16).map({ String(format: "%02x", $0) }).joined() { return id }
    }
    return nil
  }

  private static let purchase = "the Server API always says whether it was a purchase; receipts leave it open"

  /// What this channel cannot be told, or what the clock alone makes.
  private static let untold: [String: String] = [
    "Apple is silent tonight": "silence is no answer; outages are tried elsewhere",
    "silent for too long": "silence is no answer; outages are tried elsewhere",
    "the channel carries no account token": "the Server API always says whether there is one",
    "a restore": purchase, "a restore, posted like a purchase": purchase,
    "a restore on the day of the purchase, posted by the order of that day": purchase,
    "a sale of long ago, told on the day of its restore": purchase,
    "a date in the future": "an audit of the past does not know what came later",
  ]
}
