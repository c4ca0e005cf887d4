import Foundation
import TestSupport
import Testing

@Suite struct FindingsTests {
  private static let nights = ["2026-11-18T03:00:00Z", "2026-11-19T03:00:00Z", "2026-11-20T03:00:00Z"]

  private func night(_ shop: Rehearsal, _ asOf: String, _ more: String...) async throws {
    try await shop.nightAudit("run", "--quiet", "--as-of", asOf, more: more, exits: [0, 3])
  }

  private func list(_ shop: Rehearsal, _ arguments: String...) async throws -> [[String: Any]] {
    let document = try await shop.nightAudit("findings", "list", "--json", more: arguments, exits: [0]).json()
    return try #require(document["findings"] as? [[String: Any]])
  }

  private func row(_ shop: Rehearsal, _ day: String, _ id: String) throws -> [String: String]? {
    try shop.table("findings", day).first { $0["finding_id"] == id }
  }

  private func changes(_ shop: Rehearsal, _ day: String) throws -> [[String: String]] { try shop.table("changes", day) }

  /// Findings about payments for gems, which no night of these tests refunds.
  private func unpaidGems(_ shop: Rehearsal) async throws -> [[String: Any]] {
    try await list(shop, "--kind", "paid_not_delivered").filter {
      ($0["product_id"] as? String)?.hasPrefix("gems") ?? false
    }
  }

  private func events(_ finding: [String: Any]?) -> [String] {
    (finding?["history"] as? [[String: Any]] ?? []).compactMap { $0["event"] as? String }
  }

  private func deliver(_ order: String, as delivery: String, in shop: Rehearsal) async throws {
    try await shop.execute(
      """
      INSERT INTO sales.deliveries SELECT '\(delivery)', order_id, user_id, product_id, quantity,
        '2026-11-18T12:00:00Z', NULL FROM sales.orders WHERE order_id = '\(order)'
      """)
  }

  private func difference(_ shop: Rehearsal, _ first: String, _ second: String) async throws -> [[String: Any]] {
    let difference = try await shop.nightAudit("runs", "diff", first, second, "--json", exits: [0]).json()
    return try #require(difference["findings"] as? [[String: Any]])
  }

