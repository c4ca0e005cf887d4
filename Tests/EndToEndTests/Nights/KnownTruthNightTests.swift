import Crypto
import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

@Suite(.serialized) struct KnownTruthNightTests {
  @Test func everyScenarioHasItsExpectedResult() async throws {
    let told = SimulatedKnownShop(KnownShop(scenarios: Self.scenarios, seed: 1))
    let shop = try await Self.shop(told)
    try await shop.execute(told.statements(of: told.known.world, payloads: Self.payloads(told, shop)))
    try check(try await shop.night(asOf: Self.text(ShopFixture.asOf), since: "2026-01-01"), told)
  }

  /// Random sequences of nights, with late rows, outages, decisions of people, killed and repeated runs. No night
  /// accuses an innocent order; the last one finds the truth, and the trail verifies.
  ///
  /// `TEST_EFFORT` multiplies the number; `TEST_SEED` selects others; `TEST_SHOP` repeats the seed that a failure
  /// names.
  @Test(arguments: Effort.blocks.prefix(Effort.factor))
  func theLastOfRandomNightsFindsTheTruth(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let simulated = SimulatedShop(seed: seed, scenarios: Self.scenarios, stories: 8...20)
    let told = SimulatedKnownShop(simulated.known)
    let shop = try await Self.shop(told)
    let payloads = try await Self.payloads(told, shop)
    var cares: [String: FindingDecisionFields] = [:]
    var last: SignedShop.Night?
    for night in simulated.nights {
      let comment = Comment(rawValue: "seed \(seed), night of \(Self.text(night))")
      let isLast = night == simulated.nights.last
      try await shop.control("clock", #"{"now":\#(night.microseconds / 1_000)}"#)
      let faults = [
        #""outage":false,"errorRate":0"#, #""outage":false,"errorRate":0.4"#, #""outage":true,"errorRate":0"#,
      ]
      try await shop.control(
        "faults", "{\(isLast ? faults[0] : random.pick(faults[0], faults[0], faults[1], faults[2]))}")
      try await shop.execute(told.statements(of: simulated.tables(at: night), payloads: payloads))
      let arguments = ["--max-duration", isLast ? "10m" : "2s"]
      func start(through conninfo: String? = nil) throws -> Program.Running {
        try shop.start(
          "run", "--as-of", Self.text(night), more: arguments,
          environment: ["NIGHT_AUDIT_DATABASE_URL": conninfo ?? shop.conninfo])
      }
      // A root certificate that is installed later: refusals without it are judged again.
      if !isLast, random.oneIn(4) {
        let (root, away) = (shop.directory.file("roots/root.pem"), shop.directory.file("root.pem"))
        try FileManager.default.moveItem(atPath: root, toPath: away)
        let result = await (try start()).finish()
        try FileManager.default.moveItem(atPath: away, toPath: root)
        #expect([0, 3, 78].contains(result.status), "\(result.errors) \(comment)")
      }
      if random.oneIn(3) {
        let passage = try await DatabaseProxy(to: shop.conninfo, at: random.number(1...400))
        let killed = await (try start(through: passage.conninfo)).finish()
        #expect([128 + SIGKILL, 0, 3].contains(killed.status), "\(killed.errors) \(comment)")
      }
      if random.oneIn(4) {
        let rivals = try (0..<2).map { _ in try start() }
        var statuses: [Int32] = []
        for rival in rivals { statuses.append(await rival.finish().status) }
        #expect(
          statuses.allSatisfy { [0, 3, 75].contains($0) } && statuses != [75, 75], "\(statuses) \(comment)")
      }
      let said = try await shop.night(asOf: Self.text(night), since: "2026-01-01", more: arguments)
      #expect(said.result.status == 0 || !isLast && said.result.status == 3, "\(said.result.errors) \(comment)")
      try await shop.nightAudit("verify", said.directory, exits: [0])
      for finding in try Self.findings(said, told) where finding.kind.accuses {
        #expect(simulated.isAccusable(finding.subject, at: night), "\(finding) \(comment)")
      }
      let rows = Dictionary(uniqueKeysWithValues: said.findings.map { ($0["finding_id"] ?? "", $0) })
      cares = cares.filter { rows[$0.key] != nil }
      for (id, care) in cares { #expect(FindingDecisionFields(rows[id] ?? [:]) == care, "\(id) \(comment)") }
      for _ in 0..<random.number(0...3) {
        guard let (id, row) = rows.sorted(by: { $0.key < $1.key }).randomElement(using: &random) else { break }
        var care = cares[id] ?? FindingDecisionFields(row)
        try await shop.nightAudit("findings", more: care.change(of: id, &random), exits: [0])
        cares[id] = care
      }
      if rows.count > 1, random.oneIn(4) {
        let ids = rows.keys.sorted()
        for arguments in [["assign", ids[0], ids[ids.count - 1], "--to", "nobody for long"], ["undo"]] {
          try await shop.nightAudit("findings", more: arguments, exits: [0])
        }
      }
      if random.oneIn(4), let past = simulated.nights.first {
        try await shop.nightAudit(
          "reconcile", "--as-of", Self.text(past), "--out", shop.directory.file("past"), exits: [0, 3])
      }
      last = said
    }
    try check(try #require(last), told, "seed \(seed)")
    try await shop.nightAudit("verify", exits: [0])
    print("KnownTruthNightTests: \(simulated.nights.count) nights, seed \(seed)")
  }

  private struct FindingDecisionFields: Equatable {
    var status, owner, due, remark: String

    init(_ row: [String: String]) {
      (status, owner) = (row["status"] ?? "", row["owner"] ?? "")
      (due, remark) = (row["due"] ?? "", row["remark"] ?? "")
    }

    /// Records one more decision and returns the arguments of its command.
    mutating func change(of id: String, _ random: inout SeededGenerator) -> [String] {
      switch random.number(0...4) {
      case 0:
        owner = "owner \(random.number(1...99))"
        return ["assign", id, "--to", owner]
      case 1:
        due = "2027-01-\(random.number(10...28))"
        return ["due", id, "--on", due]
      case 2:
        remark = "remark \(random.number(1...999))"
        return ["remark", id, "--text", remark]
      case 3 where status == "open":
        status = "acknowledged"
        return ["acknowledge", id]
      default:
        status = status == "closed" ? "open" : "closed"
        return [status == "open" ? "reopen" : "close", id]
      }
    }
  }

  static let scenarios = Scenario.all(.serverApi)

  static func text(_ instant: Instant) -> String {
    Date(timeIntervalSince1970: Double(instant.seconds)).ISO8601Format()
  }

  /// A purchase older than the lookback, for forged receipts.
  private static var another: [String: Any] { SignedShop.gems("1", purchased: "2026-01-01T12:00:00Z") }

  static func shop(_ told: SimulatedKnownShop) async throws -> SignedShop {
    let users = told.known.world.rules.testUsers.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
    let shop = try await SignedShop(
      transactions: told.transactions + [another], signsReceipts: true, audit: "testUsers: [\(users)]")
    try await shop.execute(told.known.world.catalogueRows)
    return shop
  }

  static func payloads(_ told: SimulatedKnownShop, _ shop: SignedShop) async throws -> [Identifier: String] {
    try await told.payloads(from: shop, anotherPurchase: "1")
  }

  private func check(_ night: SignedShop.Night, _ told: SimulatedKnownShop, _ comment: Comment = "") throws {
    #expect(night.result.status == 0, "\(night.result.errors) \(comment)")
    let said = try Self.findings(night, told)
    for missed in told.known.findings.subtracting(said) {
      Issue.record("missed \(missed.kind) on \(missed.subject) \(comment)")
    }
    for imagined in said.subtracting(told.known.findings) {
      Issue.record("false \(imagined.kind) on \(imagined.subject) \(comment)")
    }
    for (orderId, disposition) in told.known.dispositions {
      let found = night.dispositions[orderId.text]
      #expect(found == disposition.rawValue, "\(orderId) \(comment)")
    }
  }

  private static func findings(_ night: SignedShop.Night, _ told: SimulatedKnownShop) throws -> Set<
    ScenarioFixture.Expected
  > {
    Set(
      try night.findings.map { row in
        let kind = try #require(FindingKind(rawValue: row["kind"] ?? ""))
        return ScenarioFixture.Expected(kind: kind, subject: told.storyId(try #require(Self.subject(of: row))))
      })
  }

  /// The record ID from which the finding ID is derived.
  private static func subject(of row: [String: String]) -> String? {
    for kind in ["order", "delivery", "receipt", "transaction"] {
      guard var id = row[kind + "_id"], !id.isEmpty else { continue }
      if kind == "transaction", row["kind"] == "lapsed_still_served" { id += " \(row["user_id"] ?? "")" }
      let digest = SHA256.hash(data: Data("\(row["kind"] ?? "")\n\(kind)\n\(id)".utf8))
      if row["finding_id"] == digest.prefix(16).map({ String(format: "%02x", $0) }).joined() { return id }
    }
    return nil
  }
}
