import AuditStore
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

  @Test func onlyACompleteReportAndABalancedWorkbookAreSigned() {
    let lines: [StoredSignOff.Line: String] = [.preparedBy: "Dana", .reviewedBy: "Eva"]
    #expect(refusal(lines, incomplete: ["8 receipts wait."])?.contains("8 receipts wait.") == true)
    #expect(refusal(lines, balance: .notBalanced)?.contains("NOT BALANCED") == true)
    #expect(refusal(lines, balance: .notCalculated)?.contains("no results of its control totals") == true)
  }
}
