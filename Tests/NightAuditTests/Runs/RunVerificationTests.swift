import Reconciliation
import Testing

@testable import AuditStore
@testable import NightAudit

@Suite struct RunVerificationTests {
  @Test func onlyReportsOfReconcileBelongToNoRun() {
    func isSound(_ command: String?, isOfTrail: Bool, owner: String?) -> Bool {
      RunVerification.problem(ofUnrecorded: command, isOfTrail: isOfTrail, owner: owner) == nil
    }
    #expect(isSound("reconcile", isOfTrail: false, owner: nil))
    for command in ["run", "recheck", "", nil] { #expect(!isSound(command, isOfTrail: false, owner: nil)) }
    #expect(!isSound("reconcile", isOfTrail: true, owner: nil))
    #expect(!isSound("reconcile", isOfTrail: false, owner: "a"))
  }

  @Test func aReportMatchesTheContentOfItsRun() {
    func entry(_ kind: Trail.Kind, made: String?) -> TrailEntry.Content {
      TrailEntry.Content(entry: 1, kind: kind, run: "a", at: "", report: made, appended: [], columns: [:], marks: [:])
    }
    func isSound(_ kind: Trail.Kind, made: String?) -> Bool {
      RunVerification.problem(ofContent: "x", recorded: made, [entry(kind, made: made)]) == nil
    }
    for kind in [Trail.Kind.published, .held] {
      #expect(isSound(kind, made: "x") && !isSound(kind, made: "y"), "\(kind)")
    }
    #expect(!isSound(.forgotten, made: "x") && !isSound(.forgotten, made: nil))
    // Earlier versions recorded no digest of held reports.
    #expect(isSound(.held, made: nil) && isSound(.found, made: nil))
    #expect(!isSound(.began, made: nil) && !isSound(.ended, made: nil))
    #expect(RunVerification.problem(ofContent: "x", recorded: nil, []) != nil)
    // The first recorded digest counts, the row must agree with it, and a forgotten run has no valid report.
    func isSound(_ entries: [TrailEntry.Content], recorded: String) -> Bool {
      RunVerification.problem(ofContent: "x", recorded: recorded, entries) == nil
    }
    let published = entry(.published, made: "x")
    #expect(isSound([published, entry(.asked, made: "x")], recorded: "x") && !isSound([published], recorded: "y"))
    #expect(!isSound([entry(.completed, made: "y"), published], recorded: "x"))
    #expect(!isSound([published, entry(.forgotten, made: "x"), entry(.asked, made: "x")], recorded: "x"))
  }

  @Test func twoReportsOfOneRunAreAContradiction() {
    func problem(_ reports: [(run: String, report: String?)]) -> String? {
      TrailVerification.problem(
        ofReports: reports.enumerated().map { number, made in
          TrailEntry.Content(
            entry: Int64(number + 1), kind: .published, run: made.run, at: "", report: made.report, appended: [],
            columns: [:], marks: [:])
        })
    }
    #expect(problem([("a", nil), ("a", "x"), ("b", "y"), ("a", "x")]) == nil)
    #expect(problem([("a", "x"), ("b", "y"), ("a", "y")])?.contains("entry 3 names another report") == true)
  }

  @Test func reportsAreFoundInTheReportDirectory() {
    func places(_ directory: String, isNightly: Bool) -> [String] {
      RecordedReport(runId: "a", directory: directory, isNightly: isNightly, isShown: true).places(in: "/new")
    }
    #expect(places("/old/2026-11-19", isNightly: true) == ["/old/2026-11-19", "/new/2026-11-19"])
    #expect(places("/new/2026-11-19", isNightly: true) == ["/new/2026-11-19"])
    #expect(places("/old/held/2026-11-19", isNightly: true) == ["/old/held/2026-11-19", "/new/held/2026-11-19"])
    for place in ["ad-hoc/2026-11-19-1", "held/20261120T030000Z-2"] {
      #expect(places("/old/\(place)", isNightly: false) == ["/old/\(place)", "/new/\(place)"])
    }
    // A folder elsewhere may contain a report of `reconcile` by now.
    func isInReports(_ directory: String, isNightly: Bool) -> Bool {
      RecordedReport(runId: "a", directory: directory, isNightly: isNightly, isShown: true).isInReports
    }
    #expect(isInReports("/old/2026-11-19", isNightly: true) && isInReports("/old/ad-hoc/1", isNightly: false))
    #expect(isInReports("/old/held/1", isNightly: false) && !isInReports("/out/2026-11-19", isNightly: false))
    #expect(places("/out/2026-11-19", isNightly: false) == ["/out/2026-11-19"])
  }

  private func problem(ofReleaseBefore before: String?, after kind: Trail.Kind) -> String? {
    var entries = [Trail.Kind.start, kind, .released].enumerated().map { number, kind in
      TrailEntry.Content(
        entry: Int64(number + 1), kind: kind, at: "2026-11-25T03:00:00.000000Z", appended: [], columns: [:], marks: [:])
    }
    (entries[2].table, entries[2].before) = ("evidence", before)
    return TrailVerification.problem(ofReleases: entries)
  }

  @Test func onlyEndedAndCoveredMonthsAreRemoved() {
    for before in ["2026-11-01", "2026-10-01", "2025-12-01"] {
      #expect(problem(ofReleaseBefore: before, after: .beforeRelease) == nil)
      #expect(problem(ofReleaseBefore: before, after: .asked)?.contains("does not cover") == true)
    }
    for before in ["2026-12-01", "2026-11-25", "2027-01-01", "1' OR '1", "", nil] {
      #expect(problem(ofReleaseBefore: before, after: .beforeRelease)?.contains("had not ended") == true)
    }
  }

  @Test func nightDigestsAreComparedUntilALaterNightReplacesThem() {
    func night(
      _ run: String, at hour: Int64, _ recorded: [String: String], from: String? = nil, found: [String: String]
    )
      -> NightsTrail.Night
    {
      NightsTrail.Night(
        run: run, asOf: Instant(seconds: hour * 3_600), isNightly: true, isForgotten: false, recorded: recorded,
        from: from, found: found)
    }
    func tables(_ nights: [NightsTrail.Night]) -> [String] {
      NightsTrail.differences(of: nights).map { "\($0.run) \($0.table)" }
    }
    let digests = ["findings_met": "x", "order_nights 2026-11-18": "y", "order_nights 2026-11-19": "z"]
    #expect(tables([night("a", at: 1, digests, found: digests)]) == [])
    #expect(tables([night("a", at: 1, digests, found: [:])]).count == 3)
    #expect(tables([night("a", at: 1, [:], found: ["findings_met": "x"])]) == ["a findings_met"])
    // A later night removes the rows of days before its lookback and some of its first day; they are not compared.
    let later = night("b", at: 25, ["findings_met": "w"], from: "2026-11-18", found: ["findings_met": "w"])
    #expect(tables([night("a", at: 1, digests, found: ["findings_met": "x"]), later]) == ["a order_nights 2026-11-19"])
    // A repetition of the night replaces the rows of the first run.
    let again = night("b", at: 1, digests, found: digests)
    #expect(tables([night("a", at: 1, digests, found: ["findings_met": "x"]), again]) == [])
    #expect(tables([night("a", at: 1, digests, found: [:]), again]) == ["a findings_met"])
  }

  private struct Step {
    var kind: Trail.Kind
    var run: String

    init(_ kind: Trail.Kind, _ run: String) { (self.kind, self.run) = (kind, run) }
  }

  /// Runs `a`, `b` and `d` use one folder, `c` uses another.
  private func successors(of run: String, _ trail: [Step]) -> Set<String> {
    let reports = ["a", "b", "c", "d"].map { run in
      RecordedReport(runId: run, directory: run == "c" ? "/r/2" : "/r/1", isNightly: true, isShown: true)
    }
    let entries = trail.enumerated().map { number, step in
      TrailEntry.Content(
        entry: Int64(number + 1), kind: step.kind, run: step.run, at: "", appended: [], columns: [:], marks: [:])
    }
    return RecordedReport.successors(of: run, among: reports, in: "/r", by: entries)
  }

  @Test func aLaterPublicationReplacesAReport() {
    // A run may be killed between its commit and its last entry, as `b` is.
    let killed = [
      Step(.completed, "a"), Step(.published, "a"), Step(.began, "b"), Step(.completed, "b"), Step(.completed, "c"),
      Step(.published, "c"), Step(.began, "d"), Step(.ended, "d"),
    ]
    let settled = killed + [Step(.published, "b"), Step(.ended, "a"), Step(.forgotten, "a")]
    for trail in [killed, settled] {
      #expect(successors(of: "a", trail) == ["b"] && successors(of: "b", trail) == [])
      #expect(successors(of: "x", trail) == [])
    }
  }
}
