import Foundation
import Reconciliation
import Testing

@testable import Reporting

struct ReportPageTests {
  static let hostile = "</script><img src=x onerror=alert(1)>\"'&<b>{{title}}"

  static let sample = {
    var report = SampleReport()
    report.add(order("o1", money(199, "USD")))
    report.add(order("o2", money(300, "JPY"), user: Identifier(hostile), isDelivered: false))
    report.add(order("o3", money(1_250, "KWD"), user: "u3", isPaid: false))
    report.add(order("o4", money(801, "USD"), user: "u4", isDelivered: false))
    var orphan = Finding(.orphanPayment, .transaction("T9"), reason: Reason(hostile))
    (orphan.transactionId, orphan.isAmountAtRiskUnknown) = ("T9", true)
    var decided = ReportedFinding(
      orphan, firstSeen: SampleReport.asOf, status: "acknowledged", owner: "Dana", remark: hostile, due: "2026-11-18")
    decided.explanation = ["named_transaction: \(hostile)", "Nobody claims it."]
    report.report(decided)
    report.addNights(15...19, atRisk: "USD", "JPY")
    report.summary.isComplete = false
    report.summary.incompleteReasons = ["7 receipts were not answered. \(hostile)"]
    return report
  }()

  @Test func everyTextIsEscapedAndOnlyThePagesOwnStyleAndScriptMayRun() throws {
    let page = try Self.sample.file("report.html")
    #expect(!page.contains("<img") && !page.contains("<b>{{title}}"))
    #expect(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"))
    #expect(page.components(separatedBy: "<script>").count == 2)
    #expect(page.contains("default-src 'none'; style-src 'sha256-"))
    #expect(!page.contains("http://") && !page.contains("https://"))
  }

  @Test func thePageHasTheNumbersOfTheFirstSheetFindingsWorstFirstAndExplainsCriticalFindings() throws {
    let page = try Self.sample.file("report.html")
    #expect(page.contains("1 of the open findings have no known amount"))
    #expect(page.contains("<td class=\"n\">8.01</td>") && page.contains("4 open findings, worst first."))
    #expect(page.components(separatedBy: "<details>").count == 6 && page.contains("<li>Nobody claims it.</li>"))
    #expect(page.components(separatedBy: "<svg").count == 3)
    // Browsers show placeholders in a paler colour, which is hard to read.
    #expect(page.contains("input::placeholder{color:var(--soft);opacity:1}"))
    // An ID of 19 digits takes one line on a wide screen.
    #expect(page.contains("@media screen and (min-width:87rem){"))
    #expect(page.contains(".id{min-width:calc(19ch + 1rem);"))
  }

  @Test func theSectionsOfThePageHaveTheOrderOfTheFirstSheet() throws {
    var report = Self.sample
    report.add(order("o5", money(500, "USD"), user: "u5"))
    report.summary.first = Array(report.findings.prefix(5))
    var refunded = order("o6", money(400, "USD"), user: "u6")
    (refunded.disposition, refunded.findings) = (.refunded, [])
    report.add(refunded)
    report.summary.adjustments = [adjustment(.refunded, to: (1, 400))]
    report.summary.notChecked = ["Game": [.partialRefund]]
    report.changes = [ChangeRow(new: try #require(report.findings.first))]
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1), isSinceCompleteNight: true)
    report.summary.decisions = DecisionCounts(["accepted": 2, "owner": 1])
    report.refunds = [refund("T9", money(123_456, "USD"))]
    let page = try report.file("report.html")
    let titles = page.components(separatedBy: "<h2 id=\"").dropFirst().map { String($0.prefix { $0 != "\"" }) }
    #expect(
      titles == [
        "h-changes", "h-first", "h-owners", "h-decided", "h-money", "h-sales", "h-rates", "h-roll", "h-kinds", "h-ages",
        "h-adjustments", "h-trend", "h-controls", "h-unchecked", "findings",
      ])
    func cells(_ texts: String...) -> String { texts.map { "<td class=\"n\">\($0)</td>" }.joined() }
    for words in [
      "<p class=\"meta\">0 closed · 1 new · 0 reopened · 0 with another status · 0 adjusted</p>",
      "<h2 id=\"h-rates\">Refund rates: of the period&#39;s orders, refunded so far</h2>",
      "<th scope=\"row\">u6</th><td>USD</td>" + cells("4.00", "4.00", "100.0 %") + "</tr>",
      "<th scope=\"row\">Refunded</th><td class=\"whole\">2026-11-18</td><td>USD</td>"
        + cells("–", "1", "1", "–", "4.00", "4.00") + "</tr>",
      "Not checked for Game (not available through its channel): Partial refund.",
      "<strong>Paid, not delivered</strong> <span class=\"badge critical\">critical</span> order o4 · 8.01 USD<p",
      "transaction T9 · unknown · Dana · due 2026-11-18<p",
      "<th scope=\"row\">Dana</th>" + cells("1", "1", "1") + "</tr>", "<p class=\"lead\">2 accepted · 1 assigned</p>",
      cells("−1,234.56"),
      "data-status=\"acknowledged\" data-owner=\"Dana\" data-due=\"2026-11-18\" data-new=\"new\"",
    ] { #expect(page.contains(words), "\(words)") }
    // The rates of products and of users have frames of their own.
    #expect(page.components(separatedBy: "role=\"region\" aria-label=\"Refund rates by ").count == 3)
  }

