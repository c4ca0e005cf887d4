import Foundation
import Reconciliation
import TestSupport

@testable import SampleWorlds

/// A shop whose night is repeated under different fault profiles, each time in a copy of its database.
struct FaultProfileShop {
  typealias Instant = String

  private(set) var first: Instant
  private(set) var second: Instant
  private let directory: TemporaryDirectory
  private let environment: [String: String]
  private let conninfo: String
  private let control: SimulatorControl
  private let owner: AnyObject

  /// A shop with all scenarios, before the first question.
  init(_ channel: FaultProfile.Channel) async throws {
    first = "2026-11-20T00:00:00Z"
    second = "2026-11-21T00:00:00Z"
    environment = channel == .signedReceipts ? ["NIGHT_AUDIT_APPSTORE_CHANNEL": "verifyReceipt"] : [:]
    switch channel {
    case .serverApi, .signedReceipts:
      // The second night may have older answers about rows written after the first.
      let later = Set(Scenario.afterwards.map(\.name))
      let scenarios = KnownTruthNightTests.scenarios.filter { !later.contains($0.name) }
      let told = SimulatedKnownShop(KnownShop(scenarios: scenarios, seed: 1))
      let shop = try await KnownTruthNightTests.shop(told)
      try await shop.execute(
        told.statements(of: told.known.world, payloads: try await KnownTruthNightTests.payloads(told, shop)))
      (directory, conninfo, control, owner) = (shop.directory, shop.conninfo, SimulatorControl(port: shop.port), shop)
    case .verifyReceipt:
      let shop = try await Rehearsal.sampleShop()
      (directory, conninfo, control, owner) = (shop.directory, shop.conninfo, SimulatorControl(port: shop.port), shop)
    }
  }

  private init(_ shop: FaultProfileShop, in conninfo: String, first: Instant, second: Instant) {
    (self.first, self.second, self.conninfo) = (first, second, conninfo)
    (directory, environment, control, owner) = (shop.directory, shop.environment, shop.control, shop.owner)
  }

  /// The shop after an undisturbed night long ago, so that all answers are stale.
  func knowing() async throws -> FaultProfileShop {
    let database = try await copy()
    _ = try await night(.fair, in: database, first)
    return FaultProfileShop(self, in: database, first: "2026-11-28T00:00:00Z", second: "2026-11-29T00:00:00Z")
  }

  func copy() async throws -> String { try await PrivatePostgres.shared().copyDatabase(conninfo) }

  struct Night {
    var result: Program.Result
    var findings: [[String: String]]
    var dispositions: [String: String]
    var reasons: String
    var peak: Int

    var ids: Set<String> { Set(findings.compactMap { $0["finding_id"] }) }

    var accusations: Set<String> {
      Set(findings.filter { FindingKind(rawValue: $0["kind"] ?? "")?.accuses ?? true }.compactMap { $0["finding_id"] })
    }

    /// Findings without times, attempts, and actions that depend on the night's own answers.
    var lasting: Set<[String: String]> {
      Set(
        findings.map { finding in
          var lasting = finding.filter { !["first_seen", "age_days", "due", "suggested_action"].contains($0.key) }
          lasting["reason"]?.replace(/after \d+ attempts?/, with: "after attempts")
          return lasting
        })
    }
  }

  func night(_ mood: FaultProfile, in database: String, _ asOf: Instant) async throws -> Night {
    try await control.turn("clock", #"{"now":\#(SignedShop.milliseconds(asOf))}"#)
    try await control.turn("faults", SimulatorControl.fair)
    try await control.turn("faults", mood.knobs)
    let apple = try await FaultyApple(before: control.port, mood.way, certificate: mood.certificate)
    let place = try TemporaryDirectory()
    var environment = environment.merging(apple.environment) { $1 }
    environment["NIGHT_AUDIT_DATABASE_URL"] = database
    var arguments = [
      "run", "--as-of", asOf, "--since", "2026-09-01", "--until", "2026-11-30", "--out", place.file("report"),
      "--config",
      directory.file("night-audit.yaml"),
    ]
    switch mood.outcome {
    case .fair: break
    // The night ends long before this limit.
    case .refused: arguments += ["--max-duration", "1m"]
    case .silence, .parts:
      environment["NIGHT_AUDIT_APPSTORE_TIMEOUT"] = "1s"
      arguments += ["--max-duration", "2s"]
    }
    let (result, peak) = try await Program.nightAudit.measured(arguments, environment: environment)
    func file(_ name: String) -> [[String: String]] {
      rows((try? Data(contentsOf: URL(fileURLWithPath: place.file("report/" + name)))) ?? Data())
    }
    let summary = try? Data(contentsOf: URL(fileURLWithPath: place.file("report/summary.json")))
    let told = try summary.flatMap { try JSONSerialization.jsonObject(with: $0) as? [String: Any] }
    return Night(
      result: result, findings: file("findings.csv"),
      dispositions: Dictionary(
        file("orders.csv").map { ($0["order_id"] ?? "", "\($0["disposition"] ?? "") \($0["payment"] ?? "")") },
        uniquingKeysWith: { first, _ in first }),
      reasons: (told?["incomplete_reasons"] as? [String] ?? []).joined(separator: "\n"), peak: peak)
  }

  func explain(_ order: String, in database: String, _ asOf: Instant) async throws -> String {
    let result = try await Program.nightAudit.run(
      ["explain", order, "--as-of", asOf, "--config", directory.file("night-audit.yaml")],
      environment: ["NIGHT_AUDIT_DATABASE_URL": database])
    return result.output + result.errors
  }
}
