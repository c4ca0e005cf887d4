import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct ReportPageTests {
  static let hostile = "</script><img src=x onerror=alert(1)>\"'&<b>{{title}}"

  static func sample() throws -> SampleReport {
    var report = try SampleReport()
    report.add(try OrderFixture(amount: money(199, "USD")).judgement("o1"))
    report.add(
      try OrderFixture(userId: Identifier(hostile), amount: money(300, "JPY"), isDelivered: false).judgement("o2"))
    report.add(try OrderFixture(userId: "u3", amount: money(1_250, "KWD"), isPaid: false).judgement("o3"))
    report.add(try OrderFixture(userId: "u4", amount: money(801, "USD"), isDelivered: false).judgement("o4"))
    var orphan = Finding(kind: .orphanPayment, subject: .transaction("T9"), reason: Reason(hostile))
    orphan.transactionId = "T9"
    orphan.isAmountAtRiskUnknown = true
    var told = ReportedFinding(
      orphan, firstSeen: SampleReport.asOf, status: "acknowledged", owner: "Dana", remark: hostile, due: "2026-11-18")
    told.explanation = ["named_transaction: \(hostile)", "Nobody claims it."]
    report.report(told)
    for night in 15...19 {
      var stake = MoneyByCurrency()
      for code in ["USD", "JPY"] { stake.add(try money(Int64(night * night), code)) }
      report.summary.history.append(Night(date: "2026-11-\(night)", paid: stake, delivered: stake, atStake: stake))
    }
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["7 receipts were not answered. \(hostile)"]
    return report
  }

  @Test(arguments: ReportFormat.allCases)
  func formatsForPeopleIncludeReportHtmlAndEqualFactsGiveEqualBytes(_ format: ReportFormat) throws {
    var report = try Self.sample()
    report.options.formats = [format]
    try withTemporaryDirectory { directory in
      let names = try report.write(to: directory).map(\.name)
      #expect(names.contains("report.html") == (format != .csv && format != .stripeImport))
      #expect(names.contains("actions.json"))
    }
    #expect(try Self.sample().file("report.html") == Self.sample().file("report.html"))
  }

  @Test func everyTextIsEscapedAndOnlyThePagesOwnStyleAndScriptMayRun() throws {
    let page = try Self.sample().file("report.html")
    #expect(!page.contains("<img"))
    #expect(!page.contains("<b>{{title}}"))
    #expect(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"))
    #expect(page.components(separatedBy: "<script>").count == 2)
    #expect(page.contains("default-src 'none'; style-src 'sha256-"))
    #expect(!page.contains("http://") && !page.contains("https://"))
  }

  @Test func thePageHasTheNumbersOfTheFirstSheetFindingsWorstFirstAndExplainsCriticalFindings() throws {
    let page = try Self.sample().file("report.html")
    #expect(page.contains("1 of the open findings have no known amount"))
    #expect(page.contains("<td class=\"n\">8.01</td>"))
    #expect(page.contains("4 open findings, worst first."))
    #expect(page.components(separatedBy: "<details>").count == 6)
    #expect(page.contains("<li>Nobody claims it.</li>"))
    #expect(page.components(separatedBy: "<svg").count == 3)
    // Browsers show placeholders in a paler colour, which is hard to read.
    #expect(page.contains("input::placeholder{color:var(--soft);opacity:1}"))
    // An ID of 19 digits takes one line on a wide screen.
    #expect(page.contains("@media screen and (min-width:87rem){"))
    #expect(page.contains(".id{min-width:calc(19ch + 1rem);"))
  }

  @Test func theSectionsOfThePageHaveTheOrderOfTheFirstSheet() throws {
    var report = try Self.sample()
    report.add(try OrderFixture(userId: "u5", amount: money(500, "USD")).judgement("o5"))
    report.summary.first = Array(report.findings.prefix(5))
    var refunded = try OrderFixture(userId: "u6", amount: money(400, "USD")).judgement("o6")
    (refunded.disposition, refunded.findings) = (.refunded, [])
    report.add(refunded)
    report.summary.adjustments = [
      Adjustment(
        day: "2026-11-18", bucket: DayTotals.Bucket(currency: try currency("USD"), disposition: .refunded),
        reported: DayTotals.Sum(), now: DayTotals.Sum(orders: 1, minorUnits: 400))
    ]
    report.summary.notChecked = ["Game": [.partialRefund]]
    let new = try #require(report.findings.first)
    report.changes = [ChangeRow(.new, finding: new.finding, findingId: new.findingId, before: nil, after: "open")]
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1), isSinceCompleteNight: true)
    report.summary.decisions = DecisionCounts(["accepted": 2, "owner": 1])
    report.refunds = [refund("T9", try money(123_456, "USD"))]
    let page = try report.file("report.html")
    let titles = page.components(separatedBy: "<h2 id=\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
    #expect(
      titles == [
        "h-changes", "h-first", "h-owners", "h-decided", "h-money", "h-sales", "h-rates", "h-roll", "h-kinds", "h-ages",
        "h-adjustments", "h-trend", "h-controls", "h-unchecked", "findings",
      ])
    #expect(page.contains("<p class=\"meta\">0 closed · 1 new · 0 reopened · 0 with another status · 0 adjusted</p>"))
    let rate = "<td>USD</td><td class=\"n\">4.00</td><td class=\"n\">4.00</td><td class=\"n\">100.0 %</td></tr>"
    #expect(page.contains("<th scope=\"row\">u6</th>\(rate)"))
    #expect(page.contains("<h2 id=\"h-rates\">Refund rates: of the period&#39;s orders, refunded so far</h2>"))
    #expect(
      page.contains(
        "<th scope=\"row\">Refunded</th><td class=\"whole\">2026-11-18</td><td>USD</td>"
          + ["–", "1", "1", "–", "4.00", "4.00"].map { "<td class=\"n\">\($0)</td>" }.joined() + "</tr>"))
    #expect(page.contains("Not checked for Game (not available through its channel): Partial refund."))
    #expect(
      page.contains(
        "<strong>Paid, not delivered</strong> <span class=\"badge critical\">critical</span> order o4 · 8.01 USD<p"))
    #expect(page.contains("transaction T9 · unknown · Dana · due 2026-11-18<p"))
    #expect(
      page.contains(
        "<th scope=\"row\">Dana</th><td class=\"n\">1</td><td class=\"n\">1</td><td class=\"n\">1</td></tr>"))
    #expect(page.contains("<p class=\"lead\">2 accepted · 1 assigned</p>"))
    // The rates of products and of users have frames of their own.
    #expect(page.components(separatedBy: "role=\"region\" aria-label=\"Refund rates by ").count == 3)
    #expect(page.contains("<td class=\"n\">−1,234.56</td>"))
    #expect(page.contains("data-status=\"acknowledged\" data-owner=\"Dana\" data-due=\"2026-11-18\" data-new=\"new\""))
  }

  @Test func timesOnThePageAndInTheMailAreInTheReportsTimeZone() throws {
    var report = try Self.sample()
    report.changes = [
      ChangeRow(
        adjusted: "o8", userId: "u8", amount: try money(300, "USD"), createdAt: try instant("2026-11-10T23:30:00Z"),
        before: .settled, after: .refunded, because: "Apple refunded it 2026-11-19T23:30:00Z")
    ]
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1))
    try withTemporaryDirectory { directory in
      try report.write(to: directory)
      let page = try contents("report.html", in: directory)
      #expect(page.contains("as of 2026-11-20 01:00:00 (Europe/Berlin)"))
      #expect(page.contains("Compared with the night made for 2026-11-19 01:00:00 (Europe/Berlin)"))
      #expect(page.contains("(Apple refunded it 2026-11-20 00:30:00)") && page.contains("Times are in Europe/Berlin."))
      #expect(page.contains("<dt>Paid</dt><dd>2026-11-19 11:00:01</dd>"))
      #expect(page.firstMatch(of: /\d\d:\d\d:\d\dZ/) == nil)
      let json = try contents("summary.json", in: directory)
      #expect(json.contains("(Apple refunded it 2026-11-19T23:30:00Z)"))
      let document = try #require(SummaryDocument(json: Array(json.utf8)))
      let mail = SummaryMail(document, folder: "reports", attachment: nil).body.text
      #expect(mail.contains("(Apple refunded it 2026-11-20 00:30:00)") && !mail.contains("00Z"))
    }
  }

  @Test func thePageListsTheWorst2000FindingsCountsAllAndNamesTheFileWithTheRest() throws {
    var report = try SampleReport()
    for number in 0..<(ReportPage.shownFindings + 5) {
      var finding = Finding(kind: .orphanPayment, subject: .transaction(Identifier("T\(number)")), reason: "r")
      (finding.atStake, finding.isAmountAtRiskUnknown) = (try money(Int64(number), "USD"), true)
      report.report(ReportedFinding(finding, firstSeen: SampleReport.asOf))
    }
    let page = try report.file("report.html")
    #expect(page.contains("<p class=\"warn\">2,005 of the open findings have no known amount"))
    #expect(page.contains("The worst 2,000 of 2,005 open findings; all are in findings.csv."))
    #expect(page.components(separatedBy: "<tr data-severity").count == ReportPage.shownFindings + 1)
    #expect(page.contains("data-stake=\"20.04\"") && !page.contains("data-stake=\"0.04\""))
    report.options.formats = [.xlsx]
    #expect(try report.file("report.html").contains("of 2,005 open findings; all are on the sheet Findings."))
  }

  @Test func actionsJsonListsTheActionOfEachFindingWithItsSubjectFactsAndEvidence() throws {
    let actions = try Self.sample().actions()
    #expect(actions.count == 4)
    let deliver = try #require(actions.first { $0["order_id"] as? String == "o4" })
    #expect(deliver["action"] as? String == "deliver")
    #expect(deliver["user_id"] as? String == "u4")
    #expect((deliver["facts"] as? [String: Any])?["at_stake"] as? String == "8.01")
    #expect((deliver["evidence"] as? [String: Any])?["transaction_id"] as? String == "T-o4")
    let keys = ["action", "evidence", "facts", "finding_id", "kind", "order_id", "user_id"]
    #expect(actions.allSatisfy { $0.keys.sorted() == keys }, "an unknown value is null, not absent")
    let orphan = try #require(actions.first { $0["kind"] as? String == "orphan_payment" })
    #expect(orphan["order_id"] is NSNull)
    let unpaid = try #require(actions.first { $0["order_id"] as? String == "o3" })
    #expect(unpaid["action"] as? String == "look")
    let facts = try #require(unpaid["facts"] as? [String: Any])
    #expect(facts["held_by"] == nil && facts["units_held"] == nil)
    #expect((orphan["facts"] as? [String: Any])?["units_held"] == nil)
  }

  @Test func theFactsOfAnActionOnASubscriptionHaveItsExpiryAndStatus() throws {
    var report = try SampleReport()
    var refunded = Finding(kind: .refundedStillDelivered, subject: .order("o9"), reason: "r")
    refunded.action = .bookRefund
    (refunded.subscriptionExpiresDate, refunded.subscriptionStatus) = (SampleReport.asOf, .gracePeriod)
    #expect(refunded.suggestedAction.contains("leave the access"))
    report.report(ReportedFinding(refunded, firstSeen: SampleReport.asOf))
    let action = try #require(try report.actions().first)
    let facts = try #require(action["facts"] as? [String: Any])
    #expect(action["action"] as? String == "book_refund")
    #expect(facts["subscription_status"] as? String == "grace_period" && facts["expires_at"] is String)
  }

  @Test func ordersWithoutAVerifiableProofAreCountedByApp() throws {
    var report = try Self.sample()
    report.summary.notAsked = ["Game": 1, "Cards": 12]
    #expect(
      report.summary.uncheckedOrderTexts.map { $0.contains("1 order of Game cannot be verified") } == [false, true])
    #expect(try report.file("report.html").contains("12 orders of Cards cannot be verified"))
  }

  @Test func actionsJsonNamesTheUserWhoHasAnOrdersGoodsByPseudonymIfTheReportHasPseudonyms() throws {
    for key in [nil, "sixteen bytes ok"] {
      var report = try SampleReport()
      report.options.pseudonyms = key.flatMap { Pseudonyms(key: Array($0.utf8)) }
      var astray = Finding(kind: .deliveredNotPaid, subject: .order("o9"), reason: "r")
      (astray.action, astray.userId, astray.goodsHolder, astray.deliveryId) = (.look, "u1", "zoe", "d9")
      report.report(ReportedFinding(astray, firstSeen: SampleReport.asOf))
      let action = try #require(try report.actions().first)
      let facts = try #require(action["facts"] as? [String: Any])
      let name = report.options.pseudonyms?.pseudonym(of: "zoe") ?? "zoe"
      #expect(action["action"] as? String == "look")
      #expect(facts["held_by"] as? String == name && facts["delivery_id"] as? String == "d9")
    }
  }
}
