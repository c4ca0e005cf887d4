import Foundation
import TestSupport
import Testing

struct TieOutNightTests {
  static func shop(simulator arguments: [String]? = nil) async throws -> Rehearsal {
    let shop = try await Rehearsal.sampleShop(simulator: arguments)
    try shop.configure { configuration in
      configuration.replacing("  game:\n", with: "  game:\n    sku: GAME01\n") + "\n" + shop.connectSection
    }
    return shop
  }

  private func block(_ shop: Rehearsal) throws -> [String: Any] {
    try #require(try shop.summary("latest")["tie_out"] as? [String: Any])
  }

  @Test func aNightsTieOutBalances() async throws {
    let shop = try await Self.shop()
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [0, 3])
    let block = try block(shop)
    #expect(block["complete"] as? Bool == true, "\(block)")
    let explained = try #require(block["explained"] as? [String: Int]).values.reduce(0, +)
    let (apple, ours) = (try #require(block["apple_units"] as? Int), try #require(block["our_units"] as? Int))
    #expect(apple == ours + explained + (block["unexplained"] as? Int ?? .min))
    let lines = String(decoding: try shop.file("tie-out.csv", "latest"), as: UTF8.self).split(separator: "\r\n")
    #expect(lines.count > 100 && lines[0].hasPrefix("level,app,product_id,day,country,currency,class,apple,ours,shop,"))
    let found = try await shop.value(
      "SELECT count(*) FROM night_audit.bi_findings WHERE kind = 'unreported_by_shop' AND severity = 'major'")
    #expect(found == "1")
    #expect(try await shop.value("SELECT count(*) > 0 FROM night_audit.bi_tie_out_days WHERE timing <> 0") == "true")
    // The question of the tax form is answered by calendar months.
    let year = try await shop.nightAudit("tie-out", "--as-of", Rehearsal.asOf, "--year", "2026", "--json").json()
    let months = try #require((year["gross"] as? [String: Any])?["lines"] as? [[String: String]])
    #expect(Set(months.compactMap { $0["month"] }).isSuperset(of: ["2026-10", "2026-11", "2026"]))
    // The next run requests older days; a fiscal period with all days has proceeds.
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    let whole = try shop.table("settlement", "latest").filter { $0["fiscal_period"] == "2027-01" }
    #expect(!whole.isEmpty && whole.allSatisfy { $0["sales_proceeds"] != "" && $0["difference"] != "" })
    let first = try shop.files("latest")
    let offline = try await shop.nightAudit("run", "--offline", "--as-of", Rehearsal.asOf)
    #expect(offline.errors.contains("without asking") && !offline.errors.contains("asked Apple"), "\(offline.errors)")
    let second = try shop.files("latest")
    for name in ["tie-out.csv", "settlement.csv"] { #expect(first[name] == second[name]) }
  }

  /// A problem with reports makes only the tie-out incomplete, and closes no finding.
  @Test func reportProblemsMakeOnlyTheTieOutIncomplete() async throws {
    let shop = try await Self.shop(simulator: [])
    let usual = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    let open = """
      SELECT string_agg(f::text, ' ') FROM (
        SELECT finding_id, severity, subject, product_id, currency, amount, at_stake, at_stake_unknown, reason
        FROM night_audit.findings WHERE kind = 'unreported_by_shop' AND closed_at IS NULL ORDER BY finding_id) f
      """
    let found = try await shop.value(open)
    #expect(found.contains("major"))
    try await shop.execute("ALTER TABLE night_audit.tie_outs RENAME TO tie_outs_elsewhere")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(try block(shop)["complete"] as? Bool == false)
    #expect(try await shop.value(open) == found)
    let listed = try shop.table("findings", "latest")
    #expect(listed.contains { $0["kind"] == "unreported_by_shop" && $0["severity"] == "major" })

    try await shop.execute("ALTER TABLE night_audit.tie_outs_elsewhere RENAME TO tie_outs")
    try shop.directory.write("no key", "shop/AuthKey_SAMPLE.p8")
    try await shop.nightAudit("run", "--as-of", Rehearsal.asOf, exits: [usual.status])
    let block = try block(shop)
    #expect(block["complete"] as? Bool == false && "\(block["incomplete_reasons"] ?? "")".contains("P-256"))
    // The command `tie-out` itself fails with the problem.
    try await shop.nightAudit("tie-out", "--as-of", Rehearsal.asOf, exits: [78], says: "appStoreConnect.privateKeyFile")
    try await shop.execute("UPDATE night_audit.findings SET severity = 'minor' WHERE kind = 'unreported_by_shop'")
    let told = try await shop.nightAudit("findings", "list", "--kind", "unreported_by_shop", "--json")
    #expect(told.output.contains("minor") && !told.output.contains("major"), "\(told)")
  }
}

extension Rehearsal {
  /// The configuration of the App Store Connect API.
  var connectSection: String {
    """
    appStoreConnect:
      issuerId: 57246542-96fe-1a63-e053-0824d011072a
      keyId: SAMPLE
      privateKeyFile: \(sample)/AuthKey_SAMPLE.p8
      vendorNumbers: ["80012345"]
      url: http://127.0.0.1:\(port)
    """
  }
}
