import AuditStore
import Foundation
import Reconciliation
import Run
import Testing

@testable import NightAudit

@Suite struct WorkbookOriginTests {
  private static func run(
    _ id: String, summary: String?, day: String = "2026-11-19", isPublished: Bool = true, content: String? = nil
  ) -> WorkbookOrigin.Run {
    WorkbookOrigin.Run(
      runId: id, asOf: Instant(seconds: 1_795_132_800), began: 0, summary: summary, day: day, isPublished: isPublished,
      content: content ?? "of \(id)")
  }

  private func told(_ traits: WorkbookOrigin.Traits, among runs: [WorkbookOrigin.Run]) -> String {
    let origin = WorkbookOrigin(traits, among: runs)
    let signed = (try? origin.signed().runId) ?? "nobody's"
    return (origin.runs.map(\.runId) + ["signed: \(signed)"]).joined(separator: " ")
  }

  @Test func aPeriodThatHasNotEndedIsNotSigned() throws {
    let zone = try #require(TimeZone(identifier: "UTC"))
    let month = try Period(since: "2026-11-01", until: "2026-11-30", in: zone)
    func reason(_ asOf: Instant) -> String? { WorkbookOrigin.missingDays(of: month, in: zone, at: asOf) }
    #expect(reason(month.end) == nil)
    #expect(reason(month.end - .hours(1)) == "1 day is missing, because the period ends with 2026-11-30.")
    #expect(reason(month.end - .days(10)) == "10 days are missing, because the period ends with 2026-11-30.")
  }

  @Test func reportsOfOneAsOfAreDistinguishedByContent() {
    let runs = [
      Self.run("night", summary: "aaaa"), Self.run("user", summary: "bbbb"),
      Self.run("month", summary: "cccc", day: "2026-11-30"), Self.run("again", summary: "aaaa"),
      Self.run("old", summary: nil),
    ]
    for (digits, expected) in [
      ("aaaa", "night again signed: again"), ("bbbb", "user signed: user"), ("cccc", "month signed: month"),
      ("dddd", "old signed: old"),
    ] { #expect(told(WorkbookOrigin.Traits(digits: digits, day: "2026-11-19"), among: runs) == expected) }
    // A workbook without its first sheet has only an as-of, which identifies no report to sign.
    #expect(told(WorkbookOrigin.Traits(), among: runs) == "night user month again old signed: nobody's")
    #expect(told(WorkbookOrigin.Traits(digits: "dddd", day: "2026-11-18"), among: runs) == "signed: nobody's")
  }

  @Test func reportsOfEarlierVersionsAreIdentifiedByTheirDay() {
    let traits = WorkbookOrigin.Traits(digits: "aaaa", day: "2026-11-19")
    let first = Self.run("first", summary: nil, content: "x")
    let month = Self.run("month", summary: nil, day: "2026-11-30")
    #expect(told(traits, among: [first, month]) == "first signed: first")
    #expect(told(traits, among: [first, Self.run("same", summary: nil, content: "x")]) == "first same signed: same")
    let other = Self.run("other", summary: nil, content: "y")
    #expect(told(traits, among: [first, other]) == "first other signed: nobody's")
  }

  @Test func heldReportsAreRecognizedButNotSigned() {
    let traits = WorkbookOrigin.Traits(digits: "aaaa", day: "2026-11-19")
    let held = Self.run("held", summary: "aaaa", isPublished: false)
    #expect(told(traits, among: [held]) == "held signed: nobody's")
    #expect(told(traits, among: [held, Self.run("accepted", summary: "aaaa")]) == "held accepted signed: accepted")
  }
}
