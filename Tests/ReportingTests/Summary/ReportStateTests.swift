import Foundation
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
    var report = try SampleReport()
    report.summary.isComplete = isComplete
    report.summary.missingDays = missing
    report.summary.period.since = "2026-11-01"
    report.summary.period.until = "2026-11-30"
    let facts = report.summary
    #expect(facts.state.heading == heading && facts.state.text == text)
    #expect(missing == 0 || facts.stateLine.contains(text))
    #expect((facts.stateLabel == "complete") == (heading == "COMPLETE"))

    let document = SummaryDocument(totals: report.totals, summary: facts, control: [], asOf: SampleReport.asOf)
    #expect(document.period.ended == (missing == 0) && document.period.missingDays == missing)
    let mail = SummaryMail(document, folder: "reports", attachment: nil)
    let linked = SummaryMail(
      document, folder: "reports", attachment: nil, link: "https://reports.example.com/2026-11-30/")
    #expect(linked.body.text.contains("Open the report: https://reports.example.com/2026-11-30/"))
    #expect(linked.body.html.contains("<a href=\"https://reports.example.com/2026-11-30/\">Open the report</a>"))
    #expect(!mail.body.html.contains("href") && mail.body.text.contains("The whole report is in reports."))
    #expect(linked.body.text.contains("What to do first"))
    #expect(mail.subject.contains(heading == "COMPLETE" ? "complete" : heading), "\(mail.subject)")
    #expect(mail.body.state == "\(heading): \(text)")
    #expect((mail.body.tone == .good) == (heading == "COMPLETE"))

    try withTemporaryDirectory { directory in
      report.options.formats = [.xlsx]
      try report.write(to: directory)
      let sheet = try ReadBook(directory: directory).sheet("Summary")
      #expect(try sheet.row(3)["A"]?.text == "\(heading): \(text)")
      let page = try String(contentsOfFile: directory + "/report.html", encoding: .utf8)
      #expect(page.contains("<strong>\(heading)</strong> All control totals balance. \(text)"))
    }
  }

  @Test func unusualSharesAreOnTheFirstSheetOnThePageAndInTheMail() throws {
    var report = try SampleReport()
    report.summary.unusual = [.kind(.chargedTwice), .kind(.orphanPayment), .refunds].map {
      UnusualShare(subject: $0, count: 14, orders: 100, countBefore: 9, ordersBefore: 1_000, nights: 28)
    }
    let words = [
      "Unusual: “Charged twice” is on 14 of 100 orders (14.0 %), in the 28 nights before on 0.9 %.",
      "Unusual: “Payment without order” occurs 14 times against 100 orders (14.0 %), in the 28 nights before against 0.9 %.",
      "Unusual: refunds are on 14 of 100 orders (14.0 %), in the 28 nights before on 0.9 %.",
    ]
    let document = SummaryDocument(totals: report.totals, summary: report.summary, control: [], asOf: SampleReport.asOf)
    #expect(document.unusual == words)
    let mail = SummaryMail(document, folder: "reports", attachment: nil).body.text
    try withTemporaryDirectory { directory in
      report.options.formats = [.xlsx]
      try report.write(to: directory)
      let sheet = try ReadBook(directory: directory).sheet("Summary")
      let page = try contents("report.html", in: directory)
      for (row, words) in zip(5..., words) {
        #expect(mail.contains(words), "\(mail)")
        #expect(try sheet.row(row)["A"]?.text == "•  \(words)")
        #expect(page.contains(words))
      }
    }
  }
}
