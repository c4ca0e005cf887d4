import Foundation
import Testing

/// The workbook of several days, compared with the reports of its nights.
@Suite struct MonthTests {
  @Test func thePeriodRollsForwardAndListsItsDays() async throws {
    let shop = try await Rehearsal.sampleShop()
    #expect([0, 3].contains(try await shop.nightAudit("run", "--as-of", "2026-11-18T03:00:00Z").status))
    #expect([0, 3].contains(try await shop.nightAudit("run", "--as-of", "2026-11-19T03:00:00Z").status))
    try await shop.execute(
      """
      INSERT INTO sales.deliveries SELECT 'late-' || order_id, order_id, user_id, product_id, quantity,
        '2026-11-19T12:00:00Z', NULL
      FROM sales.orders WHERE order_id IN (SELECT order_id FROM night_audit.findings WHERE kind = 'paid_not_delivered');
      UPDATE sales.deliveries SET revoked_at = '2026-11-19T13:00:00Z' WHERE order_id IN (
        SELECT order_id FROM sales.orders WHERE created_at >= '2026-11-18T00:00:00Z'
          AND created_at < '2026-11-19T00:00:00Z' ORDER BY order_id LIMIT 3);
      """)
    #expect([0, 3].contains(try await shop.nightAudit("run", "--as-of", "2026-11-20T03:00:00Z").status))

    let month = shop.directory.file("month")
    let made = try await shop.nightAudit(
      "reconcile", "--as-of", "2026-11-20T03:00:00Z", "--since", "2026-11-18", "--until", "2026-11-19", "--out", month)
    #expect([0, 3].contains(made.status), "\(made.errors)")
    let read = try await Program(path: "/usr/bin/python3").run(["-c", Self.program, shop.reports, month])
    #expect(read.status == 0, "\(read.errors)")
    let found = try #require(
      try JSONSerialization.jsonObject(with: Data(read.output.utf8)) as? [String: Any], "\(read.output)")
    #expect(found["wrong"] as? [String] == [])
    #expect(found["days"] as? Int ?? 0 > 4)
    #expect(found["differing"] as? Int ?? 0 > 0)
    #expect(found["closed"] as? Int ?? 0 > 0)
  }

  /// A refund and a late order make new lines and adjustments; no line is edited.
  @Test func theJournalsOfNightsAddUpToTheJournalOfTheMonth() async throws {
    let (start, hour) = (NotifiedShop.start, Int64(3_600_000))
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": start - 15 * hour, "revocationDate": start + 12 * hour],
      ["transactionId": "1002", "purchaseDate": start + 9 * hour],
      [
        "transactionId": "1003", "purchaseDate": start + 33 * hour, "productId": "gold",
        "type": "Auto-Renewable Subscription", "expiresDate": start + 33 * hour + 30 * NotifiedShop.day,
      ],
    ])
    try shop.configure(Self.accounts + "\nreport.formats: [csv, xlsx, stripe-import]\n")
    try await shop.sell("o1", naming: "1001", at: start - 15 * hour)
    let first = try await shop.night(0)
    #expect(first.status == 0, "\(first.errors)")
    #expect(try await shop.night(1).status == 0)
    try await shop.sell("o2", naming: "1002", at: start + 9 * hour)
    try await shop.sell("o3", naming: "1003", at: start + 33 * hour, product: "gold")
    #expect(try await shop.night(2).status == 0)

    // The sample query has the amounts of the journal's accounts.
    let query = try #require(try BusinessIntelligenceTests.queries()["the journal by kind and day"])
    let posted = try await shop.value(
      """
      SELECT string_agg(concat_ws(' ', posted_for, app, kind, currency, amount), ', ' ORDER BY posted_for, kind)
      FROM (\(query)) q
      """)
    #expect(
      posted == "2026-11-19 game sale USD 1.99, 2026-11-20 game refund USD 1.99, 2026-11-21 game sale USD 3.98")
    let days = ["2026-11-19", "2026-11-20", "2026-11-21"]
    let nights = try days.map { rows(try shop.file("journal.csv", night: $0)) }
    let told = nights.map { lines in
      lines.map { "\($0["source"] ?? "") \($0["account"] ?? "") \($0["debit"] ?? "")/\($0["credit"] ?? "")" }.sorted()
    }
    #expect(told[0] == ["o1 4-receivable 1.99/", "o1 4-sale /1.99"])
    #expect(told[1] == ["o1 4-receivable /1.99", "o1 4-refund 1.99/"])
    #expect(
      told[2] == ["o2 4-adjustment /1.99", "o2 4-receivable 1.99/", "o3 4-receivable 1.99/", "o3 4-sale /1.99"])
    #expect(zip(nights, days).allSatisfy { lines, day in lines.allSatisfy { $0["posted_for"] == day } })

    let month = shop.directory.file("month")
    let made = try await shop.nightAudit(
      "reconcile", "--as-of", NotifiedShop.asOf(2), "--since", days[0], "--until", days[2], "--out", month)
    #expect(made.status == 0, "\(made.errors)")
    func file(_ name: String) throws -> [[String: String]] {
      rows(try Data(contentsOf: URL(fileURLWithPath: month + "/" + name)))
    }
    func sorted(_ lines: [[String: String]]) -> [[String: String]] {
      lines.sorted { ($0["line_id"] ?? "") < ($1["line_id"] ?? "") }
    }
    #expect(try file("journal.csv") == sorted(nights.flatMap { $0 }))

    // The file for Stripe has calendar dates and decimal amounts, and a service period for a subscription.
    let imported = try file("stripe-import.csv")
    for row in imported {
      #expect(row["source"] == "App Store" && row["currency"] == "USD")
      for column in ["booked_date", "recognition_start_date", "recognition_end_date"] {
        #expect(row[column]?.wholeMatch(of: /\d{4}-\d{2}-\d{2}/) != nil, "\(row)")
      }
    }
    #expect(
      imported.map { "\($0["transaction_id"] ?? "") \($0["amount"] ?? "") \($0["recognition_end_date"] ?? "")" } == [
        "1001 1.99 2026-11-19", "1001 -1.99 2026-11-20", "1002 1.99 2026-11-20", "1003 1.99 2026-12-21",
      ])
    #expect(Set(imported.map { "\($0["transaction_id"] ?? "") \($0["split_transaction_id"] ?? "")" }).count == 4)
    let proven = try await shop.nightAudit("verify")
    #expect(proven.status == 0, "\(proven.output) \(proven.errors)")
  }

  private static let accounts =
    "journal:\n  accounts:\n"
    + ["sale", "refund", "adjustment", "commission", "tax", "payout", "receivable"].map { "    \($0): \"4-\($0)\"" }
    .joined(separator: "\n")

  @Test func anIncompleteNightPostsNothingAndTheNextCompleteOnePostsItsSales() async throws {
    let (start, hour) = (NotifiedShop.start, Int64(3_600_000))
    let shop = try await NotifiedShop(transactions: [
      ["transactionId": "1001", "purchaseDate": start - 15 * hour],
      ["transactionId": "1002", "purchaseDate": start + 9 * hour],
    ])
    try shop.configure(Self.accounts)
    try await shop.sell("o1", naming: "1001", at: start - 15 * hour)
    #expect(try await shop.night(0).status == 0)
    try await shop.sell("o2", naming: "1002", at: start + 9 * hour)
    let incomplete = try await shop.night(1, "--offline")
    #expect(incomplete.status == 3, "\(incomplete.errors)")
    #expect(try rows(shop.file("journal.csv", night: "2026-11-20")).isEmpty)
    #expect(try await shop.value("SELECT string_agg(subject, ' ') FROM night_audit.journal_entries") == "o1")
    let complete = try await shop.night(2)
    #expect(complete.status == 0, "\(complete.errors)")
    #expect(
      try rows(shop.file("journal.csv", night: "2026-11-21")).map { "\($0["source"] ?? "") \($0["account"] ?? "")" }
        .sorted() == ["o2 4-adjustment", "o2 4-receivable"])
  }

  /// Apple reports the refund after the night of its day.
  @Test func aRefundKeepsThePeriodThatReportedItFirst() async throws {
    let (start, hour) = (NotifiedShop.start, Int64(3_600_000))
    let shop = try await NotifiedShop(
      transactions: [
        ["transactionId": "1001", "purchaseDate": start + 2 * hour, "revocationDate": start + 3 * hour]
      ], sendsNotifications: false)
    func refunds(_ day: String) throws -> [String?] {
      rows(try shop.file("refunds.csv", night: day)).map { $0["transaction_id"] }
    }
    for night: Int64 in [0, 1] { #expect([0, 3].contains(try await shop.night(night).status)) }
    try await shop.sell("late", naming: "1001", at: start + 2 * hour)
    for night: Int64 in [2, 3] { #expect([0, 3].contains(try await shop.night(night).status)) }
    let days = ["2026-11-19", "2026-11-20", "2026-11-21", "2026-11-22"]
    #expect(try days.map(refunds) == [[], [], ["1001"], []])
    // Neither a repeated day nor a report of both days lists the refund twice.
    for (since, until, expected) in [
      (days[1], days[1], []), (days[1], days[2], ["1001"]), (days[0], days[3], ["1001"]),
    ] {
      let out = shop.directory.file("\(since)-\(until)")
      let made = try await shop.nightAudit(
        "reconcile", "--as-of", NotifiedShop.asOf(3), "--since", since, "--until", until, "--out", out)
      #expect([0, 3].contains(made.status), "\(made.errors)")
      let listed = rows(try Data(contentsOf: URL(fileURLWithPath: out + "/refunds.csv")))
      #expect(listed.map { $0["transaction_id"] } == expected, "\(since) to \(until)")
    }
  }

  private static let program = #"""
    import csv, json, sys
    from collections import defaultdict
    from decimal import Decimal
    from openpyxl import load_workbook

    reports, month = sys.argv[1:]
    def rows(where, name):
        with open(f"{where}/{name}.csv", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    number = lambda text: Decimal(text) if text else Decimal(0)
    book = load_workbook(f"{month}/night-audit-2026-11-18_2026-11-19.xlsx", data_only=True)
    summary, wrong = book["Summary"], []
    def compare(value, expected, what):
        if value is None or abs(Decimal(str(value)) - Decimal(expected)) > Decimal("0.0000001"):
            wrong.append(f"{what}: {value} is not {expected}")
    def find(text):
        return next(r for r in range(1, summary.max_row + 1) if str(summary.cell(r, 1).value or "").startswith(text))
    if summary["A1"].value != "App Store night audit 2026-11-18 to 2026-11-19":
        wrong.append(summary["A1"].value)
    if [summary.cell(find(text), 2).value for text in ("First day", "Last day")] != ["2026-11-18", "2026-11-19"]:
        wrong.append("first or last day of the period")

    # The roll-forward of open findings, from before the first day to after the last one.
    findings, changes = rows(month, "findings"), rows(month, "changes")
    before = rows(f"{reports}/2026-11-17", "findings")
    new = [c for c in changes if c["change"] in ("new", "reopened")]
    closed = [c for c in changes if c["change"] == "closed"]
    def stake(lines, code):
        return sum((number(f["at_stake"]) for f in lines if f["currency"] == code), Decimal(0))
    own = [f for f in findings if "2026-11-18" <= f["occurred_at"][:10] <= "2026-11-19"]
    row = find("End of the period: exposure roll-forward") + 2
    if [summary.cell(row, c).value for c in range(2, 7)] != ["Opening", "+ New", "− Closed", "± Changed", "= Closing"]:
        wrong.append("headers of the roll-forward")
    if not own or summary.cell(row, 7).value != "of which: this period's transactions":
        wrong.append("the period's own transactions")
    for c, expected in ((2, before), (3, new), (4, closed), (6, findings), (7, own)):
        compare(summary.cell(row + 1, c).value, len(expected), f"findings {c}")
    row += 2
    while summary.cell(row, 1).value != "Amount unknown":
        code = summary.cell(row, 1).value
        for c, expected in ((2, before), (3, new), (4, closed), (6, findings), (7, own)):
            compare(summary.cell(row, c).value, stake(expected, code), f"{code} {c}")
        row += 1

    # The findings about the period's own transactions.
    sheet = book["Period findings"]
    head = {c.value: c.column - 1 for c in sheet[1]}
    listed = {line[head["Finding ID"]] for line in sheet.iter_rows(min_row=2, values_only=True)}
    if listed != {f["finding_id"] for f in own}:
        wrong.append("findings of the period")

    # The days of the period: their current figures, and those that the night of each day reported.
    OUT = ("sandbox", "bad_row")
    def by_day(where, day):
        sums = defaultdict(lambda: [0, Decimal(0)])
        for order in rows(where, "orders"):
            if order["created_at"][:10] == day and order["disposition"] not in OUT:
                for key in (order["currency"], ""), (order["currency"], order["disposition"]):
                    sums[key][0] += 1
                    sums[key][1] += number(order["amount"])
        return sums
    sheet = book["Days"]
    head = {c.value: c.column - 1 for c in sheet[1]}
    lines = [line for line in sheet.iter_rows(min_row=2, values_only=True)
             if line[0] in ("2026-11-18", "2026-11-19") and line[1]]
    differing = 0
    for line in lines:
        day, code = line[:2]
        for where, prefix in ((month, ""), (f"{reports}/{day}", "reported ")):
            sums = by_day(where, day)
            title = lambda words: (prefix + words).capitalize()
            outcome = lambda words: words if prefix == "" else "Reported: " + words
            compare(line[head[title("orders")]], sums[code, ""][0], f"{day} {code} {prefix}orders")
            compare(line[head[title("ordered")]], sums[code, ""][1], f"{day} {code} {prefix}ordered")
            for disposition, words in (
                    ("settled", "Settled"), ("refunded", "Refunded"), ("void", "Not paid, nothing delivered"),
                    ("paid_not_delivered", "Paid, not delivered"), ("delivered_not_paid", "Delivered, not paid")):
                compare(line[head[outcome(words)]], sums[code, disposition][1], f"{day} {code} {prefix}{disposition}")
        differing += line[head["Differs"]]
    if {(day, code) for day in ("2026-11-18", "2026-11-19") for code, d in by_day(month, day) if not d} \
            != {line[:2] for line in lines}:
        wrong.append("a day is missing")
    controls = {r[0]: r[4] for r in summary.iter_rows(max_col=5, values_only=True) if r[4] in ("balanced", "NOT BALANCED")}
    if set(controls.values()) != {"balanced"} or "Ordered USD: users = days" not in controls:
        wrong.append("controls")
    json.dump({"wrong": wrong, "days": len(lines), "differing": differing, "closed": len(closed)}, sys.stdout)
    """#
}