  @Test func decisionsPersistOverNights() async throws {
    let shop = try await Rehearsal.auditedShop(asOf: Self.nights[0])
    let found = try await unpaidGems(shop)
    let ids = found.compactMap { $0["finding_id"] as? String }
    let (dealtWith, mended) = (try #require(ids.first), try #require(ids.last))
    try #require(dealtWith != mended)
    for arguments in [
      ["close", dealtWith], ["assign", dealtWith, "--to", "Zoë"], ["remark", dealtWith, "--text", "=refunded"],
      ["acknowledge", String(mended.prefix(10)), "--by", "anna"],
    ] {
      try await shop.nightAudit("findings", more: arguments, exits: [0])
    }
    let order = try #require(found.last?["order_id"] as? String)
    try await deliver(order, as: "late", in: shop)
    try await night(shop, Self.nights[1])
    try await expectTheReportsActions(shop, "2026-11-18")
    let kept = try #require(try row(shop, "2026-11-18", dealtWith))
    #expect(kept["status"] == "closed" && kept["owner"] == "Zoë")
    #expect(try row(shop, "2026-11-18", mended) == nil)
    #expect(try await list(shop, mended).first?["closed_at"] as? String == Self.nights[1])
    try await shop.nightAudit("findings", "list", mended, exits: [0], says: " closed by itself ")

    // The goods are taken back again, and the finding reopens with its history.
    try await shop.execute("UPDATE sales.deliveries SET revoked_at = '2026-11-19T12:00:00Z' WHERE delivery_id = 'late'")
    try await night(shop, Self.nights[2])
    let again = try #require(try row(shop, "2026-11-19", mended))
    #expect(again["status"] == "open" && again["first_seen"] == Self.nights[0])
    #expect(events(try await list(shop, mended).first) == ["opened", "status", "closed", "reopened"])
    #expect(try row(shop, "2026-11-19", dealtWith)?["status"] == "closed")
    let remark = try await list(shop, dealtWith).first?["remark"] as? String
    #expect(remark == "=refunded")

    var closing: Int?
    for day in ["2026-11-17", "2026-11-18", "2026-11-19"] {
      let findings = try #require(try shop.summary(day)["findings"] as? [String: Any])
      let numbers = ["opening", "new", "closed", "closing"].compactMap { findings[$0] as? Int }
      try #require(numbers.count == 4)
      #expect(numbers[0] + numbers[1] - numbers[2] == numbers[3])
      if let closing { #expect(numbers[0] == closing, "\(day)") }
      closing = numbers[3]
    }

    #expect(try changes(shop, "2026-11-17").isEmpty)
    let second = try changes(shop, "2026-11-18")
    let gone = try #require(second.first { $0["finding_id"] == mended })
    #expect(gone["change"] == "closed" && gone["because"]?.contains("delivered") == true, "\(gone)")
    let third = try changes(shop, "2026-11-19")
    #expect(third.first { $0["finding_id"] == mended }?["change"] == "reopened")
    for row in second + third where ["closed", "adjusted"].contains(row["change"]) {
      #expect(row["because"]?.isEmpty == false, "\(row)")
    }

    // The report of a longer period opens with the findings that were open before its first day.
    try await shop.nightAudit(
      "run", "--as-of", Self.nights[2], "--since", "2026-11-18", "--until", "2026-11-19", "--out",
      shop.directory.file("period"), environment: ["NIGHT_AUDIT_REPORT_FORMATS": "csv,xlsx"], exits: [0, 3])
    let files = try shop.files(shop.directory.file("period"))
    #expect(files.keys.contains("night-audit-2026-11-18_2026-11-19.xlsx"))
    let period = try shop.summary(shop.directory.file("period"))
    let numbers = try #require(period["findings"] as? [String: Any])
    let before = try #require(try shop.summary("2026-11-17")["findings"] as? [String: Any])
    let after = try #require(try shop.summary("2026-11-19")["findings"] as? [String: Any])
    #expect(numbers["opening"] as? Int == before["closing"] as? Int)
    #expect(numbers["closing"] as? Int == after["closing"] as? Int)
    // A finding that was closed and reopened within the period shows only its change of status.
    let changed = rows(files["changes.csv"] ?? Data())
    #expect(!changed.isEmpty)
    #expect(changed.allSatisfy { $0["finding_id"] != mended || $0["change"] == "status" })

    let changes = try await difference(shop, "2026-11-17", "latest")
    let mine = changes.filter { $0["finding_id"] as? String == mended }
    #expect(mine.compactMap { $0["event"] as? String } == ["closed", "reopened"])
    #expect(
      "\(mine)".contains("delivered: delivery late") && "\(mine)".contains("taken back: delivery late"), "\(mine)")
  }

  /// `findings list` has the report's suggested actions, and accepts the report's names of kinds.
  private func expectTheReportsActions(_ shop: Rehearsal, _ day: String) async throws {
    let told = try shop.table("findings", day)
    let listed = try await list(shop)
    #expect(listed.count == told.count)
    for finding in listed {
      let row = told.first { $0["finding_id"] == finding["finding_id"] as? String }
      #expect(finding["suggested_action"] as? String == row?["suggested_action"], "\(finding)")
    }
    // Some suggested actions differ from the general one for their kind.
    #expect(told.contains { $0["suggested_action"]?.hasPrefix("Ask Apple again") == true })
    let table = try await shop.nightAudit(
      "findings", "list", "--kind", "paid, not delivered", exits: [0], says: "Paid, not delivered")
    #expect(!table.output.contains("paid_not_delivered") && !table.output.contains("Charged twice"))
    let byCode = try await shop.nightAudit("findings", "list", "--kind", "paid_not_delivered")
    #expect(byCode.output == table.output)
  }

  /// A wrong delivery closes a finding; the night is then repeated without the delivery.
  @Test func aDifferenceOmitsUndoneRuns() async throws {
    let shop = try await Rehearsal.auditedShop(asOf: Self.nights[0])
    let found = try await unpaidGems(shop).first
    let id = try #require(found?["finding_id"] as? String)
    let order = try #require(found?["order_id"] as? String)
    try await shop.nightAudit("findings", "acknowledge", id, exits: [0])
    func makeNight(wrongly isWrong: Bool) async throws {
      if isWrong {
        try await deliver(order, as: "wrong", in: shop)
      } else {
        try await shop.execute("DELETE FROM sales.deliveries WHERE delivery_id = 'wrong'")
      }
      try await night(shop, Self.nights[1])
    }
    func changes(_ first: String, _ second: String) async throws -> [String] {
      try await difference(shop, first, second).filter { $0["finding_id"] as? String == id }
        .compactMap { $0["event"] as? String }
    }
    func runs() async throws -> [String] {
      let document = try await shop.nightAudit("runs", "--json", exits: [0]).json()
      return try #require(document["runs"] as? [[String: Any]]).compactMap { $0["run_id"] as? String }
    }
    let (first, second) = ("2026-11-17", "2026-11-18")
    try await makeNight(wrongly: true)
    #expect(try await changes(first, second) == ["closed"])
    try await makeNight(wrongly: false)
    #expect(try await changes(first, second) == [])
    let made = try await runs()
    #expect(try await changes(made[1], made[0]) == ["reopened"])
    #expect(try await changes(made[2], made[1]) == ["closed"])
    let kept = try #require(try await list(shop, id).first)
    #expect(kept["status"] as? String == "acknowledged")
    #expect(events(kept) == ["opened", "status", "closed", "kept_open"])
    try await makeNight(wrongly: true)
    #expect(try await changes(first, second) == ["closed"])
    try await shop.nightAudit("runs", "forget", try await runs()[0], exits: [0])
    try await makeNight(wrongly: false)
    #expect(try await changes(first, second) == [])
    try await shop.nightAudit("verify", exits: [0])
  }

  @Test func newFindingsGetOwnersAndDifferencesStateTheirScope() async throws {
    let shop = try await Rehearsal.sampleShop()
    try shop.configure(
      "findings:\n  owners: {critical: finance, major: support, paid_not_delivered: dana}")
    try await night(shop, Self.nights[1])
    let found = try shop.table("findings", "2026-11-18")
    #expect(found.contains { $0["kind"] == "paid_not_delivered" } && found.contains { $0["severity"] == "minor" })
    for finding in found {
      let owner =
        finding["kind"] == "paid_not_delivered"
        ? "dana" : finding["severity"] == "critical" ? "finance" : finding["severity"] == "major" ? "support" : ""
      #expect(finding["owner"] == owner, "\(finding)")
    }
    let id = try #require(found.first { $0["owner"] == "finance" }?["finding_id"])
    _ = try await shop.nightAudit("findings", "assign", id, "--to", "anna")
    try await shop.execute(
      """
      INSERT INTO sales.deliveries SELECT 'late-' || order_id, order_id, user_id, product_id, quantity,
        '2026-11-19T12:00:00Z', NULL
      FROM sales.orders WHERE order_id IN (SELECT order_id FROM night_audit.findings WHERE kind = 'paid_not_delivered')
      """)
    try await night(shop, Self.nights[2])
    #expect([nil, "anna"].contains(try row(shop, "2026-11-19", id)?["owner"]))

    try await shop.execute(
      """
      WITH new AS (
        INSERT INTO night_audit.findings (finding_id, kind, severity, subject_kind, subject, reason, first_seen, opened_at,
          last_seen)
        SELECT 'new-' || n, 'orphan_delivery', 'major', 'delivery', 'd' || n, '', r.as_of, r.as_of, r.as_of
        FROM (SELECT max(as_of) AS as_of FROM night_audit.runs) r CROSS JOIN generate_series(1, 220) n
        RETURNING finding_id, first_seen)
      INSERT INTO night_audit.finding_events (finding_id, as_of, run_id, event)
      SELECT new.finding_id, new.first_seen, r.run_id, 'opened' FROM new JOIN night_audit.runs r ON r.as_of = new.first_seen
      """)
    let difference = try await shop.nightAudit("runs", "diff", "2026-11-18", "2026-11-19")
    let lines = difference.output.split(separator: "\n").map(String.init)
    let events = lines.filter { $0.hasPrefix("  closed ") || $0.hasPrefix("  opened ") }
    #expect(events.first?.hasPrefix("  closed ") == true && events.count == 200)
    #expect(events == events.filter { $0.hasPrefix("  closed ") } + events.filter { $0.hasPrefix("  opened ") })
    let totals = lines.compactMap { $0.wholeMatch(of: /Findings: ([\d,]+) changes: .*/)?.1.replacing(",", with: "") }
    let total = totals.first.flatMap { Int($0) } ?? 0
    #expect(total > 200)
    #expect(lines.contains("  … and \(total - 200) more; --json has them all"), "\(lines.suffix(3))")
  }

  @Test func theFindingsListEqualsTheReportsFile() async throws {
    let shop = try await Rehearsal.sampleShop()
    try await night(shop, Self.nights[2])
    let result = try await shop.nightAudit("findings", "list", "--csv", "--as-of", Self.nights[2])
    let written = String(decoding: try shop.file("findings.csv", "2026-11-19"), as: UTF8.self)
    let compared = [result.output, written].map { $0.split(whereSeparator: \.isNewline) }
    let difference = zip(compared[0], compared[1]).first { $0 != $1 }
    #expect(difference == nil, "\(String(describing: difference))")
    #expect(result.output == written)
    // Text and JSON agree about ages and unknown amounts.
    let file = rows(Data(result.output.utf8))
    for finding in try await list(shop, "--as-of", Self.nights[2]) {
      let row = try #require(file.first { $0["finding_id"] == finding["finding_id"] as? String })
      for column in ["days_since", "age_days"] {
        #expect((finding[column] as? Int).map(String.init) ?? "" == row[column], "\(finding)")
      }
      #expect(finding["occurred_at"] as? String ?? "" == row["occurred_at"])
      #expect(finding["due"] as? String ?? "" == row["due"])
    }
    let findings = try #require(try shop.summary("2026-11-19")["findings"] as? [String: Any])
    let unknown = try #require(findings["at_stake_unknown"] as? Int)
    let table = try await shop.nightAudit("findings", "list", "--as-of", Self.nights[2])
    let lines = table.output.split(separator: "\n").map(String.init)
    #expect(unknown > 0 && lines.last?.hasSuffix(" · \(unknown) with amount unknown.") == true, "\(lines.last ?? "")")
    #expect(lines.count(where: { $0.contains(" unknown ") }) >= unknown)
    let stakes = lines.filter { $0.contains(" critical ") && $0.contains(" USD ") }
      .compactMap { $0.firstMatch(of: /(\d+\.\d\d) USD/).flatMap { Double($0.1) } }
    #expect(stakes.count > 5 && stakes == stakes.sorted(by: >), "worst first: \(stakes)")

    let document = try await shop.nightAudit("runs", "--json", "--limit", "1", exits: [0]).json()
    let runs = try #require(document["runs"] as? [[String: Any]])
    #expect(runs.first?["as_of"] as? String == Self.nights[2])
    #expect(runs.first?["directory"] as? String == shop.reports + "/2026-11-19")
  }

  @Test func anAcceptedFindingReopensAfterItsDateOrAboveItsAmount() async throws {
    let shop = try await Rehearsal.auditedShop(asOf: Self.nights[0])
    let found = try await unpaidGems(shop)
    func ids(in currency: String) -> [String] {
      found.filter { $0["currency"] as? String == currency }.compactMap { $0["finding_id"] as? String }
    }
    let (euros, yen) = (ids(in: "EUR"), ids(in: "JPY"))
    let (byDay, byAmount, kept) = (try #require(euros.first), try #require(euros.last), try #require(yen.first))
    try #require(Set([byDay, byAmount, kept]).count == 3)
    for arguments in [
      [byDay, "--until", "2026-11-19", "--by", "anna"], [byAmount, "--amount", "0.01", "--by", "anna"],
      [kept, "--until", "2026-12-31", "--amount", "100000", "--by", "anna"],
    ] {
      try await shop.nightAudit("findings", more: ["accept"] + arguments, exits: [0])
    }
    func statuses(_ day: String) throws -> [String?] {
      try [byDay, byAmount, kept].map { try row(shop, day, $0)?["status"] }
    }
    try await night(shop, Self.nights[1])
    #expect(try statuses("2026-11-18") == ["accepted", "open", "accepted"])
    try await night(shop, Self.nights[2])
    #expect(try statuses("2026-11-19") == ["open", "open", "accepted"])
    let back = try changes(shop, "2026-11-19").first { $0["finding_id"] == byDay }
    #expect(back?["before"] == "accepted" && back?["after"] == "open", "\(back ?? [:])")
    #expect(back?["because"]?.contains("until 2026-11-19") == true)
    #expect(events(try await list(shop, byDay).first) == ["opened", "acceptance", "status", "returned"])
    try await shop.nightAudit("verify", exits: [0])
  }

  @Test(arguments: [
    (["findings", "accept", "abcd"], 64, "--until"),
    (["findings", "accept", "abcd", "--amount", "-1"], 64, "not an amount of 0 or more"),
    (["findings", "acknowledge", "ffffffff", "eeee"], 1, "ffffffff, eeee"),
    (["findings", "list", "ffffffff"], 1, "ffffffff"),
    (["findings", "acknowledge"], 64, "--all"), (["findings", "close", "abcd", "--all"], 64, "Give either IDs"),
    (["findings", "assign", "abcd"], 64, "--to"), (["findings", "list", "--kind", "bogus"], 64, "bogus"),
    (["findings", "list", "--min-age", "old"], 64, "--min-age"),
    (["findings", "list", "--min-amount", "5"], 64, "--currency"),
    (["findings", "list", "--amount", "-5"], 64, "not an amount of 0 or more"),
    (["findings", "remark", "--all", "--yes", "--text", "\u{1B}[2J"], 64, "control character"),
    (["findings", "import", "/nonexistent.xlsx"], 64, "does not exist"),
    (["findings", "import", "/etc/hostname"], 64, "not an .xlsx"),
    (["runs", "diff", "latest", "latest"], 1, "latest"), (["runs", "diff", "2026-11-19", "xyz"], 1, "there is no run"),
    (["runs", "--limit", "0"], 64, "--limit"),
  ])
  func missingFindingsAreNamed(_ arguments: [String], _ status: Int32, _ says: String) async throws {
    try await Rehearsal.unchanged.value.nightAudit(more: arguments, exits: [status], says: says)
  }

  @Test func lateFactsAreAdjustmentsOfThisNight() async throws {
    let shop = try await Rehearsal.auditedShop(asOf: Self.nights[1])
    #expect(try (shop.summary("2026-11-18")["adjustments"] as? [Any])?.isEmpty == true)
    // After the report, the shop takes goods back, and a missing order of that day appears.
    let order = try await shop.value(
      """
      SELECT min(order_id) FROM sales.orders o JOIN sales.deliveries d USING (order_id)
      WHERE o.created_at >= '2026-11-18T00:00:00Z' AND o.created_at < '2026-11-19T00:00:00Z'
        AND o.status = 'verified' AND o.quantity = 1 AND o.currency = 'USD' AND d.revoked_at IS NULL AND o.order_id IN
          (SELECT order_id FROM night_audit.claims WHERE environment = 'Production') AND o.order_id NOT IN
          (SELECT order_id FROM night_audit.findings WHERE order_id IS NOT NULL)
      """)
    try #require(!order.isEmpty)
    try await shop.execute(
      """
      UPDATE sales.deliveries SET revoked_at = '2026-11-19T12:00:00Z' WHERE order_id = '\(order)';
      INSERT INTO sales.orders (order_id, user_id, product_id, quantity, amount, currency, status, created_at, updated_at)
      VALUES ('late', 'u', 'gems', 1, 7.77, 'USD', 'pending', '2026-11-18T10:00:00Z', '2026-11-19T10:00:00Z');
      """)
    let before = try shop.files("2026-11-18")
    try await night(shop, Self.nights[2])
    let adjustments = try #require(try shop.summary("2026-11-19")["adjustments"] as? [[String: Any]])
    func change(_ disposition: String) -> Int? {
      guard
        let line = adjustments.first(where: {
          $0["disposition"] as? String == disposition && $0["currency"] as? String == "USD"
            && $0["day"] as? String == "2026-11-18"
        }), let reported = line["reported"] as? [String: Any], let now = line["now"] as? [String: Any],
        let first = reported["orders"] as? Int, let second = now["orders"] as? Int
      else { return nil }
      return second - first
    }
    #expect(change("settled") == -1, "\(adjustments)")
    #expect(change("paid_not_delivered") == 1, "\(adjustments)")
    #expect(change("void") == 1, "\(adjustments)")
    #expect(adjustments.allSatisfy { $0["day"] as? String == "2026-11-18" })

    // A repetition of the night has the same bytes, and the previous night is unchanged.
    let once = try shop.files("2026-11-19")
    try await night(shop, Self.nights[2])
    for (name, content) in try shop.files("2026-11-19") where name != "run.json" {
      #expect(content == once[name], "\(name) differs between two runs of the same night")
    }
    #expect(try shop.files("2026-11-18") == before)

    try await night(shop, "2026-11-20T09:00:00Z", "--date", "2026-11-18")
    let again = try shop.summary("2026-11-18")
    #expect(again["as_of"] as? String == "2026-11-20T09:00:00Z")
    func settled(_ orders: Data?) -> Int {
      rows(orders ?? Data()).count { $0["disposition"] == "settled" && $0["currency"] == "USD" }
    }
    let now = try shop.files("2026-11-18")["orders.csv"]
    #expect(settled(now) == settled(before["orders.csv"]) - 1)

    try await night(shop, "2026-11-21T03:00:00Z")
    #expect(try (shop.summary("2026-11-20")["adjustments"] as? [Any])?.isEmpty == true)
    try await shop.nightAudit("runs", "diff", "2026-11-18", "2026-11-19", exits: [0])
  }
}
