import AuditStore
import Reporting
import Run
import Spreadsheet
import Testing

@testable import NightAudit

@Suite struct SignOffImportTests {
  private func refusal(
    _ new: [StoredSignOff.Line: String], beside current: [[StoredSignOff.Line: String]] = [],
    incomplete reasons: [String] = [], balance: SignOffImport.Balance = .balanced
  ) -> String? {
    SignOffImport.refusal(
      of: StoredSignOff(lines: new), beside: current.map { StoredSignOff(lines: $0) }, incompleteReasons: reasons,
      balance: balance)
  }

  @Test func onePersonCannotPrepareAndReview() {
    #expect(refusal([.preparedBy: "Dana", .reviewedBy: "Eva"]) == nil)
    for name in ["Dana", " dana", "DANA  ", "Da\u{FF4E}a"] {
      #expect(refusal([.preparedBy: "Dana", .reviewedBy: name])?.contains("cannot both") == true, "\(name)")
    }
    #expect(refusal([.preparedBy: "Zoe\u{308}", .reviewedBy: "Zo\u{EB}"])?.contains("cannot both") == true)
    // The other name may be in an earlier sign-off.
    let before: [StoredSignOff.Line: String] = [.preparedBy: "Dana"]
    #expect(refusal([.reviewedBy: "dana"], beside: [before])?.contains("cannot both") == true)
    #expect(refusal([.reviewedBy: "Eva"], beside: [before]) == nil)
    #expect(refusal([.preparedBy: "Eva", .reviewedBy: "Dana"], beside: [before]) == nil)
    #expect(refusal([.remark: "seen"], beside: [[.preparedBy: "Dana", .reviewedBy: "Dana"]]) == nil)
  }

  @Test func aDateIsADayOfTheCalendar() {
    func read(_ cell: ReadCell) -> String {
      do throws(PeopleText.Refusal) {
        return try SignOffImport.text(cell, SignOff.date) ?? "nothing"
      } catch {
        return error.description
      }
    }
    #expect(read(.number("46346")) == "2026-11-20" && read(.text(" 2026-11-20 ")) == "2026-11-20")
    for (cell, problem) in [
      (.text("31.02.2026"), "not written as year, month and day"), (.text("2026-02-31"), "not in the calendar"),
      (.number("1"), "no date from 2000 to 2199"),
    ] as [(ReadCell, String)] { #expect(read(cell).contains(problem), "\(cell)") }
  }

  @Test func onlyACompleteReportAndABalancedWorkbookAreSigned() {
    let lines: [StoredSignOff.Line: String] = [.preparedBy: "Dana", .reviewedBy: "Eva"]
    #expect(refusal(lines, incomplete: ["8 receipts wait."])?.contains("8 receipts wait.") == true)
    #expect(refusal(lines, balance: .notBalanced)?.contains("NOT BALANCED") == true)
    #expect(refusal(lines, balance: .notCalculated)?.contains("no results of its control totals") == true)
  }
}
