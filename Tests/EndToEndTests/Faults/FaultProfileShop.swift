import Foundation
import Reconciliation
import TestSupport
import Testing

@testable import SampleWorlds

/// A shop whose night is repeated under different fault profiles, each time in a copy of its database.
struct FaultProfileShop {
  /// Instants of the two nights.
  private(set) var first = "2026-11-20T00:00:00Z"
  private(set) var second = "2026-11-21T00:00:00Z"
  private var conninfo: String
  private let shop: any TestShop
  private let environment: [String: String]

  /// A shop with all scenarios, before the first question.
  init(_ channel: FaultProfile.Channel) async throws {
    environment = channel == .signedReceipts ? ["NIGHT_AUDIT_APPSTORE_CHANNEL": "verifyReceipt"] : [:]
    switch channel {
    case .serverApi, .signedReceipts:
      // The second night may have older answers about rows written after the first.
      let later = Set(Scenario.afterwards.map(\.name))
      let scenarios = KnownTruthNightTests.scenarios.filter { !later.contains($0.name) }
      let known = SimulatedKnownShop(KnownShop(scenarios: scenarios, seed: 1))
      let signed = try await KnownTruthNightTests.shop(known)
      let payloads = try await KnownTruthNightTests.payloads(known, signed)
      try await signed.execute(known.statements(of: known.known.world, payloads: payloads))
      shop = signed
    case .verifyReceipt: shop = try await Rehearsal.sampleShop(simulator: [])
    }
    conninfo = shop.conninfo
  }

  /// The shop after an undisturbed night long ago, so that all answers are stale.
  func knowing() async throws -> FaultProfileShop {
    var later = self
    later.conninfo = try await copy()
    _ = try await night(.fair, in: later.conninfo, first)
    (later.first, later.second) = ("2026-11-28T00:00:00Z", "2026-11-29T00:00:00Z")
    return later
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

  func night(_ profile: FaultProfile, in database: String, _ asOf: String) async throws -> Night {
    try await shop.control("clock", #"{"now":\#(SignedShop.milliseconds(asOf))}"#)
    for faults in [SimulatorControl.fair, profile.knobs] { try await shop.control("faults", faults) }
    let apple = try await FaultyApple(before: shop.port, profile.way, certificate: profile.certificate)
    let place = try TemporaryDirectory()
    var environment = environment.merging(apple.environment) { $1 }
    environment["NIGHT_AUDIT_DATABASE_URL"] = database
    var arguments = [
      "run", "--as-of", asOf, "--since", "2026-09-01", "--until", "2026-11-30", "--out", place.file("report"),
      "--config", shop.configurationFile,
    ]
    switch profile.outcome {
    case .fair: break
    // The night ends long before this limit.
    case .refused: arguments += ["--max-duration", "1m"]
    case .silence, .parts:
      environment["NIGHT_AUDIT_APPSTORE_TIMEOUT"] = "1s"
      arguments += ["--max-duration", "2s"]
    }
    let (result, peak) = try await Program.nightAudit.measured(arguments, environment: environment)
    func table(_ name: String) -> [[String: String]] { (try? shop.table(name, place.file("report"))) ?? [] }
    let summary = try? shop.summary(place.file("report"))
    return Night(
      result: result, findings: table("findings"),
      dispositions: Dictionary(
        table("orders").map { ($0["order_id"] ?? "", "\($0["disposition"] ?? "") \($0["payment"] ?? "")") },
        uniquingKeysWith: { first, _ in first }),
      reasons: (summary?["incomplete_reasons"] as? [String] ?? []).joined(separator: "\n"), peak: peak)
  }

  func explain(_ order: String, in database: String, _ asOf: String) async throws -> String {
    let result = try await shop.nightAudit(
      "explain", order, "--as-of", asOf, environment: ["NIGHT_AUDIT_DATABASE_URL": database])
    return result.output + result.errors
  }
}
