import Foundation
import TestSupport
import Testing

@testable import Reconciliation
@testable import Reporting

@Suite struct ReportStateTests {
  @Test(
    "a report is complete only if every check was answered and every day of the period has ended",
    arguments: [
      (true, 0, "COMPLETE", "Every check that was due was answered."),
      (false, 0, "INCOMPLETE", "The items below are outstanding. All other figures are final."),
      (
        true, 4, "PERIOD NOT ENDED",
        "4 days are missing, because the period ends with 2026-11-30. Every check that was due was answered."
      ),
      (
        false, 1, "INCOMPLETE",
        "1 day is missing, because the period ends with 2026-11-30. The items below are outstanding."
      ),
    ])
  func states(_ isComplete: Bool, _ missing: Int, _ heading: String, _ text: String) throws {
    var report = SampleReport()
    (report.summary.isComplete, report.summary.missingDays) = (isComplete, missing)
    (report.summary.period.since, report.summary.period.until) = ("2026-11-01", "2026-11-30")
    let facts = report.summary
    #expect(facts.state.heading == heading && facts.state.text == text)
    #expect(missing == 0 || facts.stateLine.contains(text))
    #expect((facts.stateLabel == "complete") == (heading == "COMPLETE"))
    #expect(report.document.period.ended == (missing == 0) && report.document.period.missingDays == missing)
    let mail = report.mail()
    #expect(mail.subject.contains(heading == "COMPLETE" ? "complete" : heading), "\(mail.subject)")
    #expect(mail.body.state == "\(heading): \(text)" && (mail.body.tone == .good) == (heading == "COMPLETE"))
    report.options.formats = [.xlsx]
    try report.written { directory throws in
      #expect(try ReadWorkbook(report: directory).sheet("Summary").row(3)["A"]?.text == "\(heading): \(text)")
      let state = "<strong>\(heading)</strong> All control totals balance. \(text)"
      #expect(try contents("report.html", in: directory).contains(state))
    }
  }

  @Test func theMailLinksTheReportOrNamesItsFolder() {
    let (mail, address) = (SampleReport().mail().body, "https://reports.example.com/2026-11-30/")
    let linked = SampleReport().mail(link: address).body
    #expect(linked.text.contains("Open the report: \(address)") && linked.text.contains("What to do first"))
    #expect(linked.html.contains("<a href=\"\(address)\">Open the report</a>"))
    #expect(!mail.html.contains("href") && mail.text.contains("The whole report is in reports."))
  }

  @Test func unusualSharesAreOnTheFirstSheetOnThePageAndInTheMail() throws {
    var report = SampleReport()
    report.summary.unusual = [.kind(.chargedTwice), .kind(.orphanPayment), .refunds].map {
      UnusualShare(subject: $0, count: 14, orders: 100, countBefore: 96, ordersBefore: 10_000, nights: 28)
    }
    let words = [
      "Unusual: “Charged twice” is on 14 of 100 orders (14.0 %), in the 28 nights before on 1.0 %.",
      "Unusual: “Payment without order” occurs 14 times against 100 orders (14.0 %), in the 28 nights before against 1.0 %.",
      "Unusual: refunds occur 14 times against 100 orders (14.0 %), in the 28 nights before against 1.0 %.",
    ]
    #expect(report.document.unusual == words)
    report.options.formats = [.xlsx]
    try report.written { directory in
      let sheet = try ReadWorkbook(report: directory).sheet("Summary")
      let page = try contents("report.html", in: directory)
      for (row, words) in zip(5..., words) {
        #expect(report.mail().body.text.contains(words) && page.contains(words))
        #expect(try sheet.row(row)["A"]?.text == "•  \(words)")
      }
    }
  }
}
