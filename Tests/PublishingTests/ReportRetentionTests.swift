import Foundation
import Reconciliation
import Testing

@testable import Publishing

/// Which folders go.
@Suite struct ReportRetentionTests {
  private func night(_ day: Int, _ isComplete: Bool = true) -> ReportRetention.Folder {
    ReportRetention.Folder(
      path: "2026-11-\(day)", asOf: Instant(seconds: Int64(day) * 86_400), isComplete: isComplete)
  }

  @Test func theLastCompleteNightStaysHoweverOldItIs() {
    let folders = [night(19, false), night(17), night(18), night(16, false), night(15)]
    let rule = ReportRetention(cutoff: Instant(seconds: 100 * 86_400), kept: [])
    #expect(rule.expired(folders).map(\.path) == ["2026-11-15", "2026-11-16", "2026-11-17", "2026-11-19"])
  }

  @Test func whatIsKeptAndWhatIsYoungStays() {
    let adHoc = ReportRetention.Folder(
      path: "ad-hoc/20261118T030000Z-1", asOf: Instant(seconds: 18 * 86_400), isComplete: true)
    let folders = [night(15), night(16), night(17), night(18), night(19), adHoc]
    let rule = ReportRetention(cutoff: Instant(seconds: 18 * 86_400), kept: ["2026-11-16"])
    #expect(rule.expired(folders).map(\.path) == ["2026-11-15", "2026-11-17"])
    let later = ReportRetention(cutoff: Instant(seconds: 18 * 86_400 + 1), kept: ["2026-11-16"])
    #expect(later.expired(folders).map(\.path) == ["2026-11-15", "2026-11-17", "2026-11-18", adHoc.path])
  }
}
