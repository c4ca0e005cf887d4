import Foundation
import Testing

struct TieOutNightTests {
  func shop() async throws -> Rehearsal {
    let shop = try await Rehearsal.sampleShop()
    let configuration =
      try shop.configuration().replacing("  game:\n", with: "  game:\n    sku: GAME01\n") + """

        appStoreConnect:
          issuerId: 57246542-96fe-1a63-e053-0824d011072a
          keyId: SAMPLE
          privateKeyFile: \(shop.directory.file("shop"))/AuthKey_SAMPLE.p8
          vendorNumbers: ["80012345"]
          url: http://127.0.0.1:\(shop.port)
        """
    try configuration.write(toFile: shop.directory.file("night-audit.yaml"), atomically: true, encoding: .utf8)
    return shop
  }

  private func block(_ shop: Rehearsal) throws -> [String: Any] {
    let data = try Data(contentsOf: URL(fileURLWithPath: shop.reports + "/latest/summary.json"))
    let summary = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    return try #require(summary["tie_out"] as? [String: Any])
  }

  @Test func aNightsTieOutBalances() async throws {
    let shop = try await shop()
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == 0 || night.status == 3, "\(night.errors)")
    let block = try block(shop)
    #expect(block["complete"] as? Bool == true, "\(block)")
    let explained = try #require(block["explained"] as? [String: Int]).values.reduce(0, +)
    let (apple, ours) = (try #require(block["apple_units"] as? Int), try #require(block["our_units"] as? Int))
    #expect(apple == ours + explained + (block["unexplained"] as? Int ?? .min))
    let lines = try String(contentsOfFile: shop.reports + "/latest/tie-out.csv", encoding: .utf8)
      .split(separator: "\r\n")
    #expect(lines.count > 100 && lines[0].hasPrefix("level,app,product_id,day,country,currency,class,apple,ours,shop,"))
    let found = try await shop.value(
      "SELECT count(*) FROM night_audit.bi_findings WHERE kind = 'unreported_by_shop' AND severity = 'major'")
    #expect(found == "1")
    #expect(try await shop.value("SELECT count(*) > 0 FROM night_audit.bi_tie_out_days WHERE timing <> 0") == "true")
    // The next run requests older days; a fiscal period with all days has proceeds.
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    let settlement = rows(try shop.files(shop.reports + "/latest")["settlement.csv"] ?? Data())
    let whole = settlement.filter { $0["fiscal_period"] == "2027-01" }
    #expect(!whole.isEmpty && whole.allSatisfy { $0["sales_proceeds"] != "" && $0["difference"] != "" })
    let first = try shop.files(shop.reports + "/latest")
    let offline = try await shop.nightAudit("run", "--offline", "--as-of", Rehearsal.asOf)
    #expect(offline.errors.contains("without asking") && !offline.errors.contains("asked Apple"), "\(offline.errors)")
    let second = try shop.files(shop.reports + "/latest")
    for name in ["tie-out.csv", "settlement.csv"] { #expect(first[name] == second[name]) }
  }

  /// A problem with reports makes only the tie-out incomplete.
  @Test func reportProblemsMakeOnlyTheTieOutIncomplete() async throws {
    let shop = try await shop()
    let usual = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    try "no key".write(
      toFile: shop.directory.file("shop") + "/AuthKey_SAMPLE.p8", atomically: true, encoding: .utf8)
    let night = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(night.status == usual.status)
    let block = try block(shop)
    #expect(block["complete"] as? Bool == false)
    #expect("\(block["incomplete_reasons"] ?? "")".contains("P-256"))
    // The command `tie-out` itself fails with the problem.
    let alone = try await shop.nightAudit("tie-out", "--as-of", Rehearsal.asOf)
    #expect(alone.status == 78 && alone.errors.contains("appStoreConnect.privateKeyFile"))
  }

  /// A missing report closes no finding.
  @Test func findingsStayOpenIfTheTieOutIsUnreadable() async throws {
    let shop = try await shop()
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    let open = """
      SELECT string_agg(f::text, ' ') FROM (
        SELECT finding_id, severity, subject, product_id, currency, amount, at_stake, at_stake_unknown, reason
        FROM night_audit.findings WHERE kind = 'unreported_by_shop' AND closed_at IS NULL ORDER BY finding_id) f
      """
    let found = try await shop.value(open)
    #expect(found.contains("major"))
    try await shop.execute("ALTER TABLE night_audit.tie_outs RENAME TO tie_outs_elsewhere")
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    #expect(try block(shop)["complete"] as? Bool == false)
    #expect(try await shop.value(open) == found)
    let listed = rows(try shop.files(shop.reports + "/latest")["findings.csv"] ?? Data())
    #expect(listed.contains { $0["kind"] == "unreported_by_shop" && $0["severity"] == "major" })
    try await shop.execute("UPDATE night_audit.findings SET severity = 'minor' WHERE kind = 'unreported_by_shop'")
    let told = try await shop.nightAudit("findings", "list", more: ["--kind", "unreported_by_shop", "--json"])
    #expect(told.output.contains("minor") && !told.output.contains("major"), "\(told)")
  }

  @Test func theTaxFormsQuestionIsAnsweredByCalendarMonths() async throws {
    let shop = try await shop()
    _ = try await shop.nightAudit("run", "--as-of", Rehearsal.asOf)
    let result = try await shop.nightAudit("tie-out", "--as-of", Rehearsal.asOf, "--year", "2026", "--json")
    let document = try #require(
      try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any], "\(result.errors)")
    let gross = try #require(document["gross"] as? [String: Any])
    let lines = try #require(gross["lines"] as? [[String: String]])
    #expect(Set(lines.compactMap { $0["month"] }).isSuperset(of: ["2026-10", "2026-11", "2026"]))
  }
}