  /// 36.00 of 252.00 are 14.29 percent, 38.00 are 15.08 percent, and 38.25 of 255.00 are 15 percent.
  @Test(
    arguments: [
      (36_00, 252_00, "14.3 %"), (38_00, 252_00, "15.1 %"), (38_25, 255_00, "15.0 %"),
    ] as [(Int64, Int64, String)])
  func refundRatesAreRounded(refunded: Int64, ordered: Int64, rate: String) throws {
    var report = Self.sample
    for (id, amount, disposition) in [("r1", refunded, .refunded), ("r2", ordered - refunded, .settled)]
      as [(Identifier, Int64, Disposition)]
    {
      var judgement = order(id, money(amount, "USD"), user: "u7")
      (judgement.disposition, judgement.findings) = (disposition, [])
      report.add(judgement)
    }
    let row = try #require(try report.file("report.html").components(separatedBy: "<th scope=\"row\">u7</th>").last)
    #expect(row.prefix { $0 != "\n" }.hasSuffix("<td class=\"n\">\(rate)</td></tr>"))
  }

  @Test func timesOnThePageAndInTheMailAreInTheReportsTimeZone() throws {
    var report = Self.sample
    report.changes = [.refunded]
    report.summary.changes = ChangesSummary(since: SampleReport.asOf - .days(1))
    try report.written { directory in
      let page = try contents("report.html", in: directory)
      for words in [
        "as of 2026-11-20 01:00:00 (Europe/Berlin)", "Times are in Europe/Berlin.",
        "Compared with the night made for 2026-11-19 01:00:00 (Europe/Berlin)",
        "(Apple refunded it 2026-11-20 00:30:00)", "<dt>Paid</dt><dd>2026-11-19 11:00:01</dd>",
      ] { #expect(page.contains(words), "\(words)") }
      #expect(page.firstMatch(of: /\d\d:\d\d:\d\dZ/) == nil)
      let json = try contents("summary.json", in: directory)
      #expect(json.contains("(Apple refunded it 2026-11-19T23:30:00Z)"))
      let document = try #require(SummaryDocument(json: Array(json.utf8)))
      let mail = SummaryMail(document, folder: "reports", attachment: nil).body.text
      #expect(mail.contains("(Apple refunded it 2026-11-20 00:30:00)") && !mail.contains("00Z"))
    }
  }

  @Test func thePageListsTheWorst2000FindingsCountsAllAndNamesTheFileWithTheRest() throws {
    var report = SampleReport()
    for number in 0..<(ReportPage.shownFindings + 5) {
      var finding = Finding(.orphanPayment, .transaction(Identifier("T\(number)")), money(Int64(number), "USD"))
      finding.isAmountAtRiskUnknown = true
      report.report(ReportedFinding(finding))
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
    let actions = try Self.sample.actions()
    #expect(actions.count == 4)
    let deliver = try #require(actions.first { $0["order_id"] as? String == "o4" })
    #expect(deliver["action"] as? String == "deliver" && deliver["user_id"] as? String == "u4")
    #expect((deliver["facts"] as? [String: Any])?["at_stake"] as? String == "8.01")
    #expect((deliver["evidence"] as? [String: Any])?["transaction_id"] as? String == "T-o4")
    let keys = ["action", "evidence", "facts", "finding_id", "kind", "order_id", "user_id"]
    #expect(actions.allSatisfy { $0.keys.sorted() == keys }, "an unknown value is null, not absent")
    let orphan = try #require(actions.first { $0["kind"] as? String == "orphan_payment" })
    #expect(orphan["order_id"] is NSNull && (orphan["facts"] as? [String: Any])?["units_held"] == nil)
    let unpaid = try #require(actions.first { $0["order_id"] as? String == "o3" })
    let facts = try #require(unpaid["facts"] as? [String: Any])
    #expect(unpaid["action"] as? String == "look" && facts["held_by"] == nil && facts["units_held"] == nil)
  }

  /// The action of a report with only this finding, and its facts.
  private func action(_ finding: Finding, _ pseudonyms: Pseudonyms? = nil) throws -> (name: String?, [String: Any]) {
    var report = SampleReport()
    report.options.pseudonyms = pseudonyms
    report.report(ReportedFinding(finding))
    let action = try #require(try report.actions().first)
    return (action["action"] as? String, try #require(action["facts"] as? [String: Any]))
  }

  @Test func theFactsOfAnActionOnASubscriptionHaveItsExpiryAndStatus() throws {
    var refunded = Finding(.refundedStillDelivered, .order("o9"))
    refunded.action = .bookRefund
    (refunded.subscriptionExpiresDate, refunded.subscriptionStatus) = (SampleReport.asOf, .gracePeriod)
    refunded.refundToBook = money(33, "USD")
    #expect(refunded.suggestedAction.contains("leave the access"))
    let (name, facts) = try action(refunded)
    #expect(name == "book_refund")
    #expect(facts["subscription_status"] as? String == "grace_period" && facts["expires_at"] is String)
    #expect(facts["refunded"] as? String == "0.33")
  }

  @Test func aDecidedFindingLeavesNothingToTheShopsJobs() throws {
    var finding = Finding(.refundedStillDelivered, .order("o9"))
    (finding.action, finding.units) = (.takeBack, Units(ordered: 1, delivered: 1))
    for status in ["open", "acknowledged", "accepted", "closed"] {
      var report = SampleReport()
      report.report(ReportedFinding(finding, firstSeen: SampleReport.asOf, status: status))
      let action = try #require(try report.actions().first)
      let isOpen = ["open", "acknowledged"].contains(status)
      #expect(action["action"] as? String == (isOpen ? "take_back" : "look"), "\(status)")
      #expect((action["facts"] as? [String: Any])?["units_held"] == nil || isOpen, "\(status)")
    }
  }

  @Test func ordersWithoutAVerifiableProofAreCountedByApp() throws {
    var report = Self.sample
    report.summary.notAsked = ["Game": 1, "Cards": 12]
    #expect(
      report.summary.uncheckedOrderTexts.map { $0.contains("1 order of Game cannot be verified") } == [false, true])
    #expect(try report.file("report.html").contains("12 orders of Cards cannot be verified"))
  }

  @Test func actionsJsonNamesTheUserWhoHasAnOrdersGoodsByPseudonymIfTheReportHasPseudonyms() throws {
    var astray = Finding(.deliveredNotPaid, .order("o9"))
    (astray.action, astray.userId, astray.goodsHolder, astray.deliveryId) = (.look, "u1", "zoe", "d9")
    for pseudonyms in [nil, Pseudonyms(key: Array("sixteen bytes ok".utf8))] {
      let (name, facts) = try action(astray, pseudonyms)
      #expect(name == "look" && facts["delivery_id"] as? String == "d9")
      #expect(facts["held_by"] as? String == pseudonyms?.pseudonym(of: "zoe") ?? "zoe")
    }
  }
}
