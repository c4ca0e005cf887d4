import Testing

@testable import NightAudit

@Suite struct NightStatusTests {
  @Test(arguments: [(1, "1 report, ", "1 receipt or ID to ask"), (2, "2 reports, ", "2 receipts and IDs to ask")])
  func aCountOfOneIsSingular(_ count: Int, _ reports: String, _ receipts: String) {
    let status = NightStatus(
      lastNight: nil, lastCompleteDay: nil, lastCompleteAt: nil, takenBackDay: nil, overdue: false, openFindings: [:],
      receiptsDue: count, reportsOwed: count, feedCoverage: [:], notifications: [], lockedBy: nil)
    #expect(status.text.contains(reports) && status.text.contains(receipts), "\(status.text)")
  }
}
