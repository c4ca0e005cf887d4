import AuditStore
import Foundation
import Logging
import Reconciliation
import Testing

@testable import Publishing

@Suite struct ReportRetentionTests {
  private func night(_ day: Int, _ isComplete: Bool = true) -> ReportRetention.Folder {
    ReportRetention.Folder(path: "2026-11-\(day)", asOf: Instant(seconds: Int64(day) * 86_400), isComplete: isComplete)
  }

  @Test func theLastCompleteNightStaysHoweverOldItIs() {
    let folders = [night(19, false), night(17), night(18), night(16, false), night(15)]
    let expired = ReportRetention.expired(folders, before: Instant(seconds: 100 * 86_400), except: [])
    #expect(expired.map(\.path) == ["2026-11-15", "2026-11-16", "2026-11-17", "2026-11-19"])
  }

  @Test func keptAndRecentFoldersAreNotExpired() {
    let adHoc = ReportRetention.Folder(
      path: "ad-hoc/2026-11-01_2026-11-17-1", asOf: Instant(seconds: 18 * 86_400), isComplete: true)
    let folders = [night(15), night(16), night(17), night(18), night(19), adHoc]
    func expired(before seconds: Int64) -> [String] {
      ReportRetention.expired(folders, before: Instant(seconds: seconds), except: ["2026-11-16"]).map(\.path)
    }
    #expect(expired(before: 18 * 86_400) == ["2026-11-15", "2026-11-17"])
    #expect(expired(before: 18 * 86_400 + 1) == ["2026-11-15", "2026-11-17", "2026-11-18", adHoc.path])
  }

  /// The folders of the run are removed in every place; those of other runs, and files of people, stay.
  @Test func foldersOfAForgottenRunAreRemoved() throws {
    let reports = try ReportsDirectory()
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let asOf = ReportsDirectory.asOf(24)
    try reports.publish("before", reports.night())
    try reports.publish("wrong", reports.night("2026-11-20"), hour: 24)
    try reports.publish("held", reports.held("2026-11-20"), hour: 24)
    try reports.publish("apart", reports.adHoc("2026-11-20"), hour: 24)
    try reports.publish("held apart", .heldSeparately(directory: reports.path, asOf: "20261121T030000Z"), hour: 24)
    let apart = ["held/2026-11-20", "held/20261121T030000Z-1", "ad-hoc/2026-11-20-1"]
    for place in apart + ["2026-11-20"] { try reports.write(#"{"run_id": "wrong"}"#, place + "/run.json") }
    let before = try #require(ReportContents(directory: reports.path + "/2026-11-19")?.runId)
    let folders = ReportDirectory(directory: reports.path, known: KnownRuns(["wrong", before]), logger: logger)
    #expect(folders.makers == ["wrong", before])
    #expect(ReportDirectory(directory: reports.path, known: KnownRuns(), logger: logger).folders() == [])

    try folders.forget(night: "2026-11-20", ofRun: "another", madeAsOf: asOf)
    try folders.forget(night: "2026-11-20", ofRun: "wrong", madeAsOf: ReportsDirectory.asOf(25))
    for place in apart {
      try folders.forget(apart: "\(reports.path)/\(place)", ofRun: "another", madeAsOf: asOf)
      try folders.forget(apart: "\(reports.path)/\(place)", ofRun: "wrong", madeAsOf: ReportsDirectory.asOf(25))
    }
    #expect(reports.text("latest/orders.csv") == "wrong")
    #expect(apart.allSatisfy { folders.folders().map(\.path).contains($0) })

    for place in apart { try folders.forget(apart: "\(reports.path)/\(place)", ofRun: "wrong", madeAsOf: asOf) }
    #expect(try reports.entries("held") == [] && reports.entries("ad-hoc") == [])
    // A folder with files of people stays, and is not the newest night.
    try reports.write("signed off", "2026-11-20/notes.txt")
    try folders.forget(night: "2026-11-20", ofRun: "wrong", madeAsOf: asOf)
    #expect(reports.text("2026-11-20/notes.txt") == "signed off" && reports.text("latest/orders.csv") == "before")
    try reports.remove("2026-11-20/notes.txt")
    try folders.forget(night: "2026-11-20", ofRun: "wrong", madeAsOf: asOf)
    #expect(try reports.entries() == ["2026-11-19", "ad-hoc", "held", "latest"])
  }
}
